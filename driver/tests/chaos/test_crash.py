"""The driver killed and the server stopped in the middle of a day: the same command again ends as if nothing had been.

`MSGX_TEST_KILLS` and `MSGX_TEST_STOPS` are the numbers of crashes; `make chaos` sets 50 and 10. A moment is a number of
committed messages, never a time, so that a slow machine tests the same as a fast one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.embedded import embedded_server
from msgx_driver.errors import ExitCode
from msgx_driver.generate import Day, generate_day, write_day
from msgx_driver.migrate import migrate_up

from .conftest import Toll
from .tables import Contents, contents, differences, surplus

PROGRAM = Path(sys.executable).parent / "msgx-driver"
KILLS = int(os.environ.get("MSGX_TEST_KILLS", "5"))
STOPS = int(os.environ.get("MSGX_TEST_STOPS", "2"))
FLIGHTS, SEED = 40, 5
TIMEOUT = 120.0
STEPS = 25
DRIVERS = "where a.application_name = 'msgx-driver' and a.datname = current_database()"
# The end of the driver's main: what a message can do that makes a decoder crash the whole process.
KILLED_BY_A_MESSAGE = """
import os, signal, sys
from msgx_driver.cli import main
from msgx_driver.loops import pump
decode = pump.decode_message
def decode_or_die(payload, *rest, **named):
    if b"KILLER" in payload:
        os.kill(os.getpid(), signal.SIGKILL)
    return decode(payload, *rest, **named)
pump.decode_message = decode_or_die
sys.exit(main())
"""


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MSGX_", "PG"))}
    return clean | {"LC_ALL": "C.UTF-8"}


# ---------------------------------------------------------------- the day, and what it comes to undisturbed


@dataclass(frozen=True)
class Work:
    """A generated day in a folder, and the tables after an undisturbed run of it."""

    day: Day
    folder: Path
    undisturbed: Contents

    @property
    def total(self) -> int:
        return len(self.day.messages)


@pytest.fixture(scope="module")
def work(pg_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Work:
    folder = tmp_path_factory.mktemp("day")
    day = generate_day(FLIGHTS, SEED)
    write_day(day, folder)
    dsn = pg_server.new_database()
    migrate(dsn)
    code, _, err = run(dsn, folder)
    assert code == ExitCode.OK, err
    return Work(day, folder, contents(dsn, "msgx"))


def migrate(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate_up(conn, "msgx")


def start(dsn: str, folder: Path, *options: str) -> subprocess.Popen[bytes]:
    expect = folder / "manifest.json"
    return subprocess.Popen(
        [PROGRAM, "replay", folder / "day.jsonl", "--db", dsn, "--json", "--expect", expect, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


def run(dsn: str, folder: Path) -> tuple[int, bytes, str]:
    """Run the command to its end; exit code, stdout and stderr."""
    with start(dsn, folder) as driver:
        out, err = driver.communicate(timeout=TIMEOUT)
    return driver.returncode, out, err.decode()


@contextlib.contextmanager
def running(dsn: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver at work; whatever the test does, it is dead afterwards."""
    with start(dsn, folder) as driver:
        try:
            yield driver
        finally:
            driver.kill()
            driver.communicate()


# ---------------------------------------------------------------- looking, and choosing the moment


class Observer:
    """A superuser's connection that watches the driver, and one that can hold up its next message."""

    def __init__(self, dsn: str) -> None:
        self.conn = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")
        self.holder = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")

    def finished(self) -> list[int]:
        query = "select message_id from proc_state where status not in ('PENDING', 'FAILED') order by 1"
        return [row[0] for row in self.conn.execute(query).fetchall()]

    def head(self) -> tuple[int, int] | None:
        """Number and attempts of the smallest unfinished message."""
        return self.conn.execute(
            "select message_id, attempts from proc_state where status in ('PENDING', 'FAILED') order by 1 limit 1"
        ).fetchone()

    def wait_for(self, query: str, what: str) -> None:
        """Wait until the query answers true."""

        def true() -> bool:
            row = self.conn.execute(query.encode()).fetchone()
            return row is not None and bool(row[0])

        wait_until(true, timeout=TIMEOUT, clock=SystemClock(), interval=0.002, what=what)

    def wait_for_messages(self, number: int) -> None:
        done = f"select count(*) >= {number} from proc_state where processed_at is not null"
        self.wait_for(done, f"{number} finished messages")

    def hold(self) -> None:
        """Lock the row that every transaction of the driver locks first."""
        self.holder.execute("begin")
        self.holder.execute("select from pipeline_lock for update")

    def release(self) -> None:
        self.holder.execute("commit")

    def wait_until_held(self) -> None:
        self.wait_for(
            "select exists (select from pg_stat_activity a join pg_locks l on l.pid = a.pid"
            f" {DRIVERS} and not l.granted)",
            "the driver to wait for the writer row",
        )

    def wait_until_gone(self) -> None:
        """A server process ends its message first, and then learns that nobody listens any more."""
        self.wait_for(
            f"select not exists (select from pg_stat_activity a {DRIVERS})", "the killed driver's server process"
        )

    def kill_before_report(self, driver: subprocess.Popen[bytes], number: int) -> None:
        """Kill the driver after the commit of at least `number` messages, before it can learn of the last one.

        The driver is stopped while its message waits for the writer row; then the server commits without it.
        """
        self.wait_for_messages(max(number - STEPS, 0))
        self.hold()
        while True:
            self.wait_until_held()
            before = len(self.finished())
            os.kill(driver.pid, signal.SIGSTOP)
            self.release()
            self.wait_for(
                f"select not exists (select from pg_stat_activity a {DRIVERS} and a.state <> 'idle')",
                "the server to end the message",
            )
            if len(self.finished()) > before >= number - 1:
                driver.kill()
                return
            self.hold()
            os.kill(driver.pid, signal.SIGCONT)

    def close(self) -> None:
        self.conn.close()
        self.holder.close()


