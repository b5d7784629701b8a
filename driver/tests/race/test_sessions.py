"""Two sessions on one schema, parked and released at a barrier: one writer, one order (OPS-1, FS-3.2-5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.migrate import migrate_up

ROUNDS = 50


def command(seqn: int, flid: str, estt: str) -> Jsonb:
    meta = {"SNDR": "AODB", "TYPE": "FLOP", "STYP": "ESTT", "SEQN": str(seqn)}
    return Jsonb({"meta": meta, "flights": [{"FLID": flid, "set": {"ESTT": estt}}]})


class Session:
    """One connection in schema msgx."""

    def __init__(self, dsn: str) -> None:
        self.conn = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")

    def one(self, query: str, *params: Any) -> Any:
        row = self.conn.execute(query.encode(), params).fetchone()
        assert row is not None
        return row[0]

    def acquire(self) -> Any:
        return self.one("select acquire_writer(null)")

    def enqueue(self, *ids: int) -> Any:
        texts = ["bytes"] * len(ids)
        payloads = [str(i).encode() for i in ids]
        return self.one("select enqueue_messages('race', %s, %s, %s, null, null)", list(ids), payloads, texts)

    def process(self, message_id: int) -> Any:
        return self.one("select process_message(%s, %s, null)", message_id, command(message_id, "F", str(message_id)))

    @property
    def pid(self) -> int:
        return self.conn.info.backend_pid


@pytest.fixture
def sessions(pg_server: Any) -> Iterator[Callable[[], Session]]:
    dsn = pg_server.new_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate_up(conn, "msgx")
    opened: list[Session] = []

    def make() -> Session:
        opened.append(Session(dsn))
        return opened[-1]

    yield make
    for session in opened:
        session.conn.close()


def waits_for_a_lock(observer: Session, pid: int) -> None:
    wait_until(
        lambda: observer.one("select cardinality(pg_blocking_pids(%s)) > 0", pid),
        timeout=30,
        clock=SystemClock(),
        what=f"session {pid} to wait for a lock",
    )


def test_of_two_sessions_exactly_one_becomes_the_writer(sessions: Callable[[], Session]) -> None:
    pair = [sessions(), sessions()]
    for _ in range(ROUNDS):
        barrier = threading.Barrier(2)

        def attempt(session: Session, barrier: threading.Barrier = barrier) -> str:
            barrier.wait()
            try:
                session.acquire()
            except psycopg.Error as e:
                return e.sqlstate or ""
            return "writer"

        with ThreadPoolExecutor(2) as pool:
            outcomes = sorted(pool.map(attempt, pair))
        assert outcomes == ["MX402", "writer"]
        released = sorted(s.one("select release_writer(null)") for s in pair)
        assert released == [False, True]


def test_the_right_ends_with_the_session_and_the_head_is_the_suspect(sessions: Callable[[], Session]) -> None:
    first, second = sessions(), sessions()
    first.acquire()
    first.enqueue(1, 2)
    first.process(1)
    first.conn.close()
    wait_until(
        lambda: not second.one("select exists (select from pg_locks where locktype = 'advisory')"),
        timeout=30,
        clock=SystemClock(),
        what="the lock of the closed session",
    )
    assert second.acquire() == {"epoch": 1, "unclean": True, "suspect": 2}
    assert second.one("select attempts from proc_state where message_id = 2") == 1
    assert second.process(2)["status"] == "SUCCEEDED"
    assert second.one("select estt from flight_schd") == "2"


def test_a_smaller_id_enqueued_meanwhile_becomes_the_next_head(sessions: Callable[[], Session]) -> None:
    pump, poller, observer = sessions(), sessions(), sessions()
    pump.acquire()
    pump.enqueue(10, 20)
    pump.conn.execute("begin")
    pump.process(10)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(poller.enqueue, 5)
        waits_for_a_lock(observer, poller.pid)
        pump.conn.execute("commit")
        assert waiting.result(30) == {"new": 1, "known": 0}
    assert pump.one("select message_id from next_message(null)") == 5
    with pytest.raises(psycopg.Error) as caught:
        pump.process(20)
    assert caught.value.sqlstate == "MX501"
    assert pump.process(5)["status"] == "SUCCEEDED"
    assert pump.process(20)["status"] == "SUCCEEDED"


def test_nobody_but_the_writer_processes_or_records(sessions: Callable[[], Session]) -> None:
    pump, other = sessions(), sessions()
    pump.acquire()
    pump.enqueue(1)
    for call in (
        "select process_message(1, '{}', null)",
        "select record_failure(1, null, null, null, 'MALFORMED', 'x', null)",
    ):
        with pytest.raises(psycopg.Error) as caught:
            other.conn.execute(call)
        assert caught.value.sqlstate == "MX401"
    assert pump.one("select status from proc_state") == "PENDING"


def test_a_failing_commit_leaves_nothing_visible(sessions: Callable[[], Session]) -> None:
    pump, observer = sessions(), sessions()
    pump.acquire()
    pump.enqueue(1)
    pump.conn.execute("begin")
    pump.process(1)
    assert observer.one("select count(*) from flight_schd") == 0
    observer.conn.execute("select pg_terminate_backend(%s)", [pump.pid])
    with pytest.raises(psycopg.OperationalError):
        pump.conn.execute("commit")
    counts = "select (select count(*) from flight_schd) + (select count(*) from msg_event) + (select count(*) from {})"
    assert observer.one(counts.format("message_identity")) == 0
    assert observer.one("select status from proc_state") == "PENDING"


def test_a_setting_waits_for_the_message_at_hand(sessions: Callable[[], Session]) -> None:
    pump, operator, observer = sessions(), sessions(), sessions()
    pump.acquire()
    pump.enqueue(1)
    pump.conn.execute("begin")
    pump.process(1)
    with ThreadPoolExecutor(1) as pool:
        change = pool.submit(operator.conn.execute, "select set_setting('wire.empty_scalar', 'clear', null)")
        waits_for_a_lock(observer, operator.pid)
        pump.conn.execute("commit")
        change.result(30)
    assert pump.one("select value from setting where name = 'wire.empty_scalar'") == "clear"


def test_no_mark_is_passed_by_the_floor(sessions: Callable[[], Session]) -> None:
    """Messages end while marks are confirmed: the floor passes neither the head nor what has just ended (US-09/2)."""
    pump, worker = sessions(), sessions()
    pump.acquire()
    count = 3000
    pump.enqueue(*range(1, count + 1))
    pump.conn.execute("update proc_state set mailbox_id = message_id")
    pump.conn.execute("insert into inbox_cursor (source, watermark) values ('race', %s)", (count,))
    token = "00000000-0000-0000-0000-000000000001"
    start, over = threading.Barrier(2), threading.Event()

    def finish() -> None:
        start.wait()
        for number in range(1, count + 1):
            pump.one("select process_message(%s, %s, null)", number, Jsonb({"meta": {"TYPE": "LDM", "STYP": "X"}}))
        over.set()

    def mark() -> int:
        start.wait()
        done = 0
        while True:
            last = over.is_set()
            claimed = worker.conn.execute(
                "select message_id, backfill_seq from claim_backfill('race', %s, 100, 60, null)", (token,)
            ).fetchall()
            ids, seqs = [row[0] for row in claimed], [row[1] for row in claimed]
            done += int(worker.one("select confirm_backfill(%s, %s, %s, null)", token, ids, seqs))
            if last and not claimed:
                return done

    with ThreadPoolExecutor(2) as pool:
        finishing, marking = pool.submit(finish), pool.submit(mark)
        finishing.result(120)
        assert marking.result(120) == count
    assert worker.one("select count(*) from backfill_todo") == 0
