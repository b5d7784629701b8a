"""The mailbox: a table of a MySQL or MariaDB database, read by id, marked when a message is done (US-01, US-09).

Nothing is created or altered there. Values are bound; names come from the configuration and are quoted. Every error of
the client library becomes MsgxError UNREACHABLE and closes the connection; the next call opens a new one.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgx_driver.config import Mailbox as MailboxConfig
from msgx_driver.errors import ExitCode, MsgxError

if TYPE_CHECKING:
    import pymysql

__all__ = ["Mailbox", "Mark", "MarkRefusedError", "Row"]

MAX_ID: Final = (1 << 63) - 1
CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 30
NO_RIGHT: Final = 1227
"""Error number: the account lacks the right PROCESS."""
BUSY: Final = (1205, 1213)
"""Error numbers: lock wait timeout, deadlock; rolled back, may be tried again."""
OF_ALL: Final = frozenset(
    (
        *(1040, 1044, 1045, 1049, 1053, 1054, 1129, 1130, 1142, 1143, 1146, 1152, 1158, 1159, 1160, 1161, 1203, 1226),
        *(1290, 1317, 1792, 1836, 1927, 1969),
    )
)
"""Error numbers of the server that concern the account, the table, the connection or the whole server."""
LOCK_SECONDS: Final = 5
CODECS: Final = {"latin1": "cp1252", "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf32": "utf-32-be"}
"""Character sets of the server whose Python codec has another name."""
SECRETS_HINT: Final = (
    "check the keys mailbox.* of the configuration, the rights of the account and that the server runs;"
    " the next try comes by itself"
)


@dataclass(frozen=True)
class Row:
    """One row of the mailbox; `received` is local time of the airport, None when there is none."""

    id: int
    payload: bytes
    encoding: str
    received: datetime | None


@dataclass(frozen=True)
class Mark:
    """What is written for one row: completion time (airport local time) and, if not None, the status."""

    id: int
    completed_at: datetime
    status: str | None


class MarkRefusedError(Exception):
    """The server is there, and refuses to write marks; nothing of the call was written."""


class Mailbox:
    """The mailbox of one airport, one connection at a time; `read_only` refuses every write (OPS-3)."""

    def __init__(self, config: MailboxConfig, *, max_bytes: int, read_only: bool) -> None:
        """`max_bytes`: largest message; of a larger one no more than one byte beyond is read.

        Raises MsgxError CONFIG when the configuration names no mailbox, or the client library is missing.
        """
        if not (config.host or config.socket) or not config.user or not config.database:
            raise MsgxError(
                "the configuration names no mailbox: mailbox.host (or mailbox.socket), mailbox.user and"
                " mailbox.database are needed",
                exit_code=ExitCode.CONFIG,
            )
        try:
            import pymysql
        except ImportError as e:
            raise MsgxError(
                "the package pymysql is missing",
                exit_code=ExitCode.CONFIG,
                hint="pip install 'msgx-driver[service]'",
            ) from e
        self._client = pymysql
        self._config = config
        self._cut = max_bytes + 1
        self._read_only = read_only
        self._conn: pymysql.connections.Connection[Any] | None = None
        self._keeps_received = True
        self._sees_transactions = True
        self._table = f"`{config.table}`"
        self._id = f"`{config.id_column}`"
        self._body = f"`{config.body_column}`"

    def close(self) -> None:
        """Close the connection, if there is one."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with contextlib.suppress(Exception):
                conn.close()

    def open_transactions(self) -> list[str] | None:
        """Transactions that are open now, own one excluded; None when the account may not see them.

        An entry names the connection and the start of its transaction, so that a connection's next one is another.
        The server answers from a copy that it makes anew only when nobody has asked for a tenth of a second; None also
        when that copy is older than this question, which then does not stand in it.
        """
        if self._conn is not None and not self._sees_transactions:
            return None
        mark = secrets.token_hex(8)
        try:
            with self._talking() as conn, conn.cursor() as cursor:
                cursor.execute("start transaction with consistent snapshot")
                try:
                    cursor.execute(
                        "select concat(trx_mysql_thread_id, '/', trx_started), trx_query,"
                        " trx_mysql_thread_id = connection_id() from information_schema.innodb_trx where %s <> ''",
                        (mark,),
                    )
                    rows = cursor.fetchall()
                finally:
                    conn.rollback()
        except _NoRightError:
            self._sees_transactions = False
            return None
        if not any(mine and mark in str(question) for _, question, mine in rows):
            return None
        return [str(name) for name, _, mine in rows if not mine]

    def check(self) -> bool:
        """Read the columns that reading and marking need; True when open transactions can be seen (PROCESS)."""
        names = [self._config.received_column, self._config.processed_column]
        if any((self._config.status_succeeded, self._config.status_skipped, self._config.status_dead)):
            names.append(self._config.status_column)
        columns = ", ".join(f"`{name}`" for name in names)
        self._fetch(f"select {self._id}, {self._body}, {columns} from {self._table} limit 0")
        self.open_transactions()
        return self._sees_transactions

    def max_id(self) -> int | None:
        """Highest id, None when the mailbox is empty."""
        found = self._fetch(f"select max({self._id}) from {self._table}")[0][0]
        if found is not None and int(found) > MAX_ID:
            raise MsgxError(
                f"mailbox table {self._config.table} holds the id {found}, above {MAX_ID}",
                exit_code=ExitCode.SCHEMA,
                hint="such a row cannot be taken; correct its id or take it away",
            )
        return None if found is None else int(found)

    def ids_after(self, after: int, limit: int) -> list[int]:
        """The next ids above `after`, ascending, at most `limit`."""
        rows = self._fetch(
            f"select {self._id} from {self._table} where {self._id} > %s order by {self._id} limit %s", after, limit
        )
        return [int(row[0]) for row in rows]

    def receive_times(self, first: int, upto: int, limit: int) -> list[tuple[int, datetime | None]]:
        """Ids from `first` up to `upto` with their receive times, ascending, at most `limit`."""
        rows = self._fetch(
            f"select {self._id}, `{self._config.received_column}` from {self._table}"
            f" where {self._id} between %s and %s order by {self._id} limit %s",
            first,
            upto,
            limit,
        )
        return [(int(row[0]), _instant(row[1])) for row in rows]

    def rows(self, after: int, upto: int, *, max_rows: int, max_bytes: int) -> tuple[list[Row], int]:
        """Rows above `after` up to `upto`, bounded by rows and bytes; and the id up to which they are all.

        A row that is longer than `max_bytes` alone is read alone.
        """
        where = f"{self._id} > %s and {self._id} <= %s"
        sizes = self._fetch(
            f"select {self._id}, octet_length({self._body}) from {self._table} where {where}"
            f" order by {self._id} limit %s",
            after,
            upto,
            max_rows,
        )
        taken = self._fitting(sizes, max_bytes)
        last = int(sizes[taken - 1][0]) if taken and (taken < len(sizes) or len(sizes) == max_rows) else upto
        return self._read(where, after, last), last

    def rows_of(self, ids: Sequence[int], *, max_bytes: int) -> tuple[list[Row], int]:
        """Rows of the first of these ids, bounded by bytes; and how many of the ids that were."""
        places = ", ".join(["%s"] * len(ids))
        sizes = dict(
            self._fetch(
                f"select {self._id}, octet_length({self._body}) from {self._table} where {self._id} in ({places})", *ids
            )
        )
        taken = self._fitting([(i, sizes.get(i)) for i in ids], max_bytes)
        return self._read(f"{self._id} in ({', '.join(['%s'] * taken)})", *ids[:taken]), taken

    def mark(self, marks: Sequence[Mark]) -> None:
        """Write marks in one transaction; a later mark stays, and a row that has gone counts as marked (US-09).

        Raises MsgxError UNREACHABLE, MarkRefusedError, and CONFIG for a mailbox that is only to be read.
        """
        if self._read_only:
            raise MsgxError("the environment shadow never writes to the mailbox", exit_code=ExitCode.CONFIG)
        processed = f"`{self._config.processed_column}`"
        with self._talking() as conn, conn.cursor() as cursor:
            try:
                conn.begin()
                for mark in marks:
                    values: list[Any] = [mark.completed_at]
                    change = f"{processed} = %s"
                    if not self._keeps_received:
                        # The column would take the time of the mark, and the row look like another message.
                        change += f", `{self._config.received_column}` = `{self._config.received_column}`"
                    if mark.status is not None:
                        change += f", `{self._config.status_column}` = %s"
                        values.append(mark.status)
                    cursor.execute(
                        f"update {self._table} set {change}"
                        f" where {self._id} = %s and ({processed} is null or {processed} <= %s)",
                        [*values, mark.id, mark.completed_at],
                    )
                conn.commit()
            except (self._client.err.DataError, self._client.err.IntegrityError) as e:
                conn.rollback()
                raise MarkRefusedError(_said(e)) from e
            except self._client.err.OperationalError as e:
                # A trigger or a locked row refuses one mark; what concerns all of them is told as such.
                if e.args[:1] and (e.args[0] in BUSY or (1000 <= e.args[0] < 2000 and e.args[0] not in OF_ALL)):
                    conn.rollback()
                    raise MarkRefusedError(_said(e)) from e
                raise

    def _fitting(self, sizes: Sequence[tuple[Any, Any]], max_bytes: int) -> int:
        """How many of the rows, in their order, fit; at least one, if there is one."""
        total = 0
        for n, (_, size) in enumerate(sizes):
            total += min(int(size or 0), self._cut)
            if n and total > max_bytes:
                return n
        return len(sizes)

    def _read(self, where: str, *values: object) -> list[Row]:
        # The bytes as they are stored: the server would write ? for what it cannot convert. The column's type comes
        # with every row, since somebody may change it at any time.
        rows = self._fetch(
            f"select {self._id}, left(cast({self._body} as binary), %s), `{self._config.received_column}`,"
            f" charset({self._body}) from {self._table} where {where} order by {self._id}",
            self._cut,
            *values,
        )
        return [
            Row(int(row[0]), *_body_of(bytes(row[1] or b""), str(row[3]), self._cut), _instant(row[2])) for row in rows
        ]

    def _fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._talking() as conn, conn.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    @contextlib.contextmanager
    def _talking(self) -> Iterator[pymysql.connections.Connection[Any]]:
        """Give the connection, opened if need be; what fails closes it."""
        try:
            if self._conn is None:
                self._connect()
            assert self._conn is not None
            yield self._conn
        except (self._client.err.Error, OSError) as e:
            if e.args[:1] == (NO_RIGHT,):
                raise _NoRightError from e
            self.close()
            # Numbers below 2000 are the server's: it did answer.
            answered = bool(e.args) and isinstance(e.args[0], int) and 1000 <= e.args[0] < 2000
            raise MsgxError(
                f"the mailbox {'refuses' if answered else 'does not answer'}: {_said(e)}",
                exit_code=ExitCode.UNREACHABLE,
                hint=SECRETS_HINT,
            ) from e

    def _connect(self) -> None:
        config = self._config
        where: dict[str, Any] = (
            {"unix_socket": str(config.socket)} if config.socket else {"host": config.host, "port": config.port}
        )
        if config.ssl_ca is not None:
            where |= {"ssl_ca": str(config.ssl_ca), "ssl_verify_cert": True, "ssl_verify_identity": True}
        self._conn = self._client.connect(
            **where,
            user=config.user,
            password=config.password or "",
            database=config.database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            write_timeout=ANSWER_SECONDS,
            init_command="set session transaction isolation level read committed",
        )
        self._sees_transactions = True
        with self._conn.cursor() as cursor:
            # A locked row must be refused before the answer of the server counts as missing.
            cursor.execute("set session innodb_lock_wait_timeout = %s", (LOCK_SECONDS,))
            cursor.execute(
                "select column_name, extra from information_schema.columns"
                " where table_schema = database() and table_name = %s and column_name in (%s, %s)",
                (config.table, config.body_column, config.received_column),
            )
            found = {str(name).lower(): str(extra).lower() for name, extra in cursor.fetchall()}
        for key in ("body_column", "received_column"):
            name = getattr(config, key)
            if name.lower() not in found:
                self.close()
                raise MsgxError(
                    f"the mailbox database has no column {config.table}.{name} that this account may read",
                    exit_code=ExitCode.UNREACHABLE,
                    hint=f"check mailbox.database, mailbox.table, mailbox.{key} and the account's rights",
                )
        self._keeps_received = "on update" not in found[config.received_column.lower()]


class _NoRightError(Exception):
    """The account may not see this."""


def _body_of(stored: bytes, charset: str, cut: int) -> tuple[bytes, str]:
    """Payload and encoding of a stored body: text as UTF-8, everything else as the bytes it is."""
    if charset == "binary":
        return stored, "bytes"
    if charset.startswith("utf8"):
        return stored, "text"
    try:
        return stored.decode(CODECS.get(charset, charset)).encode()[:cut], "text"
    except (UnicodeDecodeError, LookupError):
        # Never replaced by something else: the decoder judges the bytes by what they declare.
        return stored, "bytes"


def _instant(value: object) -> datetime | None:
    # A zero date comes as text.
    return value if isinstance(value, datetime) else None


def _said(error: Exception) -> str:
    return ": ".join(str(part) for part in error.args) or type(error).__name__
