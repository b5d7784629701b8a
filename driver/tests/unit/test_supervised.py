"""A loop of the service: restarted with a backoff when it fails, ended by what is fatal, closed at a clean end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.backoff import BACKOFF_LAST
from msgx_driver.loops.supervised import Bell, SteppingWorker, SupervisedLoop


class FastClock:
    """Monotonic time that leaps a minute with every look, so that no pause is waited for."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 9, 9, tzinfo=UTC)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def monotonic(self) -> float:
        self.seconds += BACKOFF_LAST
        return self.seconds


class Reports:
    """Stands for a store: keeps what the loop says of itself."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str | None]] = []
        self.refuses = False

    def report_loop(self, loop: str, state: str, error: str | None) -> None:
        assert loop == "relay"
        if self.refuses:
            raise psycopg.OperationalError("gone")
        self.said.append((state, error))


class Run:
    """A loop over the given steps: True or False is returned, an exception raised; at the end the loop is stopped."""

    def __init__(self, *steps: bool | Exception, opening: Exception | None = None) -> None:
        self.steps = list(steps)
        self.opening = opening
        self.reports = Reports()
        self.stop = threading.Event()
        self.opened = self.closed = self.released = 0
        self.ended: list[MsgxError | None] = []

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        self.opened += 1
        if self.opening is not None:
            error, self.opening = self.opening, None
            raise error
        try:
            yield SteppingWorker(self.reports, self._step, Bell(self.stop), self._release)  # type: ignore[arg-type]
        finally:
            self.closed += 1

    def _step(self) -> bool:
        if not self.steps:
            self.stop.set()
            return False
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def _release(self) -> None:
        self.released += 1

    def go(self) -> Run:
        loop = SupervisedLoop(
            "relay",
            self.open,
            FastClock(),
            self.stop,
            Bell(self.stop),
            idle_seconds=0,
            fatal=lambda error: error.exit_code == ExitCode.CONFIG,
            ended=lambda _, error: self.ended.append(error),
        )
        loop.start()
        loop.join(30)
        assert not loop.is_alive()
        return self


def test_a_clean_end_gives_back_what_was_claimed() -> None:
    run = Run(True, False, True).go()
    assert (run.opened, run.closed, run.released) == (1, 1, 1)
    assert run.ended == [None]
    assert run.reports.said[0] == ("RUNNING", None)
    assert run.reports.said[-1] == ("STOPPED", None)


@pytest.mark.parametrize(
    "error",
    [
        MsgxError("the mailbox does not answer", exit_code=ExitCode.UNREACHABLE),
        MsgxError("ids were used again", exit_code=ExitCode.SCHEMA),
        psycopg.OperationalError("lost"),
        RuntimeError("a defect"),
    ],
)
def test_a_failure_is_reported_and_tried_again(error: Exception) -> None:
    run = Run(True, error, error, True).go()
    assert (run.opened, run.closed) == (3, 3)
    # What a failed worker had claimed is not given back: its lease runs out.
    assert run.released == 1
    assert [state for state, _ in run.reports.said if state == "FAILED"] == ["FAILED", "FAILED"]
    assert run.ended == [None]


@pytest.mark.parametrize(("between", "pauses"), [([], ["1", "2", "4"]), ([False], ["1", "1", "1"])])
def test_only_failures_in_a_row_wait_longer(
    between: list[bool], pauses: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    error = MsgxError("cut off", exit_code=ExitCode.UNREACHABLE)
    Run(error, *between, error, *between, error).go()
    assert [record.message.split(" s:")[0].rsplit(" ", 1)[1] for record in caplog.records] == pauses


def test_a_worker_that_cannot_be_opened_is_tried_again() -> None:
    run = Run(True, opening=MsgxError("no broker", exit_code=ExitCode.UNREACHABLE)).go()
    assert (run.opened, run.closed) == (2, 1)
    assert run.ended == [None]


def test_what_is_fatal_ends_it() -> None:
    fatal = MsgxError("no topic", exit_code=ExitCode.CONFIG)
    run = Run(True, fatal, True).go()
    assert run.opened == 1
    assert run.ended == [fatal]


def test_a_report_that_fails_does_no_harm() -> None:
    run = Run(True, True)
    run.reports.refuses = True
    run.go()
    assert run.released == 1


def test_the_text_of_an_unexpected_error_stays_out_of_the_report() -> None:
    run = Run(RuntimeError("payload of a message")).go()
    (failed,) = [error for state, error in run.reports.said if state == "FAILED"]
    assert failed == "unexpected error: RuntimeError"