@contextlib.contextmanager
def observing(dsn: str) -> Iterator[Observer]:
    observer = Observer(dsn)
    try:
        yield observer
    finally:
        observer.close()


# ---------------------------------------------------------------- one crash


def compare(toll: Toll, dsn: str, work: Work, seen: list[int], head: tuple[int, int] | None) -> None:
    """Hold the tables after crash and second run against the undisturbed ones.

    `seen` are the messages finished before the crash, `head` the first unfinished one and its attempts.
    """
    found = contents(dsn, "msgx")
    expected = work.undisturbed | {"proc_state": [dict(row) for row in work.undisturbed["proc_state"]]}
    for row in expected["proc_state"]:
        # D35: the suspect is charged one attempt before it is tried again; success sets attempts to 0.
        if head is not None and row["message_id"] == head[0] and row["status"] == "DEAD":
            row["attempts"] = max(row["attempts"], head[1] + 2)
    toll.crashes += 1
    toll.lost += surplus(expected, found)
    toll.doubled += surplus(found, expected)
    toll.unfinished += len(seen) < work.total
    assert differences(found, expected) == []
    events = sorted(row["event_id"] for row in found["msg_event"])
    assert events == list(range(1, len(events) + 1))


def moment(number: int, of: int, first: int, last: int) -> int:
    """The message of crash `number` (from 0) of `of`, spread evenly from first to last."""
    return first + (last - first) * number // max(of - 1, 1)


@pytest.fixture(scope="module")
def installed(pg_server: Any) -> str:
    """A database with the schema, for copying."""
    dsn: str = pg_server.new_database()
    migrate(dsn)
    return dsn


@contextlib.contextmanager
def copied(template: str) -> Iterator[str]:
    """A copy of that database, dropped afterwards."""
    source = str(conninfo_to_dict(template)["dbname"])
    name = f"{source}_copy"
    admin = make_conninfo(template, dbname="postgres")
    drop = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
    create = sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(source))
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(create)
        try:
            yield make_conninfo(template, dbname=name)
        finally:
            conn.execute(drop)


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_the_driver(work: Work, installed: str, tolls: dict[str, Toll], number: int) -> None:
    """From the first commit to the last; every third kill, and the last one, falls between commit and report."""
    after = moment(number, KILLS, 1, work.total)
    with copied(installed) as dsn, observing(dsn) as observer:
        with running(dsn, work.folder) as driver:
            if number % 3 == 2 or number == KILLS - 1:
                observer.kill_before_report(driver, after)
            else:
                observer.wait_for_messages(after)
                driver.kill()
            assert driver.wait(TIMEOUT) == -signal.SIGKILL
        observer.wait_until_gone()
        seen, head = observer.finished(), observer.head()
        assert len(seen) >= after
        code, out, err = run(dsn, work.folder)
        compare(tolls["kills"], dsn, work, seen, head)
        assert code == ExitCode.OK, err
        summary = json.loads(out)
        assert (summary["new"], summary["done"]) == (0, work.total)


def test_most_kills_left_work(tolls: dict[str, Toll]) -> None:
    """At least four of five kills met messages that were not finished; else the moments are no good."""
    assert tolls["kills"].unfinished * 5 >= tolls["kills"].crashes * 4


