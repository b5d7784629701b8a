"""A loop of the service: a thread with its own connections, restarted with a backoff when it fails (OPS-1, OPS-2)."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.backoff import Backoff
from msgx_driver.store import Store, stop_error

__all__ = ["Bell", "Step", "SteppingWorker", "SupervisedLoop", "Worker"]

log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 5.0


class Worker(Protocol):
    """What runs in a loop, with everything it needs open; `store` is the connection it works with."""

    store: Store

    def step(self) -> bool:
        """Do one bounded piece of work; True when more may be due at once."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait at most that long, or until there may be work."""
        ...

    def close(self) -> None:
        """Give back what was claimed; called at a clean end only."""
        ...


Step = Callable[[], AbstractContextManager[Worker]]
"""Opens a worker; closes its connections at the end of the context."""


class Bell:
    """Wakes a loop that waits; also at the end of the service."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._rung = threading.Event()

    def ring(self) -> None:
        """There may be work."""
        self._rung.set()

    def wait(self, seconds: float) -> None:
        """Wait until it rings, the service ends, or the seconds are over."""
        if not self._stop.is_set():
            self._rung.wait(seconds)
        self._rung.clear()


class SupervisedLoop(threading.Thread):
    """Runs a worker until `stop`; `fatal` tells which errors end the whole service, all others are tried again.

    `ended` is called once at the end with the fatal error or None.
    """

    def __init__(
        self,
        name: str,
        open_worker: Step,
        clock: Clock,
        stop: threading.Event,
        bell: Bell,
        *,
        idle_seconds: float,
        fatal: Callable[[MsgxError], bool],
        ended: Callable[[str, MsgxError | None], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.bell = bell
        self._open = open_worker
        self._clock = clock
        self._stop_event = stop
        self._idle = idle_seconds
        self._fatal = fatal
        self._ended = ended

    def run(self) -> None:
        """Thread body: open, step, wait; after a failure wait longer and longer, and open anew."""
        backoff = Backoff()
        fatal: MsgxError | None = None
        while not self._stop_event.is_set() and fatal is None:
            try:
                with self._open() as worker:
                    self._work(worker, backoff)
            except Exception as e:
                error = _explained(e)
                if self._fatal(error):
                    fatal = error
                    break
                pause = backoff.failed()
                log.error("loop %s failed, next try in %g s: %s", self.name, pause, _with_hint(error))
                self._pause(pause)
        self._ended(self.name, fatal)

    def _work(self, worker: Worker, backoff: Backoff) -> None:
        beat = self._report(worker, "RUNNING")
        try:
            while not self._stop_event.is_set():
                more = worker.step()
                # Only failures in a row wait longer: an outage an hour ago must not slow the next recovery.
                backoff.reset()
                if not more and not self._stop_event.is_set():
                    worker.wait(self._idle)
                if self._clock.monotonic() - beat >= BEAT_SECONDS:
                    beat = self._report(worker, "RUNNING")
        except Exception as e:
            self._report(worker, "FAILED", _with_hint(_explained(e)))
            raise
        worker.close()
        self._report(worker, "STOPPED")

    def _report(self, worker: Worker, state: str, error: str | None = None) -> float:
        # Telling how it is must not be what makes it fail.
        with contextlib.suppress(psycopg.Error, MsgxError):
            worker.store.report_loop(self.name, state, error)
        return self._clock.monotonic()

    def _pause(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while not self._stop_event.is_set() and (left := end - self._clock.monotonic()) > 0:
            self._stop_event.wait(left)


def _with_hint(error: MsgxError) -> str:
    return f"{error}; {error.hint}" if error.hint else str(error)


def _explained(error: Exception) -> MsgxError:
    if isinstance(error, MsgxError):
        return error
    if isinstance(error, psycopg.Error):
        stop = stop_error(error)
        if stop is not None:
            return stop
        return MsgxError(
            f"database error {error.sqlstate}: {error.diag.message_primary or type(error).__name__}",
            exit_code=ExitCode.UNREACHABLE,
        )
    log.error("unexpected error", exc_info=error)
    return MsgxError(f"unexpected error: {type(error).__name__}")


class SteppingWorker:
    """A worker made of functions: `step` says True when more is due, `close` gives back what was claimed."""

    def __init__(
        self, store: Store, step: Callable[[], object], bell: Bell, close: Callable[[], object] = lambda: None
    ) -> None:
        self.store = store
        self._step = step
        self._bell = bell
        self._close = close

    def step(self) -> bool:
        """Do one piece of work."""
        return bool(self._step())

    def wait(self, seconds: float) -> None:
        """Wait for the bell, at most `seconds`."""
        self._bell.wait(seconds)

    def close(self) -> None:
        """Clean end."""
        self._close()
