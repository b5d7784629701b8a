"""The poller on real servers: order, holes, late rows, reused ids, outages (US-01, D29, D38)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.config import load_config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.poller import Poller, open_poller
from msgx_driver.loops.pump import Pump
from msgx_driver.mailbox import Mailbox
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store
from tests.services.mariadb import MariaDbServer

INSERT = "insert into CMINMSGS (CMINMSGS_ID, CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED) values (%s, %s, %s)"
RECEIVED = datetime.fromisoformat("2026-09-09T10:00:00")
DELAY = 30.0
SENDERS = 4
ROUNDS = 30


START = datetime(2026, 9, 9, 2, 0, 5, tzinfo=UTC)


class SteppedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = START
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self.seconds += seconds


def flop(seqn: int, flid: str = "F", estt: str = "1") -> str:
    return (
        f"<MSG><META><SNDR>A</SNDR><SEQN>{seqn}</SEQN><TYPE>FLOP</TYPE><STYP>ESTT</STYP></META>"
        f"<FLOP><FLID>{flid}</FLID><ESTT>{estt}</ESTT></FLOP></MSG>"
    )


class Site:
    """One mailbox, one database, pollers on both."""

    def __init__(self, server: MariaDbServer, dsn: str) -> None:
        self.server = server
        self.dsn = dsn
        self.clock = SteppedClock()
        self.conn = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")
        self._stores: list[Any] = []
        self._mailboxes: list[Mailbox] = []

    def poller(self, *, max_bytes: int = 10_485_760, **keys: Any) -> Poller:
        """A new poller, as after a restart."""
        opened = Store.open(self.dsn, "msgx")
        self._stores.append(opened)
        config = self.server.config(**keys)
        self._mailboxes.append(Mailbox(config, max_bytes=max_bytes, read_only=True))
        return Poller(opened.__enter__(), self._mailboxes[-1], config, self.clock)

    def close(self) -> None:
        for mailbox in self._mailboxes:
            mailbox.close()
        for store in self._stores:
            store.__exit__(None, None, None)
        self.conn.close()

    def insert(self, *ids: int, body: object = None, received: datetime = RECEIVED) -> None:
        with self.server.connect() as conn, conn.cursor() as cursor:
            cursor.executemany(INSERT, [(i, body or flop(i), received) for i in ids])

    def value(self, query: str, *params: Any) -> Any:
        row = self.conn.execute(query.encode(), params).fetchone()
        return None if row is None else row[0]

    @property
    def ids(self) -> list[int]:
        return list(self.value("select coalesce(array_agg(message_id order by message_id), '{}') from proc_state"))

    @property
    def taken(self) -> list[int]:
        """Ids in the order in which they came into the queue."""
        query = "select coalesce(array_agg(message_id order by xmin::text::bigint, message_id), '{}') from proc_state"
        return list(self.value(query))

    @property
    def watermark(self) -> int:
        return int(self.value("select watermark from inbox_cursor"))

    @property
    def failures(self) -> int:
        return int(self.value("select failures from inbox_cursor"))

    def settle(self, poller: Poller) -> None:
        while poller.step():
            pass

    def pump(self) -> list[dict[str, Any]]:
        outcomes: list[dict[str, Any]] = []
        with Store.open(self.dsn, "msgx") as store:
            store.acquire_writer()

            def note(outcome: dict[str, Any]) -> bool:
                outcomes.append(outcome)
                return True

            Pump(store, SystemClock()).drain(note)
            store.release_writer()
        return outcomes


@pytest.fixture
def make_site(pg_server: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(server: MariaDbServer, *, binary: bool = False) -> Site:
        dsn = pg_server.new_database()
        with psycopg.connect(dsn, autocommit=True) as conn:
            migrate_up(conn, "msgx")
        server.reset(binary=binary)
        made.append(Site(server, dsn))
        return made[-1]

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site], mailbox: MariaDbServer) -> Site:
    return make_site(mailbox)


# ------------------------------------------------------------------------------------------------- plain reading


def test_rows_come_in_order_with_their_times_and_nothing_is_written_to_the_mailbox(site: Site) -> None:
    site.insert(*range(1, 8))
    before = site.server.rows("select * from CMINMSGS")
    poller = site.poller(batch_rows=3)
    site.settle(poller)
    assert site.ids == list(range(1, 8))
    assert site.watermark == 7
    assert site.value("select array_agg(distinct received_at) from proc_state") == [datetime(2026, 9, 9, 2, tzinfo=UTC)]
    assert site.value("select count(*) from proc_state where mailbox_id = message_id and not late") == 7
    assert site.server.rows("select * from CMINMSGS") == before
    site.settle(poller)
    site.settle(site.poller())
    assert site.ids == list(range(1, 8))
    assert [o["status"] for o in site.pump()] == ["SUCCEEDED"] * 7


def test_reading_starts_where_it_is_told_and_never_below(site: Site) -> None:
    site.insert(1, 2, 3, 4)
    poller = site.poller(start_at=3)
    site.settle(poller)
    site.clock.advance(600)
    site.settle(poller)
    assert site.ids == [3, 4]
    assert site.value("select scanned_at from inbox_cursor") == site.clock.now()


def test_the_first_start_must_be_told_and_a_replayed_schema_is_refused(site: Site) -> None:
    with pytest.raises(MsgxError, match=r"mailbox\.start_at") as told:
        site.poller(start_at=None).step()
    assert told.value.exit_code == ExitCode.CONFIG
    site.value("select enqueue_messages('replay', array[1], array['x'::bytea], array['text'], null, null)")
    with pytest.raises(MsgxError, match="another source") as refused:
        site.poller().step()
    assert refused.value.exit_code == ExitCode.CONFIG


def test_replay_refuses_the_schema_of_a_mailbox(site: Site) -> None:
    poller = site.poller()
    poller.step()
    assert poller.store.foreign_cursor("replay") == "mailbox"


def test_batches_are_bounded_by_bytes_and_a_longer_row_is_read_alone(site: Site) -> None:
    site.insert(1, 2, body="x" * 400)
    site.insert(3, body="y" * 2000)
    site.insert(4, 5, body="z" * 400)
    box = Mailbox(site.server.config(), max_bytes=10_000, read_only=True)
    after, batches = 0, []
    while after < 5:
        rows, after = box.rows(after, 5, max_rows=10, max_bytes=1000)
        batches.append([row.id for row in rows])
    box.close()
    assert batches == [[1, 2], [3], [4, 5]]


def test_gbk_in_a_binary_column(make_site: Callable[..., Site], mailbox: MariaDbServer) -> None:
    site = make_site(mailbox, binary=True)
    text = '<?xml version="1.0" encoding="GBK"?>' + flop(1).replace("ESTT", "REMC").replace(">1<", ">天气<", 2)
    body = text.replace("<SEQN>天气<", "<SEQN>1<").encode("gbk")
    site.insert(1, body=body)
    site.insert(2, body=flop(2).encode())
    site.settle(site.poller())
    assert site.value("select payload from message_raw where message_id = 1") == body
    assert site.value("select array_agg(distinct encoding::text) from message_raw") == ["bytes"]
    assert [o["status"] for o in site.pump()] == ["SUCCEEDED", "SUCCEEDED"]
    assert site.value("select remc from flight_schd where flid = 'F'") == "天气"


def test_the_type_of_the_column_may_change_under_a_reader(site: Site) -> None:
    gbk = ('<?xml version="1.0" encoding="GBK"?>' + flop(2, estt="轮椅")).encode("gbk")
    poller = site.poller()
    site.insert(1)
    site.settle(poller)
    for kind, number, body in (("longblob", 2, gbk), ("longtext character set utf8mb4", 3, flop(3, estt="要客"))):
        if number == 3:
            site.server.execute("delete from CMINMSGS where CMINMSGS_ID = 2")
        site.server.execute(f"alter table CMINMSGS modify CMINMSGS_CLOB_MSG {kind}")
        site.insert(number, body=body)
        site.settle(poller)
    site.pump()
    assert site.value("select array_agg(encoding::text order by message_id) from message_raw") == [
        "text",
        "bytes",
        "text",
    ]
    assert site.value("select payload from message_raw where message_id = 2") == gbk
    assert site.value("select estt from flight_schd") == "要客"


def test_what_a_text_column_cannot_map_is_never_replaced(site: Site) -> None:
    """A GBK column: what has a code point comes as text; what has none comes as the bytes that are stored."""
    site.server.execute("alter table CMINMSGS modify CMINMSGS_CLOB_MSG longtext character set gbk")
    site.insert(1, body=flop(1, estt="轮椅"))
    with site.server.connect() as conn, conn.cursor() as cursor:
        odd = flop(2, estt="??").encode().replace(b"??", b"\xaa\xa1")
        cursor.execute(
            "insert into CMINMSGS (CMINMSGS_ID, CMINMSGS_CLOB_MSG) values (2, convert(_binary %s using gbk))", (odd,)
        )
    site.settle(site.poller())
    assert site.value("select payload from message_raw where message_id = 1") == flop(1, estt="轮椅").encode()
    assert site.value("select array_agg(encoding::text order by message_id) from message_raw") == ["text", "bytes"]
    assert site.value("select payload from message_raw where message_id = 2") == odd


def test_text_null_and_oversized_rows_end_as_messages(site: Site) -> None:
    site.conn.execute("select set_setting('wire.max_bytes', '1000', null)")
    site.insert(1, body=flop(1, estt="天"))
    site.server.execute("insert into CMINMSGS (CMINMSGS_ID) values (2)")
    site.insert(3, body=flop(3).replace("<MSG>", "<MSG>" + " 天" * 100_000))
    site.insert(4)
    site.settle(site.poller(max_bytes=1000))
    assert site.value("select encoding from message_raw where message_id = 1") == "text"
    assert site.value("select octet_length(payload) from message_raw where message_id = 3") == 1001
    outcomes = site.pump()
    assert [o["status"] for o in outcomes] == ["SUCCEEDED", "DEAD", "DEAD", "SUCCEEDED"]
    assert "capacity" in outcomes[2]["reason"]
    assert outcomes[2]["error_class"] == "MALFORMED"


# ------------------------------------------------------------------------------------------------- holes and order


def test_an_id_that_commits_late_is_waited_for(site: Site) -> None:
    poller = site.poller()
    late, early = site.server.connect(), site.server.connect()
    late.begin()
    late.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (flop(1),))
    early.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (flop(2),))
    for _ in range(5):
        site.settle(poller)
        site.clock.advance(5)
        assert site.ids == []
    late.commit()
    site.settle(poller)
    assert site.taken == [1, 2]
    assert site.value("select filled_at is not null and given_up_at is null from inbox_gap") is True
    late.close()
    early.close()


@pytest.mark.parametrize("sees_transactions", [True, False])
def test_a_hole_ends_with_its_transaction_or_after_the_delay(site: Site, sees_transactions: bool) -> None:
    poller = site.poller(user=site.server.user if sees_transactions else site.server.plain_user)
    with site.server.connect() as gone, site.server.connect() as other:
        gone.begin()
        gone.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values ('x')")
        other.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (flop(2),))
        for _ in range(3):
            site.settle(poller)
            site.clock.advance(1)
        if sees_transactions:
            poll_until(site, poller, lambda: site.value("select waits_for is not null from inbox_gap"), "the list")
        assert site.ids == []
        gone.rollback()
        if sees_transactions:
            poll_until(site, poller, lambda: site.ids == [2], "the end of the hole")
        site.settle(poller)
    assert site.ids == ([2] if sees_transactions else [])
    left = DELAY - (site.clock.now() - START).total_seconds()
    assert left > 5
    site.clock.advance(left - 0.1)
    site.settle(poller)
    assert site.ids == ([2] if sees_transactions else [])
    site.clock.advance(0.1)
    site.settle(poller)
    assert site.ids == [2]


def poll_until(site: Site, poller: Poller, reached: Callable[[], Any], what: str) -> None:
    """Poll every half second of the test's clock; the server looks anew after 0.1 real seconds without a question."""

    def poll() -> Any:
        site.clock.advance(0.5)
        site.settle(poller)
        return reached()

    wait_until(poll, timeout=10, clock=SystemClock(), interval=0.2, what=what)


