"""The one clock of the driver: wall time, monotonic time and waiting, replaceable in tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from msgx_driver.errors import ExitCode, MsgxError

__all__ = ["Clock", "SystemClock", "wait_until"]

T = TypeVar("T")


class Clock(Protocol):
    """What the driver may ask about time; only `logging` stamps its records by itself."""

    def now(self) -> datetime:
        """Return the current instant, time-zone aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds; zero and less return at once."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards, from an arbitrary start."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the current instant in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds; zero and less return at once."""
        if seconds > 0:
            time.sleep(seconds)

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start."""
        return time.monotonic()


def wait_until(predicate: Callable[[], T], *, timeout: float, clock: Clock, interval: float = 0.05, what: str) -> T:
    """Ask `predicate` every `interval` seconds until it returns something true, and return that.

    It is asked at least once, and once more at the deadline itself. `timeout` and `interval` are seconds.
    What the predicate raises goes through. At the deadline: MsgxError(UNREACHABLE) that names `what`.
    """
    deadline = clock.monotonic() + timeout
    while not (value := predicate()):
        left = deadline - clock.monotonic()
        if left <= 0:
            raise MsgxError(f"gave up waiting for {what} after {timeout:g} s", exit_code=ExitCode.UNREACHABLE)
        clock.sleep(min(interval, left))
    return value
