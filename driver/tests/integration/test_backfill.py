"""The backfill on real servers: what is marked, when, once, and what happens when it cannot be (US-09, D17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from msgx_driver import mailbox as mailbox_adapter
from msgx_driver.clock import SystemClock
from msgx_driver.config import load_config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.backfill import Backfill, open_backfill
from msgx_driver.loops.poller import Poller
from msgx_driver.loops.pump import Pump
from msgx_driver.mailbox import Mailbox, Mark
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store
from tests.services.mariadb import MariaDbServer

STATUSES = {"SUCCEEDED": "OK", "SKIPPED": "SKIP", "DEAD": None}
MARKS = "select CMINMSGS_ID, CMINMSGS_DATE_PROCESSED, CMINMSGS_STATUS from CMINMSGS order by 1"
COMPLETED = "select mailbox_id, date_trunc('second', processed_at) from proc_state order by 1"


def flop(seqn: int, kind: str = "ESTT") -> str:
    return (
        f"<MSG><META><SNDR>A</SNDR><SEQN>{seqn}</SEQN><TYPE>FLOP</TYPE><STYP>{kind}</STYP></META>"
        "<FLOP><FLID>F</FLID><ESTT>1</ESTT></FLOP></MSG>"
    )


class MovedClock(SystemClock):
    """The clock of the machine, moved forward by a test; monotonic time moves along."""

    def __init__(self) -> None:
        self.moved = 0.0

    def now(self) -> Any:
        return None

    def monotonic(self) -> float:
        return super().monotonic() + self.moved


class Site:
    """One mailbox, one database, workers on both; `moved` of the clock also shifts what is due in the database."""

    def __init__(self, server: MariaDbServer, dsn: str) -> None:
        self.server = server
        self.dsn = dsn
        self.stack = ExitStack()
        self.conn = psycopg.connect(dsn, autocommit=True, options="-c search_path=msgx")
        self.stack.callback(self.conn.close)
        self.clock = MovedClock()

    def store(self) -> Store:
        return self.stack.enter_context(Store.open(self.dsn, "msgx"))

    def mailbox(self, *, read_only: bool = False, **keys: Any) -> Mailbox:
        made = Mailbox(self.server.config(**keys), max_bytes=10_485_760, read_only=read_only)
        self.stack.callback(made.close)
        return made

    def worker(self, *, statuses: dict[str, str | None] | None = None, batch: int = 500) -> Backfill:
        return Backfill(
            self.store(), self.mailbox(), self.clock, source="mailbox", statuses=statuses or STATUSES, batch=batch
        )

    def process(self, *bodies: str | None) -> None:
        """Write rows into the mailbox, take them, process them all."""
        with self.server.connect() as conn, conn.cursor() as cursor:
            cursor.executemany("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", [(b,) for b in bodies])
        store = self.store()
        while Poller(store, self.mailbox(read_only=True), self.server.config(), SystemClock()).step():
            pass
        store.acquire_writer()
        Pump(store, SystemClock()).drain(lambda _: True)
        store.release_writer()

    def value(self, query: str) -> Any:
        row = self.conn.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def completed(self) -> dict[int, datetime]:
        """Completion times as the mailbox keeps them: local, whole seconds."""
        zone = ZoneInfo("Asia/Shanghai")
        rows = self.conn.execute(COMPLETED.encode()).fetchall()
        return {i: at.astimezone(zone).replace(tzinfo=None) for i, at in rows if at}


@pytest.fixture
def make_site(pg_server: Any) -> Iterator[Callable[[MariaDbServer], Site]]:
    made: list[Site] = []

    def make(server: MariaDbServer) -> Site:
        dsn = pg_server.new_database()
        with psycopg.connect(dsn, autocommit=True) as conn:
            migrate_up(conn, "msgx")
        server.reset()
        made.append(Site(server, dsn))
        return made[-1]

    yield make
    for site in made:
        site.stack.close()


@pytest.fixture
def site(make_site: Callable[[MariaDbServer], Site], mailbox: MariaDbServer) -> Site:
    return make_site(mailbox)


def test_all_four_ends_are_marked_and_nothing_else(site: Site) -> None:
    ignored = flop(4).replace(">FLOP<", ">LDM<").replace("FLOP", "LDM")
    site.process(flop(1), flop(1), ignored, "<no xml", flop(2))
    site.conn.execute("select enqueue_inbox('mailbox', 5, 6, '{6}', '{x}', '{text}', '{null}', null)")
    site.server.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values ('pending')")
    worker = site.worker()
    assert worker.step() == 5
    assert worker.step() == 0
    at = site.completed()
    assert site.server.rows(MARKS) == [
        (1, at[1], "OK"),
        (2, at[2], "SKIP"),
        (3, at[3], "SKIP"),
        (4, at[4], None),
        (5, at[5], "OK"),
        (6, None, None),
    ]
    assert site.value("select array_agg(distinct backfill_status::text) from proc_state where mailbox_id < 6") == [
        "DONE"
    ]
    assert site.value("select count(*) from backfill_todo") == 0


def test_a_mark_repeated_after_a_crash_is_the_same(site: Site) -> None:
    site.process(flop(1), flop(2))
    dying = site.worker()
    items = dying.store.claim_backfill("mailbox", dying.token, limit=10, lease_seconds=60)
    assert items is not None
    dying._mailbox.mark([Mark(i.mailbox_id, i.completed_at, "OK") for i in items])
    before = site.server.rows(MARKS)
    # It ends here, unconfirmed; its lease runs out.
    site.conn.execute("update delivery_target set lease_until = now() where target = 'MAILBOX'")
    worker = site.worker()
    assert worker.step() == 2
    assert site.server.rows(MARKS) == before
    with pytest.raises(psycopg.Error) as raised:
        dying.store.confirm_backfill(dying.token, items)
    assert raised.value.sqlstate == "MX503"


def test_batches_and_a_second_worker_that_stands_by(site: Site) -> None:
    site.process(*(flop(n) for n in range(1, 6)))
    first, second = site.worker(batch=2), site.worker()
    assert first.step() == 2
    assert second.step() == 0
    assert [first.step(), first.step(), first.step()] == [2, 1, 0]
    first.release()
    site.clock.moved += 2
    assert second.step() == 0
    assert site.value("select count(*) from proc_state where backfill_status = 'DONE'") == 5


def test_a_row_that_has_gone_counts_as_done(site: Site) -> None:
    site.process(flop(1), flop(2))
    site.server.execute("delete from CMINMSGS where CMINMSGS_ID = 1")
    assert site.worker().step() == 2
    assert site.value("select count(*) from proc_state where backfill_status = 'DONE'") == 2


def test_rows_of_an_older_numbering_are_never_marked(site: Site) -> None:
    site.process(flop(1), flop(2))
    site.conn.execute("update inbox_cursor set id_offset = 2, watermark = 0")
    assert site.worker().step() == 2
    assert [row[1] for row in site.server.rows(MARKS)] == [None, None]


def test_a_requeue_since_the_claim_keeps_its_own_mark_due(site: Site) -> None:
    site.process(flop(1))
    worker = site.worker()
    stale = worker.store.claim_backfill("mailbox", worker.token, limit=10, lease_seconds=60)
    assert stale is not None
    site.conn.execute("update proc_state set backfill_seq = 2, processed_at = processed_at + interval '1 hour'")
    assert worker.store.confirm_backfill(worker.token, stale) == 0
    assert worker.step() == 1
    newer = site.server.rows(MARKS)
    assert newer[0][1] == site.completed()[1]
    # The older mark comes afterwards: it changes nothing.
    worker._mailbox.mark([Mark(i.mailbox_id, i.completed_at, "OLD") for i in stale])
    assert site.server.rows(MARKS) == newer


def test_one_refused_mark_waits_and_holds_back_nobody(site: Site) -> None:
    site.process(flop(1), flop(2), "<no xml")
    worker = site.worker(statuses=STATUSES | {"DEAD": "x" * 21})
    assert worker.step() == 2
    assert site.value("select array_agg(mailbox_id) from backfill_todo") == [3]
    attempts = "select backfill_attempts from proc_state where mailbox_id = 3"
    assert site.value(attempts) == 1
    assert "Data too long" in site.value("select last_error from delivery_target where target = 'MAILBOX'")
    # It waits for its backoff, until it is overdue.
    site.conn.execute("update proc_state set backfill_next_at = now() + interval '100 seconds'")
    assert worker.step() == 0
    assert site.value(attempts) == 1
    site.conn.execute("update proc_state set enqueued_at = now() - interval '2 hours'")
    assert worker.step() == 0
    assert site.value(attempts) == 2
    worker.release()
    assert site.worker().step() == 1
    assert site.server.rows(MARKS)[2][1] == site.completed()[3]


def test_a_locked_row_is_tried_again_and_holds_back_nobody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mailbox_adapter.LOCK_SECONDS < mailbox_adapter.ANSWER_SECONDS
    monkeypatch.setattr(mailbox_adapter, "LOCK_SECONDS", 1)
    site.process(flop(1), flop(2), flop(3))
    worker = site.worker()
    with site.server.connect() as busy:
        busy.begin()
        busy.cursor().execute("select * from CMINMSGS where CMINMSGS_ID = 2 for update")
        assert worker.step() == 2
    assert site.value("select array_agg(mailbox_id) from backfill_todo") == [2]
    assert site.value("select backfill_attempts from proc_state where mailbox_id = 2") == 1
    assert site.value("select blocked_since from delivery_target where target = 'MAILBOX'") is None
    site.conn.execute("update proc_state set backfill_next_at = now()")
    assert worker.step() == 1


def test_a_mark_that_a_trigger_refuses_holds_back_nobody(site: Site) -> None:
    site.server.execute(
        "create trigger refuses before update on CMINMSGS for each row"
        " if new.CMINMSGS_ID = 2 then signal sqlstate '45000' set message_text = 'not this one'; end if"
    )
    site.process(flop(1), flop(2), flop(3))
    worker = site.worker()
    assert worker.step() == 2
    assert site.value("select array_agg(mailbox_id) from backfill_todo") == [2]
    assert "not this one" in site.value("select last_error from delivery_target where target = 'MAILBOX'")
    site.server.execute("drop trigger refuses")
    site.conn.execute("update proc_state set backfill_next_at = now()")
    assert worker.step() == 1


def test_the_receive_time_stays_where_the_column_would_change_it(site: Site) -> None:
    site.server.execute(
        "alter table CMINMSGS modify CMINMSGS_DATE_RECEIVED timestamp not null default current_timestamp"
        " on update current_timestamp"
    )
    site.process(flop(1))
    site.server.execute("update CMINMSGS set CMINMSGS_DATE_RECEIVED = '2026-09-09 10:00:00'")
    received = site.server.rows("select CMINMSGS_DATE_RECEIVED from CMINMSGS")
    assert site.worker().step() == 1
    assert site.server.rows(MARKS)[0][1] == site.completed()[1]
    assert site.server.rows("select CMINMSGS_DATE_RECEIVED from CMINMSGS") == received


def test_a_mailbox_that_is_down_exhausts_nothing(
    make_site: Callable[[MariaDbServer], Site], local_mailbox: MariaDbServer
) -> None:
    site = make_site(local_mailbox)
    site.process(flop(1))
    worker = site.worker()
    local_mailbox.stop()
    target = "select blocked_since is not null, failures from delivery_target where target = 'MAILBOX'"
    try:
        assert worker.step() == 0
        assert site.conn.execute(target).fetchone() == (True, 1)
        # Within the backoff nobody is asked.
        assert worker.step() == 0
        assert site.conn.execute(target).fetchone() == (True, 1)
        site.clock.moved += 1.1
        assert worker.step() == 0
        assert site.conn.execute(target).fetchone() == (True, 2)
    finally:
        local_mailbox.start()
    assert site.value("select backfill_attempts from proc_state") == 0
    site.clock.moved += 2.1
    assert worker.step() == 1
    assert site.conn.execute(target).fetchone() == (False, 0)
    assert local_mailbox.rows(MARKS)[0][1] == site.completed()[1]


def test_shadow_never_writes(site: Site) -> None:
    site.process(flop(1))
    environ = {
        "MSGX_ENVIRONMENT": "shadow",
        "MSGX_MAILBOX__HOST": site.server.host,
        "MSGX_MAILBOX__PORT": str(site.server.port),
        "MSGX_MAILBOX__USER": site.server.user,
        "MSGX_MAILBOX__PASSWORD": site.server.password,
        "MSGX_MAILBOX__DATABASE": site.server.database,
    }
    with (
        open_backfill(site.store(), load_config(environ=environ), site.clock) as worker,
        pytest.raises(MsgxError, match="never writes") as raised,
    ):
        worker.step()
    assert raised.value.exit_code == ExitCode.CONFIG
    assert site.server.rows(MARKS)[0][1:] == (None, None)


def test_a_claim_that_only_this_server_knows_is_dropped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.process(flop(1))
    worker = site.worker()
    monkeypatch.setattr(worker.store, "claim_backfill", lambda *_, **__: None)
    assert worker.step() == 0
    assert site.server.rows(MARKS)[0][1:] == (None, None)
