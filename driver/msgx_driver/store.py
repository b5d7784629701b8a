"""The driver's one door to PostgreSQL: named statements, one method per call of the engine (contract §4).

Errors of the connection become MsgxError UNREACHABLE; errors that say "this caller or this schema is wrong" become the
exit code of their SQLSTATE; what concerns one message stays a psycopg.Error for the pump to record.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from importlib import resources
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.mailbox import Row
from msgx_driver.migrate import pending_migrations
from msgx_driver.wire.fields import FieldCatalogue, FieldSpec

__all__ = ["CONTRACT_VERSION", "BackfillItem", "Event", "Head", "InboxCursor", "Store", "stop_error", "waits"]

CONTRACT_VERSION: Final = 1
_STOP_EXIT: Final = {
    "MX0": ExitCode.UNEXPECTED,
    "MX3": ExitCode.SCHEMA,
    "MX4": ExitCode.OTHER_WRITER,
    "MX9": ExitCode.INVARIANT,
}


@dataclass(frozen=True)
class Head:
    """The head of the queue: smallest id in PENDING or FAILED, with its bytes (FS-4.1-1)."""

    message_id: int
    attempts: int
    due: bool
    next_attempt_at: datetime | None
    payload: bytes | None
    encoding: str | None


@dataclass(frozen=True)
class Event:
    """One record to deliver: a NOTICE, or the STATE or TOMBSTONE that stands for all of its FLID up to event_id."""

    target: str
    event_id: int
    kind: str
    flid: str
    message_id: int
    state_version: int
    updated_at: str
    epoch: int
    value: Mapping[str, Any] | None
    redelivered: bool = False


@dataclass(frozen=True)
class InboxCursor:
    """Where reading a mailbox stands: all ids up to `watermark`, from `first_id` on, were taken or given up."""

    watermark: int
    first_id: int
    rescan_from: int | None


@dataclass(frozen=True)
class BackfillItem:
    """One mark to write; `completed_at` is local time of the airport, `gone` says that there is no row any more."""

    message_id: int
    mailbox_id: int
    backfill_seq: int
    status: str
    completed_at: datetime
    gone: bool


@cache
def _queries() -> Mapping[str, str]:
    text = resources.files("msgx_driver").joinpath("queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def waits(error: psycopg.Error) -> bool:
    """Tell whether the error concerns the database as a whole, at present (D14); never the message at hand."""
    return (error.sqlstate or "08")[:2] in ("08", "40", "53", "57", "58") or error.sqlstate in ("55P03", "25006")


def stop_error(error: psycopg.Error) -> MsgxError | None:
    """Return the MsgxError with which the driver has to stop, or None when the error concerns one message only."""
    state = error.sqlstate or ""
    code = _STOP_EXIT.get(state[:3])
    if code is not None:
        hint = error.diag.message_hint
        return MsgxError(error.diag.message_primary or str(error), exit_code=code, hint=f"see {hint}" if hint else None)
    return None


class Store:
    """One connection with the schema of one airport."""

    def __init__(self, conn: psycopg.Connection[Any], schema: str) -> None:
        self.conn = conn
        self.schema = schema
        self._one("use_schema", schema=schema)

    @classmethod
    @contextlib.contextmanager
    def open(cls, conninfo: str, schema: str) -> Iterator[Store]:
        """Connect in autocommit, UTF-8; raises MsgxError UNREACHABLE."""
        with connect(conninfo) as conn:
            yield cls(conn, schema)

    def check_contract(self, migrate_command: str) -> None:
        """Refuse a schema that is missing, older or newer than this driver (SCHEMA), or not permitted (CONFIG)."""
        row = self._dict("inspect_schema", schema=self.schema)[0]
        hint = f"run: {migrate_command}"
        if not row["present"]:
            raise MsgxError(f"schema {self.schema} is not in this database", exit_code=ExitCode.SCHEMA, hint=hint)
        if not row["usable"] or (row["installed"] and not row["permitted"]):
            raise MsgxError(
                f"role {row['username']} may not use schema {self.schema}: it is no member of {self.schema}_driver",
                exit_code=ExitCode.CONFIG,
                hint=f'as an administrator: grant {self.schema}_driver to "{row["username"]}"',
            )
        found = self._one("contract_version")[0] if row["installed"] else None
        pending = pending_migrations(self.conn, self.schema)
        if found is None and not pending:
            raise MsgxError(
                f"schema {self.schema} has no routine contract_version: somebody has dropped it",
                exit_code=ExitCode.SCHEMA,
                hint=f"{hint} --again",
            )
        if found != CONTRACT_VERSION:
            raise MsgxError(
                f"schema {self.schema} has contract version {found}, this driver needs {CONTRACT_VERSION}",
                exit_code=ExitCode.SCHEMA,
                hint=hint,
            )
        if pending:
            raise MsgxError(
                f"schema {self.schema} is older than this driver: migration {pending[0]} is not applied",
                exit_code=ExitCode.SCHEMA,
                hint=hint,
            )

    def catalogue(self) -> FieldCatalogue:
        """Read the tags a record may carry."""
        return {
            tag: FieldSpec(tag, kind, seq_tag, max_items, frozenset(attrs))
            for tag, kind, seq_tag, max_items, attrs in self._all("field_catalogue")
        }

    def setting(self, name: str) -> str:
        """Value of a setting; MsgxError SCHEMA when the schema has none of that name."""
        rows = self._all("setting_value", name=name)
        if not rows:
            raise MsgxError(
                f"schema {self.schema} has no setting {name}",
                exit_code=ExitCode.SCHEMA,
                hint="run msgx-driver migrate up",
            )
        return str(rows[0][0])

    def settings(self) -> list[dict[str, Any]]:
        """All settings with default, pattern and description, by name."""
        return self._dict("settings")

    def set_setting(self, name: str, value: str, now: datetime | None = None) -> None:
        """Change one setting; MsgxError USAGE for an unknown name or value (MX003)."""
        try:
            self._one("set_setting", name=name, value=value, now=now)
        except psycopg.Error as e:
            if e.sqlstate == "MX003":
                raise MsgxError(
                    e.diag.message_primary or str(e),
                    exit_code=ExitCode.USAGE,
                    hint="msgx-driver settings list shows names and allowed values",
                ) from e
            raise

    def foreign_cursor(self, source: str) -> str | None:
        """Name of a mailbox whose cursor lives in this schema, if any."""
        rows = self._all("foreign_cursor", source=source)
        return str(rows[0][0]) if rows else None

    def highest_id(self) -> int:
        """Highest message id in the schema, 0 when there is none."""
        return int(self._one("highest_id")[0])

    def enqueue(
        self, source: str, messages: Sequence[tuple[int, bytes, str]], now: datetime | None = None
    ) -> dict[str, int]:
        """Enqueue (id, payload, encoding) rows; returns {"new", "known"}; psycopg.Error MX202 for other bytes."""
        ids, payloads, encodings = zip(*messages, strict=True)
        row = self._one(
            "enqueue_messages",
            source=source,
            ids=list(ids),
            payloads=list(payloads),
            encodings=list(encodings),
            now=now,
        )
        return dict(row[0])

    def acquire_writer(self, now: datetime | None = None) -> dict[str, Any]:
        """Become the one writer; psycopg.Error MX402 when another session is, MX901 when state is lost."""
        return dict(self._one("acquire_writer", now=now)[0])

    def release_writer(self, now: datetime | None = None) -> bool:
        """Give the write right back."""
        return bool(self._one("release_writer", now=now)[0])

    def next_message(self, now: datetime | None = None) -> Head | None:
        """The head of the queue, due or not; None when the queue is empty."""
        rows = self._all("next_message", now=now)
        return Head(*rows[0]) if rows else None

    def process_message(
        self, message_id: int, command: Mapping[str, Any], now: datetime | None = None
    ) -> dict[str, Any]:
        """One message, one transaction; returns the outcome, raises psycopg.Error after a rollback."""
        return dict(self._one("process_message", message_id=message_id, command=Jsonb(command), now=now)[0])

    def record_failure(
        self,
        message_id: int,
        *,
        command: Mapping[str, Any] | None = None,
        sqlstate: str | None = None,
        error_class: str | None = None,
        reason: str,
        now: datetime | None = None,
    ) -> dict[str, Any]:
        """Book a failed attempt (D14, D31); returns the outcome with "action": next, retry or stop."""
        meta = None if command is None else command.get("meta")
        payload = None if command is None else {k: v for k, v in command.items() if k != "meta"}
        row = self._one(
            "record_failure",
            message_id=message_id,
            meta=None if meta is None else Jsonb(meta),
            payload=None if payload is None else Jsonb(payload),
            sqlstate=sqlstate,
            error_class=error_class,
            reason=reason,
            now=now,
        )
        return dict(row[0])

    def guard_session(self) -> None:
        """Let the server notice within half a minute that this client is gone: a dead writer keeps no right."""
        self._one("guard_session")

    def listen(self) -> None:
        """Let enqueue_messages wake this connection."""
        channel = self._one("queue_channel")[0]
        self.conn.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))

    def wait_for_notice(self, seconds: float) -> None:
        """Wait until enqueue_messages wakes this connection, at most `seconds`; raises UNREACHABLE."""
        try:
            for _ in self.conn.notifies(timeout=seconds, stop_after=1):
                pass
        except psycopg.Error as e:
            self._raise_if_lost(e)
            raise

    def queue_is_deeper_than(self, depth: int, head: int) -> bool:
        """Tell whether more than `depth` messages wait; `head` is the id of the first."""
        return bool(self._one("queue_is_deeper_than", depth=depth, head=head)[0])

    def flush_late(self, late: bool) -> None:
        """Let the commits of this session return before they are on disk, or not."""
        self._one("flush_late", value="off" if late else "on")

    def report_loop(self, loop: str, state: str, error: str | None, now: datetime | None = None) -> None:
        """Say how a loop is: RUNNING, FAILED, STOPPED (OPS-2)."""
        self._one("report_loop", loop=loop, state=state, error=error, now=now)

    def claim_events(
        self, target: str, token: UUID, *, limit: int, lease_seconds: int, now: datetime | None = None
    ) -> list[Event] | None:
        """What may be delivered now, leased to `token`; one flushed transaction (contract 4, US-07).

        None when the server says with a warning that the commit may exist on it alone: nothing of it may leave.
        psycopg.Error MX503 while another relay holds the lease.
        """
        rows = self._flushed(
            "claim_events", target=target, token=token, limit=limit, lease_seconds=lease_seconds, now=now
        )
        return None if rows is None else [Event(target=target, **row) for row in rows]

    def confirm_events(self, target: str, token: UUID, events: Sequence[Event], now: datetime | None = None) -> int:
        """Book what the broker has reported; returns the rows marked SENT. psycopg.Error MX503: the lease is gone."""
        flids, ids = [e.flid for e in events], [e.event_id for e in events]
        return int(self._one("confirm_events", target=target, token=token, flids=flids, event_ids=ids, now=now)[0])

    def fail_events(
        self, target: str, token: UUID, failed: Sequence[tuple[Event, str]], now: datetime | None = None
    ) -> dict[str, int]:
        """Count a failed attempt of single records (D39); returns {"failed", "dead"}."""
        ids, errors = [e.event_id for e, _ in failed], [error for _, error in failed]
        return dict(self._one("fail_events", target=target, token=token, event_ids=ids, errors=errors, now=now)[0])

    def block_target(self, target: str, token: UUID, error: str, now: datetime | None = None) -> int:
        """Note that a target refuses everything; exhausts nothing (D39). Returns the failures in a row."""
        return int(self._one("block_target", target=target, token=token, error=error, now=now)[0])

    def release_target(self, target: str, token: UUID, now: datetime | None = None) -> bool:
        """Give the lease of a target back."""
        return bool(self._one("release_target", target=target, token=token, now=now)[0])

    def republish_flights(
        self, flids: Sequence[str] | None, fday: date | None, *, operator: str, reason: str, now: datetime | None = None
    ) -> int:
        """Add a STATE event per flight as it is; returns their number. psycopg.Error MX002 for an unknown flight."""
        return int(self._one("republish_flights", flids=flids, fday=fday, operator=operator, reason=reason, now=now)[0])

    def redeliver_events(
        self, event_ids: Sequence[int] | None, *, operator: str, reason: str, now: datetime | None = None
    ) -> int:
        """Let DEAD notices be sent again, None = all; returns their number. psycopg.Error MX002: no DEAD notice."""
        ids = None if event_ids is None else list(event_ids)
        return int(self._one("redeliver_events", event_ids=ids, operator=operator, reason=reason, now=now)[0])

    def inbox_cursor(self, source: str) -> InboxCursor | None:
        """Where reading of this mailbox stands; None before its first start."""
        rows = self._all("inbox_cursor", source=source)
        return InboxCursor(*rows[0]) if rows else None

    def start_inbox(self, source: str, start_at: int, now: datetime | None = None) -> bool:
        """Start reading a mailbox at this id, once; psycopg.Error MX314 in a schema of another source."""
        return bool(self._one("start_inbox", source=source, start_at=start_at, now=now)[0])

    def scan_inbox(
        self,
        source: str,
        after: int,
        ids: Sequence[int],
        *,
        max_id: int | None,
        transactions: Sequence[str] | None,
        id_step: int,
        now: datetime | None = None,
    ) -> dict[str, int]:
        """Age the holes of a page of ids; returns {"upto", "holes", "given_up"}. psycopg.Error MX203, MX311, MX312."""
        row = self._one(
            "scan_inbox",
            source=source,
            after=after,
            ids=list(ids),
            max_id=max_id,
            transactions=None if transactions is None else list(transactions),
            id_step=id_step,
            now=now,
        )
        return dict(row[0])

    def enqueue_inbox(
        self, source: str, after: int, upto: int, rows: Sequence[Row], now: datetime | None = None
    ) -> dict[str, int]:
        """Take rows and move the watermark from `after` to `upto`, in one transaction; returns {"new", "known"}.

        psycopg.Error MX203 when another poller moved it, MX313 when an id stands for another message than before.
        """
        return dict(self._one("enqueue_inbox", source=source, after=after, upto=upto, now=now, **_columns(rows))[0])

    def rescan_inbox(
        self,
        source: str,
        page: Sequence[tuple[int, datetime | None]],
        following: int | None,
        now: datetime | None = None,
    ) -> list[int]:
        """Ids of a page behind the watermark that were never taken; keeps `following` as progress. Error MX313."""
        ids, received = [i for i, _ in page], [at for _, at in page]
        row = self._one("rescan_inbox", source=source, ids=ids, received=received, following=following, now=now)
        return [int(i) for i in row[0]]

    def enqueue_late(self, source: str, rows: Sequence[Row], now: datetime | None = None) -> dict[str, int]:
        """Take rows that appeared behind the watermark; returns {"new", "known"} (D29)."""
        return dict(self._one("enqueue_late", source=source, now=now, **_columns(rows))[0])

    def note_scan_failure(self, source: str, now: datetime | None = None) -> int | None:
        """Count a failed scan; returns the failures in a row, None without a cursor."""
        found = self._one("note_scan_failure", source=source, now=now)[0]
        return None if found is None else int(found)

    def claim_backfill(
        self, source: str, token: UUID, *, limit: int, lease_seconds: int, now: datetime | None = None
    ) -> list[BackfillItem] | None:
        """Marks that are due, leased to `token`; None as for claim_events. psycopg.Error MX503: another one works."""
        rows = self._flushed(
            "claim_backfill", source=source, token=token, limit=limit, lease_seconds=lease_seconds, now=now
        )
        return None if rows is None else [BackfillItem(**row) for row in rows]

    def confirm_backfill(self, token: UUID, items: Sequence[BackfillItem], now: datetime | None = None) -> int:
        """Book written marks; returns the messages that are done. psycopg.Error MX503: the lease is gone."""
        ids, seqs = [i.message_id for i in items], [i.backfill_seq for i in items]
        return int(self._one("confirm_backfill", token=token, message_ids=ids, seqs=seqs, now=now)[0])

    def fail_backfill(self, token: UUID, items: Sequence[BackfillItem], error: str, now: datetime | None = None) -> int:
        """Book refused marks, which wait for their backoff; returns how many wait."""
        ids, seqs = [i.message_id for i in items], [i.backfill_seq for i in items]
        return int(self._one("fail_backfill", token=token, message_ids=ids, seqs=seqs, error=error, now=now)[0])

    def preview_events(self) -> list[dict[str, Any]]:
        """What the relay would deliver now, in order; nothing is marked."""
        return self._dict("preview_events")

    def projections(self, flids: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Whole states of the named flights, or of all, by FLID."""
        return [row[0] for row in self._all("flight_projection", flids=None if flids is None else list(flids))]

    def counts_of(self, ids: Sequence[int]) -> dict[str, int]:
        """Messages of these ids by status, and flights, deletions and events."""
        counts = {str(status): int(n) for status, n in self._all("count_status", ids=list(ids))}
        return counts | self._dict("count_effects", ids=list(ids))[0]

    def rows(self, query: str, /, **params: Any) -> list[dict[str, Any]]:
        """Rows of a reading statement for display, by its name in queries.sql."""
        return self._dict(query, **params)

    def _all(self, query: str, /, **params: Any) -> list[tuple[Any, ...]]:
        try:
            return self.conn.execute(_queries()[query].encode(), params).fetchall()
        except psycopg.Error as e:
            self._raise_if_lost(e)
            raise

    def _one(self, query: str, /, **params: Any) -> tuple[Any, ...]:
        return self._all(query, **params)[0]

    def _dict(self, query: str, /, **params: Any) -> list[dict[str, Any]]:
        try:
            with self.conn.cursor(row_factory=dict_row) as cursor:
                return cursor.execute(_queries()[query].encode(), params).fetchall()
        except psycopg.Error as e:
            self._raise_if_lost(e)
            raise

    def _flushed(self, query: str, /, **params: Any) -> list[dict[str, Any]] | None:
        """Rows of a claim; None when the server warns that the commit may exist on it alone."""
        warnings: list[str] = []

        def note(message: psycopg.errors.Diagnostic) -> None:
            if message.severity_nonlocalized == "WARNING":
                warnings.append(message.message_primary or "")

        self.conn.add_notice_handler(note)
        try:
            rows = self._dict(query, **params)
        finally:
            self.conn.remove_notice_handler(note)
        return None if warnings else rows

    def _raise_if_lost(self, error: psycopg.Error) -> None:
        # A session that ended takes its write right along: nothing may go on over a new connection.
        if self.conn.broken or self.conn.closed:
            raise unreachable(error) from error


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {
        "ids": [row.id for row in rows],
        "payloads": [row.payload for row in rows],
        "encodings": [row.encoding for row in rows],
        "received": [row.received for row in rows],
    }


def unreachable(error: Exception) -> MsgxError:
    """MsgxError UNREACHABLE in one line, with the first line of what the client library said."""
    lines = str(error).strip().splitlines() or ["no answer"]
    return MsgxError(
        f"the database does not answer: {lines[0]}",
        exit_code=ExitCode.UNREACHABLE,
        hint="check --db, MSGX_DATABASE__DSN and that the server runs; the same command continues",
    )


@contextlib.contextmanager
def connect(conninfo: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection in autocommit, UTF-8, named msgx-driver; raises MsgxError UNREACHABLE."""
    try:
        conn = psycopg.connect(
            conninfo,
            autocommit=True,
            connect_timeout=10,
            client_encoding="UTF8",
            application_name="msgx-driver",
        )
        # Settings of a role or database must change neither bytes nor values, nor what is seen after a lock.
        conn.execute(
            "set standard_conforming_strings = on; set datestyle = 'ISO, YMD'; set intervalstyle = postgres;"
            " set default_transaction_isolation = 'read committed'"
        )
    except (psycopg.Error, UnicodeError) as e:
        raise unreachable(e) from e
    with conn:
        yield conn