def test_stop_the_server(work: Work, tolls: dict[str, Toll]) -> None:
    """An immediate stop of the server: what was committed is there afterwards, and the driver says what it met."""
    home = Path(tempfile.mkdtemp(prefix="msgx-c-"))
    home.chmod(0o711)
    server = embedded_server(home)
    try:
        with server:
            with psycopg.connect(server.dsn, autocommit=True) as conn:
                conn.execute("create database installed")
            migrate(make_conninfo(server.dsn, dbname="installed"))
            for number in range(STOPS):
                after = moment(number, STOPS, work.total // (STOPS + 1), work.total * STOPS // (STOPS + 1))
                name = f"day_{number}"
                with psycopg.connect(server.dsn, autocommit=True) as conn:
                    conn.execute(sql.SQL("create database {} template installed").format(sql.Identifier(name)))
                dsn = make_conninfo(server.dsn, dbname=name)
                with observing(dsn) as observer, running(dsn, work.folder) as driver:
                    observer.wait_for_messages(after)
                    before = observer.finished()
                    server.stop(mode="immediate")
                    _, said = driver.communicate(timeout=TIMEOUT)
                assert driver.returncode == ExitCode.UNREACHABLE, said.decode()
                assert b"Traceback" not in said
                assert b"msgx-driver: the database does not answer: " in said
                server.start()
                with observing(dsn) as observer:
                    seen, head = observer.finished(), observer.head()
                assert set(before) <= set(seen)
                code, _, err = run(dsn, work.folder)
                compare(tolls["server stops"], dsn, work, seen, head)
                assert code == ExitCode.OK, err
    finally:
        server.remove()


# ---------------------------------------------------------------- two drivers, and a message that kills


def test_of_two_drivers_one_ends_with_other_writer(work: Work, installed: str) -> None:
    """Whoever comes first becomes the writer; the other ends with 8 and changes nothing."""
    with copied(installed) as dsn, observing(dsn) as observer:
        observer.hold()
        with running(dsn, work.folder) as one, running(dsn, work.folder) as two:
            # The winner waits for the row that is held; the loser does not wait for anything.
            wait_until(
                lambda: one.poll() is not None or two.poll() is not None,
                timeout=TIMEOUT,
                clock=SystemClock(),
                what="one of the drivers to end",
            )
            loser, winner = (one, two) if one.poll() is not None else (two, one)
            observer.release()
            _, refusal = loser.communicate(timeout=TIMEOUT)
            _, err = winner.communicate(timeout=TIMEOUT)
            assert loser.returncode == ExitCode.OTHER_WRITER, refusal.decode()
            assert b"another writer is active (pid " in refusal
            assert winner.returncode == ExitCode.OK, err.decode()
        assert differences(contents(dsn, "msgx"), work.undisturbed) == []


@pytest.mark.parametrize(("allowed", "killers"), [(3, 2), (8, 1)])
def test_a_message_that_kills_the_driver_ends_dead(installed: str, tmp_path: Path, allowed: int, killers: int) -> None:
    """D35: after `pipeline.max_attempts` kills it is DEAD, also two in a row, and the queue goes on."""
    texts = ["", *["KILLER"] * killers, "", ""]
    xml = (
        "<MSG><META><SNDR>A</SNDR><SEQN>{0}</SEQN><TYPE>FLOP</TYPE><STYP>REMC</STYP></META>"
        "<FLOP><FLID>{0}</FLID><REMC>{1}x</REMC></FLOP></MSG>"
    )
    lines = [json.dumps({"id": n, "xml": xml.format(n, text)}) for n, text in enumerate(texts, 1)]
    (tmp_path / "day.jsonl").write_text("\n".join(lines))
    with copied(installed) as dsn, observing(dsn) as observer:
        if allowed != 8:
            observer.conn.execute("select set_setting('pipeline.max_attempts', %s, null)", (str(allowed),))
        command: list[str | Path] = [
            sys.executable,
            "-c",
            KILLED_BY_A_MESSAGE,
            "replay",
            tmp_path / "day.jsonl",
            "--db",
            dsn,
        ]
        kills = 0
        while kills <= killers * allowed:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=TIMEOUT, check=False
            )
            if done.returncode != -signal.SIGKILL:
                break
            kills += 1
            observer.wait_until_gone()
        assert (kills, done.returncode) == (killers * allowed, ExitCode.DEAD), done.stderr.decode()
        rows = observer.conn.execute(
            "select message_id, status, error_class, last_error_class, attempts from proc_state order by 1"
        ).fetchall()
        good, dead = ("SUCCEEDED", None, None, 0), ("DEAD", "EXHAUSTED", "INFRA", allowed)
        assert rows == [(n, *(dead if text else good)) for n, text in enumerate(texts, 1)]
        flights = observer.conn.execute("select flid from flight_schd order by 1").fetchall()
        assert flights == [(str(n),) for n, text in enumerate(texts, 1) if not text]
        assert observer.conn.execute("select count(*) from consistency_check").fetchone() == (0,)
