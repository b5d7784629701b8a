"""`msgx-driver doctor`: is this database fit for the driver? Reads only (contract §6)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
from psycopg import sql

from msgx_driver.clock import Clock
from msgx_driver.config import Config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.migrate import pending_migrations
from msgx_driver.store import CONTRACT_VERSION, connect

__all__ = ["Finding", "examine", "examine_folder", "examine_outside"]

SERVER_MIN: Final = 150000
FREE_BYTES: Final = 1 << 30
POOLER_ROUNDS: Final = 5


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, ok | warning | bad, detail with the next step, and the exit code when bad."""

    check: str
    status: Literal["ok", "warning", "bad"]
    detail: str
    exit_code: ExitCode = ExitCode.OK


def examine(conninfo: str, schema: str) -> Iterator[Finding]:
    """Check connection, version, encoding, pooler, schema, contract and rights, in this order; stops where it must."""
    try:
        with connect(conninfo) as conn:
            yield Finding("connection", "ok", _where(conn))
            yield from _server(conn)
            yield _pooler(conninfo, conn)
            yield from _schema(conn, schema)
    except MsgxError as e:
        yield Finding("connection", "bad", f"{e}; {e.hint}", e.exit_code)


def examine_folder(home: Path) -> Finding:
    """Free space where the embedded server keeps its data; below 1 GiB is a warning."""
    free = shutil.disk_usage(home).free
    detail = f"{free >> 20} MiB free below {home}"
    if free < FREE_BYTES:
        return Finding("disk", "warning", f"{detail}; less than 1 GiB: free space, or set MSGX_HOME to another folder")
    return Finding("disk", "ok", detail)


def examine_outside(config: Config, clock: Clock) -> Iterator[Finding]:
    """Look at the mailbox and at Kafka, where they are configured; reads only."""
    box, kafka = config.mailbox, config.kafka
    try:
        if box.host is not None or box.socket is not None:
            from msgx_driver.mailbox import Mailbox  # its package is an extra

            mailbox = Mailbox(box, max_bytes=1, read_only=True)
            try:
                if mailbox.check():
                    yield Finding("mailbox", "ok", f"table {box.table} can be read, and who has an open transaction")
                else:
                    detail = f"table {box.table} can be read; without the right PROCESS a missing id holds up the rest"
                    yield Finding("mailbox", "warning", f"{detail} for pipeline.max_commit_delay seconds")
            finally:
                mailbox.close()
    except MsgxError as e:
        yield Finding("mailbox", "bad", f"{e}; {e.hint}", e.exit_code)
    try:
        if kafka.bootstrap is not None:
            from msgx_driver.kafka import KafkaSender, producer_settings  # its package is an extra

            sender = KafkaSender(producer_settings(config), config.topics, clock)
            try:
                sender.check()
                yield Finding("kafka", "ok", f"{kafka.bootstrap} has the topics {', '.join(config.topics.values())}")
            finally:
                sender.close()
    except MsgxError as e:
        yield Finding("kafka", "bad", f"{e}; {e.hint}", e.exit_code)


def _where(conn: psycopg.Connection[Any]) -> str:
    info = conn.info
    return f"{info.user} at {info.host or 'local socket'}, database {info.dbname}"


def _value(conn: psycopg.Connection[Any], query: str, *params: object) -> Any:
    row = conn.execute(query.encode(), params).fetchone()
    return None if row is None else row[0]