def test_others_who_ask_all_the_time_make_no_hole_end_early(site: Site) -> None:
    """The server then answers from an old copy, in which the transaction that will fill the hole may be missing."""
    poller = site.poller()
    with site.server.connect() as late, site.server.connect() as other, site.server.connect_admin() as watcher:
        asking = watcher.cursor()
        asking.execute("select count(*) from information_schema.innodb_trx")
        late.begin()
        late.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (flop(1),))
        other.cursor().execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (flop(2),))
        for _ in range(20):
            asking.execute("select count(*) from information_schema.innodb_trx")
            site.clock.advance(0.5)
            site.settle(poller)
        assert site.ids == []
        late.commit()
    poll_until(site, poller, lambda: site.ids == [1, 2], "both rows")


def test_a_thousand_missing_ids_and_many_holes_age_side_by_side(site: Site) -> None:
    site.insert(1, 1002, *range(1010, 1050, 2))
    poller = site.poller(user=site.server.plain_user)
    site.settle(poller)
    assert site.ids == [1]
    assert site.value("select count(*) from inbox_gap") == 21
    site.clock.advance(DELAY)
    site.settle(poller)
    assert site.ids == [1, 1002, *range(1010, 1050, 2)]
    assert site.value("select count(*) from inbox_gap where given_up_at is null") == 0


