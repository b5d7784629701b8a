"""The pump as a service: one writer, standby, signals, lost sessions, catching up (OPS-1, US-03)."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import time

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from msgx_driver.errors import ExitCode

from .conftest import PROGRAM, TIMEOUT, Database, Services, eventually

PUMP = ("--loops", "pump")
IS_WRITER = "this session is the writer now"


def test_it_is_woken_and_ends_cleanly(database: Database, services: Services) -> None:
    service = services.start(database.dsn, *PUMP)
    service.wait_for(IS_WRITER)
    started = time.monotonic()
    database.enqueue(1, ["a", "b", "c"])
    eventually(lambda: database.finished() == 3, "three messages")
    assert time.monotonic() - started < 5
    assert database.value("select state from loop_status where loop = 'pump'") == "RUNNING"
    assert service.end() == ExitCode.OK
    assert database.value("select released_at is not null from pipeline_lock")
    assert database.value("select state from loop_status where loop = 'pump'") == "STOPPED"
    assert service.said("stopped")
    health = subprocess.run(
        [PROGRAM, "status", "--json", "--db", database.dsn], capture_output=True, timeout=TIMEOUT, check=True
    )
    checks = {row["check"]: row["status"] for row in json.loads(health.stdout)["health"]}
    assert checks["loop pump"] == "warn"
    assert checks["queue"] == "ok"


def is_finished(database: Database, number: int) -> bool:
    return database.finished() == number


def test_enqueueing_wakes_it(database: Database, services: Services) -> None:
    """Not by polling alone: many waits end well before the idle time of one second."""
    services.start(database.dsn, *PUMP).wait_for(IS_WRITER)
    delays = []
    for number in range(1, 11):
        before = time.monotonic()
        database.enqueue(number, ["x"])
        eventually(functools.partial(is_finished, database, number), "the message")
        delays.append(time.monotonic() - before)
    assert sorted(delays)[len(delays) // 2] < 0.5, delays


def test_a_second_one_ends_with_8(database: Database, services: Services) -> None:
    services.start(database.dsn, *PUMP).wait_for(IS_WRITER)
    second = services.start(database.dsn, *PUMP)
    assert second.process.wait(TIMEOUT) == ExitCode.OTHER_WRITER
    assert second.said("another writer is active")


def test_a_standby_takes_over_after_a_kill(database: Database, services: Services, takeovers: list[float]) -> None:
    first = services.start(database.dsn, *PUMP)
    first.wait_for(IS_WRITER)
    second = services.start(database.dsn, *PUMP, "--standby")
    second.wait_for("standing by")
    database.enqueue(1, ["a"])
    eventually(lambda: database.finished() == 1, "the first message")
    killed = time.monotonic()
    first.end(signal.SIGKILL)
    second.wait_for(IS_WRITER)
    takeovers.append(time.monotonic() - killed)
    assert takeovers[-1] < 10
    database.enqueue(2, ["b"])
    eventually(lambda: database.finished() == 2, "the second message")
    assert second.end() == ExitCode.OK


def test_a_standby_that_waits_ends_on_a_signal(database: Database, services: Services) -> None:
    services.start(database.dsn, *PUMP).wait_for(IS_WRITER)
    second = services.start(database.dsn, *PUMP, "--standby")
    second.wait_for("standing by")
    assert second.end() == ExitCode.OK


def test_the_loser_is_refused(database: Database) -> None:
    """A session that lost the right writes nothing more, whatever it believes (MX4)."""
    command = json.dumps({"meta": {"SNDR": "A", "TYPE": "LDM", "STYP": "X", "SEQN": "1"}})
    with psycopg.connect(database.dsn, autocommit=True, options="-c search_path=msgx") as loser:
        loser.execute("select acquire_writer(null)")
        database.enqueue(1, ["a"])
        # What a failover leaves behind: somebody else is registered.
        database.value("update pipeline_lock set writer_pid = 1, writer_started = now() returning 1")
        with pytest.raises(psycopg.Error) as refused:
            loser.execute("select process_message(1, %s::jsonb, null)", (command,))
    assert (refused.value.sqlstate or "").startswith("MX4")
    assert database.finished() == 0


def test_a_lost_session_is_replaced(database: Database, services: Services) -> None:
    service = services.start(database.dsn, *PUMP)
    service.wait_for(IS_WRITER)
    database.enqueue(1, ["a"])
    eventually(lambda: database.finished() == 1, "the first message")
    database.value("select pg_terminate_backend(writer_pid) from pipeline_lock")
    service.wait_for("loop pump failed")
    database.enqueue(2, ["b"])
    eventually(lambda: database.finished() == 2, "the second message")
    assert service.end() == ExitCode.OK


def test_a_database_that_refuses_charges_no_message(database: Database, services: Services) -> None:
    """A locked table for as long as the pump bears it, and longer: the head waits (D14)."""
    dsn = make_conninfo(database.dsn, options="-c lock_timeout=20ms")
    with psycopg.connect(database.dsn) as other:
        other.execute("lock table msgx.flight_schd in share row exclusive mode")
        database.enqueue(1, ["a", "b"])
        service = services.start(dsn, *PUMP)
        service.wait_for("the database refused 8 times in a row")
        eventually(lambda: sum(line["msg"] == IS_WRITER for line in service.lines()) == 2, "the next attempt")
        assert database.value("select max(attempts) from proc_state") == 0
        assert not service.said("ended without releasing")
    eventually(lambda: database.finished() == 2, "both messages")
    assert database.value("select count(*) from proc_state where status = 'SUCCEEDED'") == 2
    assert service.end() == ExitCode.OK


def test_lost_state_ends_with_6(database: Database, services: Services) -> None:
    database.value("insert into schd_gen_flid (fday, flid) values ('2026-09-09', 'GONE') returning 1")
    service = services.start(database.dsn, *PUMP)
    assert service.process.wait(TIMEOUT) == ExitCode.INVARIANT
    assert service.said("state is lost")


def test_the_first_signal_ends_after_the_message_the_second_at_once(database: Database, services: Services) -> None:
    service = services.start(database.dsn, *PUMP)
    service.wait_for(IS_WRITER)
    with psycopg.connect(database.dsn, options="-c search_path=msgx") as holder:
        holder.execute("lock table flight_schd in exclusive mode")
        database.enqueue(1, ["a", "b"])
        eventually(
            lambda: database.value("select exists (select from pg_locks where not granted)"), "the message to wait"
        )
        service.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            service.process.wait(0.5)
        assert service.end() == 130
    other = services.start(database.dsn, *PUMP)
    eventually(lambda: database.finished() == 2, "both messages")
    assert other.end() == ExitCode.OK


def test_the_queue_waits_for_the_backoff(database: Database, services: Services) -> None:
    """FAILED holds the head (US-03/1): nobody overtakes, and the retry is not at once."""
    services.start(database.dsn, *PUMP).wait_for(IS_WRITER)
    meta = b"<META><SNDR>A</SNDR><SEQN>1</SEQN><TYPE>FLOP</TYPE><STYP>NOPE</STYP></META>"
    xml = b"<MSG>" + meta + b"<FLOP><FLID>F</FLID></FLOP></MSG>"
    database.value(
        "select enqueue_messages('test', array[1]::bigint[], array[%s::bytea], array['bytes'], null, null)", xml
    )
    database.enqueue(2, ["b"])
    eventually(lambda: database.value("select attempts from proc_state where message_id = 1") == 1, "the first attempt")
    assert database.value("select status from proc_state where message_id = 2") == "PENDING"
    eventually(lambda: database.finished() == 2, "both")
    took = database.value("select extract(epoch from processed_at - enqueued_at) from proc_state where message_id = 1")
    # Waits of 1 s and 2 s lie between the three attempts of an unsupported kind.
    assert took >= 3
    assert (
        database.value("select status || '/' || error_class from proc_state where message_id = 1") == "DEAD/EXHAUSTED"
    )


def test_a_blocked_log_does_not_stop_it(database: Database) -> None:
    """Nobody reads its stderr: the pipe is full after a few hundred lines (OPS-2)."""
    messages = 1500
    database.enqueue(1, ["x"] * messages)
    with subprocess.Popen(
        [PROGRAM, "run", "--db", database.dsn, *PUMP, "--log-level", "DEBUG"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as service:
        try:
            eventually(lambda: database.finished() == messages, "all messages")
            service.send_signal(signal.SIGTERM)
            assert service.wait(TIMEOUT) == ExitCode.OK
        finally:
            service.kill()


def test_it_catches_up_and_flushes_again(database: Database, services: Services) -> None:
    database.enqueue(1, [str(n) for n in range(600)])
    service = services.start(database.dsn, *PUMP)
    eventually(lambda: database.finished() == 600, "600 messages")
    service.wait_for("caught up, every commit flushes")
    assert service.said("catching up, commits flush late")
    assert service.end() == ExitCode.OK
    assert database.value("select remc from flight_schd where flid = 'F9'") == "599"
