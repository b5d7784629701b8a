"""The service as operations start it: `msgx-driver run` as a process, configured by environment variables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.migrate import migrate_up

PROGRAM = Path(sys.executable).parent / "msgx-driver"
TIMEOUT = 60.0


def eventually(predicate: Callable[[], Any], what: str, timeout: float = TIMEOUT) -> Any:
    """Wait until it is so."""
    return wait_until(predicate, timeout=timeout, clock=SystemClock(), interval=0.02, what=what)


TAKEOVERS = pytest.StashKey[list[float]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TAKEOVERS] = []


@pytest.fixture
def takeovers(request: pytest.FixtureRequest) -> list[float]:
    """Seconds from a kill to the next writer; shown at the end of the run."""
    return request.config.stash[TAKEOVERS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for seconds in config.stash.get(TAKEOVERS, []):
        terminalreporter.write_line(f"a standby became the writer {seconds:.2f} s after the kill")


@dataclass
class Running:
    """A started service; `log` holds its JSON lines."""

    process: subprocess.Popen[bytes]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """Log lines so far, whole ones only."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1] if line.startswith("{")]

    def said(self, text: str) -> bool:
        """Whether a log line contains the text."""
        return any(text in line["msg"] for line in self.lines())

    def wait_for(self, text: str) -> None:
        """Wait for a log line; fails when the process has ended before."""

        def seen() -> bool:
            assert self.process.poll() is None or self.said(text), self.log.read_text()
            return self.said(text)

        eventually(seen, f"the log line {text!r}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT)


@dataclass
class Services:
    """Starts services on one database; whatever a test does, they are dead afterwards."""

    folder: Path
    started: list[Running]
    program: tuple[str | Path, ...] = (PROGRAM,)

    def start(self, dsn: str, *options: str, **environment: str) -> Running:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MSGX_", "PG"))}
        log = self.folder / f"service-{len(self.started)}.log"
        with log.open("wb") as err:
            process = subprocess.Popen(
                [*self.program, "run", "--db", dsn, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                cwd=self.folder,
                env=clean | {"LC_ALL": "C.UTF-8"} | environment,
            )
        self.started.append(Running(process, log))
        return self.started[-1]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Start services with `services.start(dsn, *options, **environment)`."""
    made = Services(tmp_path, [])
    yield made
    for running in made.started:
        running.process.kill()
        running.process.wait(TIMEOUT)
        assert "Traceback" not in running.log.read_text(), running.log.read_text()


class Database:
    """A migrated database and a superuser's connection to its schema msgx."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        with psycopg.connect(dsn, autocommit=True) as conn:
            migrate_up(conn, "msgx")
        self.conn = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")

    def value(self, query: str, *parameters: Any) -> Any:
        """First value of the first row."""
        row = self.conn.execute(query.encode(), parameters).fetchone()
        return None if row is None else row[0]

    def enqueue(self, first: int, texts: list[str]) -> None:
        """Enqueue FLOP/REMC messages, one per text, on flights F0 to F9."""
        xml = (
            "<MSG><META><SNDR>A</SNDR><SEQN>{0}</SEQN><TYPE>FLOP</TYPE><STYP>REMC</STYP></META>"
            "<FLOP><FLID>F{1}</FLID><REMC>{2}</REMC></FLOP></MSG>"
        )
        rows = [xml.format(first + n, n % 10, text).encode() for n, text in enumerate(texts)]
        ids = list(range(first, first + len(texts)))
        self.value(
            "select enqueue_messages('test', %s, %s, array_fill('bytes'::text, array[%s]), null, null)",
            ids,
            rows,
            len(ids),
        )

    def finished(self) -> int:
        """Number of terminal messages."""
        return int(self.value("select count(*) from proc_state where processed_at is not null"))


@pytest.fixture
def database(pg_server: Any) -> Iterator[Database]:
    """One migrated database."""
    made = Database(pg_server.new_database())
    yield made
    made.conn.close()