def test_a_restart_does_not_make_a_hole_younger(site: Site) -> None:
    site.insert(1, 3)
    site.settle(site.poller(user=site.server.plain_user))
    site.clock.advance(DELAY - 1)
    site.settle(site.poller(user=site.server.plain_user))
    assert site.ids == [1]
    site.clock.advance(1)
    site.settle(site.poller(user=site.server.plain_user))
    assert site.ids == [1, 3]


def test_stepped_ids_have_no_holes_between_them(site: Site) -> None:
    site.insert(1, 3, 5, 9)
    poller = site.poller(id_step=2, user=site.server.plain_user)
    site.settle(poller)
    assert site.ids == [1, 3, 5]
    site.insert(7)
    site.settle(poller)
    assert site.taken == [1, 3, 5, 7, 9]


def test_many_senders_at_once_and_nobody_is_overtaken(site: Site) -> None:
    """Transactions of random length commit or roll back while the poller polls; with PROCESS nothing comes late."""
    site.conn.execute("select set_setting('pipeline.max_commit_delay', '99999', null)")
    start = threading.Barrier(SENDERS + 1)

    def send(seed: int) -> int:
        chance, committed = random.Random(seed), 0
        with site.server.connect() as conn, conn.cursor() as cursor:
            start.wait()
            for _ in range(ROUNDS):
                rows = chance.randint(1, 3)
                conn.begin()
                for _ in range(rows):
                    cursor.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values ('x')")
                    SystemClock().sleep(chance.random() * 0.05)
                if chance.random() < 0.3:
                    conn.rollback()
                else:
                    conn.commit()
                    committed += rows
        return committed

    with Store.open(site.dsn, "msgx") as store, ThreadPoolExecutor(SENDERS) as threads:
        config = site.server.config()
        box = Mailbox(config, max_bytes=1000, read_only=True)
        poller = Poller(store, box, config, SystemClock())
        sending = [threads.submit(send, seed) for seed in range(SENDERS)]
        start.wait()
        while not all(future.done() for future in sending):
            poller.step()
        # A later row makes the last holes visible.
        site.server.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values ('last')")
        committed = sum(future.result() for future in sending) + 1

        def all_taken() -> bool:
            poller.step()
            return len(site.ids) == committed

        wait_until(all_taken, timeout=30, clock=SystemClock(), interval=0.02, what="all rows to be taken")
        box.close()
    assert site.ids == [row[0] for row in site.server.rows("select CMINMSGS_ID from CMINMSGS order by 1")]
    assert site.taken == site.ids
    assert site.value("select count(*) from proc_state where late") == 0
    assert site.value("select count(*) from inbox_gap where given_up_at is not null and filled_at is not null") == 0
    assert site.value("select count(*) from inbox_gap where given_up_at is not null") > 0


