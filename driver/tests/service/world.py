"""A whole installation for tests: mailbox, database, broker, services, and the counting that trusts none of them.

What must be true at the end is worked out from the mailbox alone: its rows are replayed in order into a fresh database.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg

from msgx_driver.clock import SystemClock
from msgx_driver.generate import Day
from msgx_driver.loops.pump import Pump
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store
from tests.chaos.tables import Contents, contents, differences
from tests.service.conftest import Running, Services, eventually

# One attempt for unsupported kinds: a backoff of seconds at every one of them would be most of the time.
SETTINGS = (
    "select set_setting('pipeline.unsupported_attempts', '1', null), set_setting('pipeline.max_attempts', '99', null),"
    " set_setting('pipeline.max_commit_delay', '2', null)"
)
# What only a service writes, or writes differently from a replay.
SERVICE_TABLES = ("inbox_cursor", "inbox_gap", "delivery_target", "loop_status")
OF_DELIVERY = {"status", "attempts", "lease_token", "next_attempt_at", "last_error", "sent_at"}
OF_SERVICE = {"source", "mailbox_id", "late", "backfill_status", "backfill_attempts", "backfill_next_at", "raw_hash"}


def day_bytes(day: Day) -> list[bytes]:
    """The messages of a generated day as a binary column holds them: text in the encoding that it declares."""
    found = []
    for message in day.messages:
        if message.text is None:
            found.append(message.payload)
            continue
        declared = re.match(r"""\s*<\?xml[^>]*encoding=["']([\w-]+)""", message.text)
        found.append(message.text.encode(declared[1] if declared else "utf-8"))
    return found