def _server(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    version = _value(conn, "show server_version")
    if conn.info.server_version < SERVER_MIN:
        yield Finding("server", "bad", f"PostgreSQL {version}; 15 or newer is needed", ExitCode.CONFIG)
    else:
        yield Finding("server", "ok", f"PostgreSQL {version}")
    encoding = _value(conn, "show server_encoding")
    if encoding != "UTF8":
        detail = f"{encoding}; make a database with encoding UTF8"
        yield Finding("encoding", "bad", detail, ExitCode.CONFIG)
    else:
        yield Finding("encoding", "ok", "UTF8")
    if _value(conn, "select pg_is_in_recovery()"):
        yield Finding("primary", "bad", "this is a standby; connect to the primary", ExitCode.CONFIG)
    if _value(conn, "show default_transaction_read_only") == "on":
        detail = (
            "default_transaction_read_only is on, so nothing can be written; reset it where it was set:"
            " alter role, alter database, postgresql.conf or the connection string"
        )
        yield Finding("read only", "bad", detail, ExitCode.CONFIG)
    # What the session would have without the driver, which sets it.
    isolation = _value(conn, "select reset_val from pg_settings where name = 'default_transaction_isolation'")
    if isolation != "read committed":
        yield Finding(
            "isolation", "ok", f"the default is {isolation}; the driver works with read committed all the same"
        )
    for name in ("fsync", "full_page_writes"):
        if _value(conn, "select current_setting(%s)", name) != "on":
            yield Finding(name, "warning", f"{name} is off: a crash of the server can destroy the database")


def _pooler(conninfo: str, conn: psycopg.Connection[Any]) -> Finding:
    # Two connections that are open at once have two server processes, unless somebody hands them out by transaction.
    with connect(conninfo) as other:
        for _ in range(POOLER_ROUNDS):
            if _value(conn, "select pg_backend_pid()") == _value(other, "select pg_backend_pid()"):
                detail = "a pooler in transaction mode is in between; the writer needs a session: connect directly"
                return Finding("pooler", "bad", detail, ExitCode.CONFIG)
    return Finding("pooler", "ok", "sessions are real sessions")


def _schema(conn: psycopg.Connection[Any], schema: str) -> Iterator[Finding]:
    hint = "run msgx-driver migrate up --db DSN" + ("" if schema == "msgx" else f" --schema {schema}")
    if _value(conn, "select to_regnamespace(%s)", schema) is None:
        yield Finding("schema", "bad", f"schema {schema} is not in this database; {hint}", ExitCode.SCHEMA)
        return
    if not _value(conn, "select has_schema_privilege(%s, 'usage')", schema):
        detail = f"no right on schema {schema}; grant {schema}_driver, {schema}_operator or {schema}_report"
        yield Finding("rights", "bad", detail, ExitCode.CONFIG)
        return
    try:
        pending = pending_migrations(conn, schema)
        query = sql.SQL("select {}()").format(sql.Identifier(schema, "contract_version"))
        found = _value(conn, query.as_string(conn))
    except psycopg.Error as e:
        # Nothing is pending when it is a routine that somebody has dropped.
        again = " --again" if e.sqlstate == "42883" else ""
        yield Finding("schema", "bad", f"{e.diag.message_primary}; {hint}{again}", ExitCode.SCHEMA)
        return
    if pending or found != CONTRACT_VERSION:
        detail = (
            f"contract version {found} (driver: {CONTRACT_VERSION}), pending: {', '.join(pending) or 'none'}; {hint}"
        )
        yield Finding("schema", "bad", detail, ExitCode.SCHEMA)
    else:
        detail = f"schema {schema}, contract version {found}; its content is checked by msgx-driver migrate verify"
        yield Finding("schema", "ok", detail)
    gone = [
        f"{schema}_{role}"
        for role in ("owner", "driver", "operator", "report")
        if _value(conn, "select to_regrole(%s)", f"{schema}_{role}") is None
    ]
    if gone:
        detail = f"this server has no role {', '.join(gone)}; a dump carries none: restore pg_dumpall -r first"
        yield Finding("rights", "bad", detail, ExitCode.CONFIG)
        return
    roles = [
        role
        for role in ("driver", "operator", "report")
        if _value(conn, "select pg_has_role(current_user, %s, 'usage')", f"{schema}_{role}")
    ]
    detail = (
        f"has the rights of {', '.join(f'{schema}_{role}' for role in roles) or 'none of the roles of this schema'}"
    )
    if "driver" in roles:
        yield Finding("rights", "ok", detail)
    else:
        detail += f'; replay and run need {schema}_driver: grant {schema}_driver to "{conn.info.user}"'
        yield Finding("rights", "warning", detail)