# ------------------------------------------------------------------------------------------------- behind the watermark


def late_row(site: Site, poller: Poller, flid: str) -> list[dict[str, Any]]:
    """Rows 1 and 3 are processed, then row 2 appears; return its outcome."""
    site.insert(1, 3)
    site.settle(poller)
    site.clock.advance(DELAY)
    site.settle(poller)
    assert [o["status"] for o in site.pump()] == ["SUCCEEDED", "SUCCEEDED"]
    site.insert(2, body=flop(2, flid, "9"))
    site.settle(poller)
    assert site.ids == [1, 3]
    site.clock.advance(60)
    site.settle(poller)
    assert site.ids == [1, 2, 3]
    assert site.value("select array_agg(message_id) from proc_state where late") == [2]
    assert site.value("select filled_at is not null and given_up_at is not null from inbox_gap") is True
    return site.pump()


def test_a_late_row_that_meets_nothing_later_is_processed(site: Site) -> None:
    outcomes = late_row(site, site.poller(user=site.server.plain_user), "OTHER")
    assert [(o["message_id"], o["status"]) for o in outcomes] == [(2, "SUCCEEDED")]


def test_a_late_row_that_was_overtaken_ends_dead(site: Site) -> None:
    outcomes = late_row(site, site.poller(user=site.server.plain_user), "F")
    assert [(o["status"], o["error_class"]) for o in outcomes] == [("DEAD", "INFRA")]
    assert outcomes[0]["reason"].startswith("late-overtaken: message 2 came late, flight F was written by message 3")
    assert site.value("select estt from flight_schd where flid = 'F'") == "1"