@dataclass
class World:
    """`mailbox` is a MariaDbServer with empty tables, `broker` a KafkaServer with the two topics."""

    dsn: str
    mailbox: Any
    broker: Any
    services: Services
    topics: tuple[str, str]
    catch_up_depth: int = 5
    environment: dict[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """Migrate the database; keep a connection for looking."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            migrate_up(conn, "msgx")
            conn.execute("set search_path = msgx")
            conn.execute(SETTINGS.encode())
        self.connect()

    def close(self) -> None:
        """Close the looking connection."""
        self.conn.close()

    def connect(self) -> None:
        """Open the looking connection."""
        self.conn = psycopg.connect(self.dsn, autocommit=True, options="-c search_path=msgx")

    def start(self, *options: str) -> Running:
        """Start a service with all loops."""
        settings = {
            "MSGX_MAILBOX__HOST": "127.0.0.1",
            "MSGX_MAILBOX__PORT": str(self.mailbox.port),
            "MSGX_MAILBOX__USER": self.mailbox.user,
            "MSGX_MAILBOX__PASSWORD": self.mailbox.password,
            "MSGX_MAILBOX__DATABASE": self.mailbox.database,
            "MSGX_MAILBOX__START_AT": "1",
            "MSGX_MAILBOX__POLL_SECONDS": "0.1",
            "MSGX_MAILBOX__RESCAN_SECONDS": "2",
            "MSGX_KAFKA__BOOTSTRAP": self.broker.bootstrap,
            "MSGX_KAFKA__TOPIC_SCHD": self.topics[0],
            "MSGX_KAFKA__TOPIC_MSG": self.topics[1],
            "MSGX_KAFKA__MESSAGE_TIMEOUT_MS": "2000",
            "MSGX_KAFKA__LEASE_SECONDS": "8",
            "MSGX_SERVICE__CATCH_UP_DEPTH": str(self.catch_up_depth),
        }
        return self.services.start(self.dsn, *options, **settings, **self.environment)

    def value(self, query: str) -> Any:
        """First value of a query."""
        row = self.conn.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def progress(self) -> dict[str, int]:
        """How far each stage is."""
        row = self.conn.execute(
            "select (select count(*) from proc_state),"
            " (select count(*) from proc_state where processed_at is not null),"
            " (select count(*) from msg_event where status = 'SENT'),"
            " (select count(*) from proc_state where backfill_status = 'DONE')"
        ).fetchone()
        assert row is not None
        return dict(zip(("enqueued", "finished", "sent", "marked"), row, strict=True))

    def settled(self) -> bool:
        """Everything in the mailbox is terminal, delivered and marked."""
        rows = self.mailbox.rows("select count(*), count(CMINMSGS_DATE_PROCESSED) from CMINMSGS")[0]
        done = self.progress()
        open_events = self.value("select count(*) from msg_event where status = 'PENDING'")
        return bool(rows[0] == rows[1] == done["finished"] == done["marked"] and open_events == 0)

    def wait_until_settled(self, timeout: float) -> None:
        """Wait for that."""
        eventually(self.settled, f"everything to be delivered and marked; now {self.progress()}", timeout)

    # ------------------------------------------------------------ what must be true

    def undisturbed(self, dsn: str) -> Contents:
        """Tables after the same rows of the mailbox went through engine and decoder in order, in a fresh database."""
        rows = self.mailbox.rows("select CMINMSGS_ID, CMINMSGS_CLOB_MSG from CMINMSGS order by CMINMSGS_ID")
        logging.getLogger("msgx_driver").setLevel(logging.ERROR)
        with psycopg.connect(dsn, autocommit=True) as conn:
            migrate_up(conn, "msgx")
            conn.execute("set search_path = msgx")
            conn.execute(SETTINGS.encode())
        with Store.open(dsn, "msgx") as store:
            store.acquire_writer()
            store.enqueue("undisturbed", [(int(i), bytes(body), "bytes") for i, body in rows])
            Pump(store, SystemClock()).drain(lambda _: True)
            store.release_writer()
        return comparable(contents(dsn, "msgx"))

    def account(self, fresh_dsn: str) -> dict[str, int]:
        """Compare tables, mailbox and broker with what must be true; returns the counts. Raises AssertionError."""
        found = comparable(contents(self.dsn, "msgx"))
        assert differences(found, self.undisturbed(fresh_dsn)) == []
        assert self.value("select count(*) from consistency_check") == 0
        self._account_mailbox()
        return self._account_broker()

    def _account_mailbox(self) -> None:
        marks = dict(self.mailbox.rows("select CMINMSGS_ID, CMINMSGS_DATE_PROCESSED from CMINMSGS"))
        ends: dict[int, Any] = dict(
            self.conn.execute(
                "select mailbox_id, date_trunc('second', processed_at at time zone 'Asia/Shanghai') from proc_state"
            ).fetchall()
        )
        assert marks.keys() == ends.keys()
        assert {i for i in marks if marks[i].replace(microsecond=0) != ends[i]} == set()

    def _account_broker(self) -> dict[str, int]:
        records = self.broker.read(self.topics)
        states: dict[str, dict[str, Any]] = {}
        versions: dict[str, int] = {}
        seen: dict[int, bytes | None] = {}
        order: dict[tuple[str, int], list[int]] = {}
        again = 0
        for record in records:
            event_id, version = int(record.headers["event_id"]), int(record.headers["state_version"])
            flid = record.key.decode()
            if event_id in seen:
                again += 1
                assert seen[event_id] == record.value, f"event {event_id} came again with another value"
            seen.setdefault(event_id, record.value)
            if record.topic == self.topics[1]:
                first = order.setdefault((record.topic, record.partition), [])
                if event_id not in first:
                    assert not first or event_id > first[-1], f"notice {event_id} overtook"
                    first.append(event_id)
                continue
            assert version >= versions.get(flid, 0), f"flight {flid} went back from {versions[flid]} to {version}"
            versions[flid] = version
            value = json.loads(record.value)
            if value.get("DELETED"):
                states.pop(flid, None)
            else:
                states[flid] = value
        expected = {row[0]["FLID"]: row[0] for row in self.conn.execute("select flight_projection(null)").fetchall()}
        assert states.keys() == expected.keys()
        lost = sum(states[flid] != expected[flid] for flid in expected)
        notices = {
            i for (i,) in self.conn.execute("select event_id from msg_event where target = 'KAFKA:msg'").fetchall()
        }
        lost += len(notices - {i for ids in order.values() for i in ids})
        events = Counter(self.conn.execute("select event_id from msg_event").fetchall())
        doubled = sum(n - 1 for n in events.values())
        return {"records": len(records), "again": again, "lost": lost, "doubled": doubled}


def comparable(found: Contents) -> Contents:
    """The tables without what depends on how and when messages came and went."""
    kept = {table: rows for table, rows in found.items() if table not in SERVICE_TABLES}
    kept["msg_event"] = [without(row, OF_DELIVERY) for row in kept["msg_event"]]
    kept["message_raw"] = [without(row, {"encoding"}) for row in kept["message_raw"]]
    kept["proc_state"] = [
        # D35: a suspect is charged an attempt; only what ended DEAD keeps its count.
        without(row, OF_SERVICE | {"attempts"})
        for row in kept["proc_state"]
    ]
    return {
        table: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))
        for table, rows in kept.items()
    }


def without(row: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    """A row less some columns."""
    return {key: value for key, value in row.items() if key not in keys}
