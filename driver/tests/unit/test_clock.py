from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from msgx_driver.clock import Clock, SystemClock, wait_until
from msgx_driver.errors import ExitCode, MsgxError


class FakeClock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 9, 9, tzinfo=UTC) + timedelta(seconds=self.time)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def monotonic(self) -> float:
        return self.time


def test_system_clock_is_aware_and_in_utc() -> None:
    clock: Clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)


def test_system_clock_sleeps_on_its_monotonic_time_and_takes_no_negative_time() -> None:
    clock = SystemClock()
    start = clock.monotonic()
    clock.sleep(0.02)
    assert clock.monotonic() - start >= 0.02
    clock.sleep(-1)


def test_wait_until_returns_the_value_without_waiting_when_it_is_there() -> None:
    clock = FakeClock()
    assert wait_until(lambda: "ready", timeout=0, clock=clock, what="it") == "ready"
    assert clock.slept == []


def test_wait_until_asks_every_interval() -> None:
    clock = FakeClock()
    assert wait_until(lambda: clock.time >= 101 and 7, timeout=5, clock=clock, interval=0.25, what="it") == 7
    assert clock.slept == [0.25] * 4


def test_wait_until_gives_up_at_the_deadline_and_names_what_it_waited_for() -> None:
    clock = FakeClock()
    asked: list[float] = []
    with pytest.raises(MsgxError, match=r"^gave up waiting for the broker after 1 s$") as e:
        wait_until(lambda: asked.append(clock.time), timeout=1, clock=clock, interval=0.4, what="the broker")
    assert e.value.exit_code is ExitCode.UNREACHABLE
    # The last wait is cut to the deadline, and the deadline itself still counts.
    assert asked == pytest.approx([100, 100.4, 100.8, 101])


def test_wait_until_lets_errors_of_the_predicate_through() -> None:
    def broken() -> bool:
        raise KeyError("x")

    with pytest.raises(KeyError):
        wait_until(broken, timeout=1, clock=FakeClock(), what="it")