def test_the_rescan_pages_and_is_not_held_up_by_what_is_not_marked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msgx_driver.loops.poller.SCAN_IDS", 3)
    site.insert(*range(1, 9), 10)
    poller = site.poller(user=site.server.plain_user)
    site.settle(poller)
    site.clock.advance(DELAY)
    site.settle(poller)
    assert site.watermark == 10
    site.insert(9)
    site.clock.advance(60)
    assert poller.step()
    assert site.value("select rescan_from from inbox_cursor") == 4
    # A restart goes on where it was.
    site.settle(site.poller(user=site.server.plain_user))
    assert site.ids == list(range(1, 11))
    assert site.value("select count(*) from proc_state where backfill_status = 'DONE'") == 0


def test_an_id_used_again_stops_the_polling(site: Site) -> None:
    site.insert(1, 2)
    poller = site.poller()
    site.settle(poller)
    site.server.execute("delete from CMINMSGS where CMINMSGS_ID = 2")
    site.insert(2, 3, received=RECEIVED + timedelta(hours=1))
    site.clock.advance(60)
    for expected in (1, 2):
        with pytest.raises(psycopg.Error) as raised:
            site.poller().step()
        assert raised.value.sqlstate == "MX313"
        assert site.failures == expected
    assert site.ids == [1, 2]


def test_other_bytes_under_a_known_id_stop_the_polling(site: Site) -> None:
    site.insert(1)
    site.settle(site.poller())
    site.server.execute("update CMINMSGS set CMINMSGS_CLOB_MSG = 'other'")
    site.conn.execute("update inbox_cursor set watermark = 0")
    with pytest.raises(psycopg.Error) as raised:
        site.poller().step()
    assert raised.value.sqlstate == "MX313"


def test_a_mailbox_that_is_behind_the_watermark_stops_the_polling_until_the_offset_is_set(site: Site) -> None:
    site.insert(1, 2, 3)
    poller = site.poller()
    site.settle(poller)
    site.server.execute("truncate table CMINMSGS")
    site.settle(poller)
    site.insert(1, body=flop(4), received=RECEIVED + timedelta(days=1))
    with pytest.raises(psycopg.Error) as raised:
        poller.step()
    assert raised.value.sqlstate == "MX311"
    # As docs/reference/errors.md says.
    site.conn.execute("update inbox_cursor set id_offset = 3, watermark = 0, first_id = 1, rescan_from = null")
    site.settle(poller)
    assert site.ids == [1, 2, 3, 4]
    assert site.value("select mailbox_id from proc_state where message_id = 4") == 1


# ------------------------------------------------------------------------------------------------- outages and company


def test_a_mailbox_that_goes_and_comes_back(make_site: Callable[..., Site], local_mailbox: MariaDbServer) -> None:
    site = make_site(local_mailbox)
    site.insert(1, 2)
    poller = site.poller()
    site.settle(poller)
    local_mailbox.kill()
    try:
        for expected in (1, 2):
            with pytest.raises(MsgxError, match="the mailbox does not answer") as down:
                poller.step()
            assert down.value.exit_code == ExitCode.UNREACHABLE
            assert site.failures == expected
    finally:
        local_mailbox.start()
    site.insert(3)
    site.settle(poller)
    assert (site.ids, site.failures) == ([1, 2, 3], 0)
    assert local_mailbox.rows("select count(*) from CMINMSGS where CMINMSGS_DATE_PROCESSED is not null") == [(0,)]


def test_a_refused_batch_leaves_the_watermark_and_is_taken_afterwards(site: Site) -> None:
    site.insert(1, 2)
    poller = site.poller(batch_rows=1)
    site.conn.execute("alter table message_raw add constraint trial check (message_id <> 2)")
    with pytest.raises(psycopg.errors.CheckViolation):
        poller.step()
    assert (site.ids, site.watermark, site.failures) == ([1], 1, 1)
    site.conn.execute("alter table message_raw drop constraint trial")
    site.settle(poller)
    assert (site.ids, site.watermark, site.failures) == ([1, 2], 2, 0)


def test_two_pollers_take_turns(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.insert(1, 2)
    first, second = site.poller(), site.poller()
    first.step()
    site.insert(3)
    ids_after = second._mailbox.ids_after

    def overtaken(after: int, limit: int) -> list[int]:
        found = ids_after(after, limit)
        first.step()
        return found

    monkeypatch.setattr(second._mailbox, "ids_after", overtaken)
    assert second.step() is False
    assert (site.ids, site.watermark, site.failures) == ([1, 2, 3], 3, 0)


def test_a_missing_table_and_a_wrong_password_are_named_without_secrets(site: Site) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"table": "NOWHERE"}, "NOWHERE"),
        ({"password": "not-this-one"}, "Access denied"),
    ]
    for keys, text in wrong:
        with pytest.raises(MsgxError, match=text) as raised:
            site.poller(**keys).step()
        assert raised.value.exit_code == ExitCode.UNREACHABLE
        assert "not-this-one" not in str(raised.value)


def test_open_poller_needs_a_mailbox(site: Site) -> None:
    with (
        Store.open(site.dsn, "msgx") as store,
        pytest.raises(MsgxError, match="names no mailbox"),
        open_poller(store, load_config(environ={}), site.clock, max_bytes=1000),
    ):
        pass
