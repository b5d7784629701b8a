"""Installs and upgrades the schema of one airport (contract §6, `migrate`).

Versioned files (`migrations/V0001__….sql`) run once, in order, and never change. Repeatable files (procedures and
views, and at the end the rights in `secure.sql`) are applied again when their text changed. Each step is one
transaction; `schema_history` keeps the SHA-256 of what was applied.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from msgx_driver.clock import Clock, SystemClock, wait_until
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.resources import migrations_dir, sql_dir

__all__ = [
    "Script",
    "Scripts",
    "Step",
    "migrate_plan",
    "migrate_status",
    "migrate_up",
    "migrate_verify",
    "pending_migrations",
]

LOCK_SECONDS: Final = 60.0
LOCK_TIMEOUT: Final = "2s"
LOCK_TRIES: Final = 5


@dataclass(frozen=True)
class Script:
    """One SQL file: its name as in schema_history, text and SHA-256 in hex."""

    name: str
    text: str
    checksum: str

    @classmethod
    def read(cls, path: Path, name: str) -> Script:
        """Read a file below the folder of migrations or sql."""
        data = path.read_bytes()
        return cls(name, data.decode("utf-8"), hashlib.sha256(data).hexdigest())


@dataclass(frozen=True)
class Scripts:
    """All files of this version: versioned ones by number, repeatables by area and name, the rights last."""

    bootstrap: Script
    versioned: tuple[Script, ...]
    repeatables: tuple[Script, ...]
    secure: Script

    @classmethod
    def load(cls) -> Scripts:
        """Read the shipped files."""
        root = sql_dir()
        procedures = sorted(root.glob("procedures/*/*.sql"))
        views = sorted(root.glob("views/*.sql"))
        secure = Script.read(root / "secure.sql", "secure.sql")
        return cls(
            Script.read(root / "bootstrap.sql", "bootstrap.sql"),
            tuple(Script.read(p, p.name) for p in sorted(migrations_dir().glob("V*.sql"))),
            (*(Script.read(p, p.relative_to(root).as_posix()) for p in [*procedures, *views]), secure),
            secure,
        )


@dataclass(frozen=True)
class Step:
    """A file and what is to be done with it: `applied`, `pending` or `changed` (an applied V file that differs)."""

    kind: str
    name: str
    state: str


def migrate_status(conn: psycopg.Connection[Any], schema: str) -> list[Step]:
    """Compare the shipped files with schema_history; reads only."""
    return [Step(kind, script.name, state) for kind, script, state in _compare(conn, schema, Scripts.load())]


def migrate_up(conn: psycopg.Connection[Any], schema: str, clock: Clock | None = None) -> list[str]:
    """Apply what is pending; returns the names of the files applied, none when there was nothing to do.

    `conn` must be in autocommit. Raises MsgxError SCHEMA for an applied migration whose file changed, CONFIG when
    rights are missing, UNREACHABLE when another migration holds the lock for a minute or a table stays locked,
    UNEXPECTED with the name of a file that fails; steps that were committed before stay.
    """
    clock = clock or SystemClock()
    scripts = Scripts.load()
    lock = f"{schema}.migrate"

    def locked() -> bool:
        row = conn.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", (lock,)).fetchone()
        return bool(row and row[0])

    wait_until(
        locked,
        timeout=LOCK_SECONDS,
        clock=clock,
        interval=0.2,
        what=f"the migration lock of schema {schema} (another migrate up is running)",
    )
    try:
        return _apply(conn, schema, scripts, clock)
    except psycopg.errors.InsufficientPrivilege as e:
        raise _not_permitted(schema, e) from e
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", (lock,))


def migrate_plan(conn: psycopg.Connection[Any], schema: str) -> str:
    """The SQL that migrate_up would run now, as text; empty when there is nothing to do. Changes nothing.

    Run by psql it does the same, schema_history included, but waits once for a lock and does not analyze.
    """
    scripts = Scripts.load()
    todo = _todo(conn, schema, scripts)
    kinds = {script.name: kind for kind, script in todo}
    parts = []
    for step in _steps(scripts, todo):
        parts.append(f"begin;\nset local lock_timeout = '{LOCK_TIMEOUT}';\n")
        if step[0] is not scripts.bootstrap:
            parts.append(f"set local role {schema}_owner;\nset local search_path = {schema};\n")
        for script in step:
            parts.append(f"-- {script.name}\n{_render(script.text, schema, conn).decode()}\n")
            if script.name in kinds:
                parts.append(f"{_record(kinds[script.name], script).as_string(conn)};\n")
        parts.append("commit;\n\n")
    return "".join(parts)


def migrate_verify(conn: psycopg.Connection[Any], schema: str) -> list[str]:
    """Compare the installed schema with the shipped files; returns one line per difference, in a fixed order.

    The files are loaded into a scratch schema inside a transaction that is rolled back. Needs the rights of an
    installation.
    """
    scratch = f"v_{uuid.uuid4().hex[:16]}"
    scripts = Scripts.load()
    query = resources.files("msgx_driver").joinpath("catalogue.sql").read_text("utf-8").encode()
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(_render(scripts.bootstrap.text, scratch, conn))
            _become_owner(conn, scratch)
            for script in (*scripts.versioned, *scripts.repeatables):
                conn.execute(_render(script.text, scratch, conn))
            conn.execute("reset role; set local search_path = pg_catalog")
            here, first = (set(conn.execute(query, {"schema": name}).fetchall()) for name in (schema, scratch))
            conn.execute("select set_config('msgx.reprint', %s, true)", (scratch,))
            conn.execute(resources.files("msgx_driver").joinpath("reprint.sql").read_text("utf-8").encode())
            second = set(conn.execute(query, {"schema": scratch}).fetchall())
    except psycopg.errors.InsufficientPrivilege as e:
        raise _not_permitted(schema, e) from e
    if not here:
        return [f"schema {schema}: not installed"]

    def renamed(rows: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        return {(kind, *(re.sub(rf"\b{scratch}(?=\b|_)", schema, text) for text in rest)) for kind, *rest in rows}

    wanted, restored = renamed(first), renamed(second)
    same = {row[:3] for row in here & (wanted | restored) if row[2] != "grant"}
    missing = {row for row in wanted - here if row[:3] not in same}
    changed = {row[:3] for row in here} & {row[:3] for row in wanted}
    lines = set()
    for row in (here - wanted - restored) | missing:
        kind, name, what, definition = row
        if what == "grant":
            lines.add(f"{kind} {name}: grant {definition} {'added' if row in here else 'missing'}")
        elif row[:3] in changed:
            lines.add(f"{kind} {name}: {what} differs")
        else:
            lines.add(f"{kind} {name}: {what} {'added' if row in here else 'missing'}")
    return sorted(lines)


def _todo(conn: psycopg.Connection[Any], schema: str, scripts: Scripts) -> list[tuple[str, Script]]:
    compared = _compare(conn, schema, scripts)
    changed = [s.name for _, s, state in compared if state == "changed"]
    if changed:
        raise MsgxError(
            f"migration {changed[0]} was applied to schema {schema} with other content than this version ships",
            exit_code=ExitCode.SCHEMA,
            hint="install the msgx-driver version that this database was migrated with",
        )
    return [(kind, script) for kind, script, state in compared if state == "pending"]


def _steps(scripts: Scripts, todo: list[tuple[str, Script]]) -> list[list[Script]]:
    """Files of each transaction: the roles, each versioned file, and all repeatables with the rights."""
    if not todo:
        return []
    repeatables = [s for kind, s in todo if kind == "repeatable" and s is not scripts.secure]
    return [[scripts.bootstrap], *([s] for kind, s in todo if kind == "versioned"), [*repeatables, scripts.secure]]


def _apply(conn: psycopg.Connection[Any], schema: str, scripts: Scripts, clock: Clock) -> list[str]:
    todo = _todo(conn, schema, scripts)
    kinds = {script.name: kind for kind, script in todo}
    for step in _steps(scripts, todo):
        _run_step(conn, schema, step, kinds, clock)
    if todo:
        for (table,) in conn.execute(
            "select tablename from pg_catalog.pg_tables where schemaname = %s", (schema,)
        ).fetchall():
            # Tables that were never analysed cost a fifth of the speed.
            conn.execute(sql.SQL("analyze {}").format(sql.Identifier(schema, table)))
    return [script.name for _, script in todo]


def _run_step(
    conn: psycopg.Connection[Any], schema: str, step: list[Script], kinds: dict[str, str], clock: Clock
) -> None:
    """One transaction; it never queues long for a lock, because everybody else would queue behind it."""
    script = step[0]
    for attempt in range(1, LOCK_TRIES + 1):
        try:
            with conn.transaction():
                conn.execute(sql.SQL("set local lock_timeout = {}").format(LOCK_TIMEOUT))
                for script in step:
                    if script.name != "bootstrap.sql":
                        _become_owner(conn, schema)
                    conn.execute(_render(script.text, schema, conn))
                    if script.name in kinds:
                        conn.execute(_record(kinds[script.name], script))
            return
        except psycopg.errors.LockNotAvailable as e:
            if attempt == LOCK_TRIES:
                raise MsgxError(
                    f"schema {schema} stayed locked by another session ({script.name}, {LOCK_TRIES} tries)",
                    exit_code=ExitCode.UNREACHABLE,
                    hint="stop the driver or the long transaction that holds it, then run migrate up again",
                ) from e
            clock.sleep(attempt * 0.5)
        except psycopg.Error as e:
            state = e.sqlstate or ""
            if isinstance(e, psycopg.OperationalError | psycopg.errors.InsufficientPrivilege) or state[:2] == "MX":
                raise
            blockers = f" ({e.diag.message_detail})" if state == "2BP01" else ""
            raise MsgxError(
                f"{script.name} failed in schema {schema}: {e.diag.message_primary}{blockers}, SQLSTATE {state}",
                hint="the steps before it are kept, nothing of this one is; remove the cause and run migrate up again",
            ) from e


def _not_permitted(schema: str, error: psycopg.Error) -> MsgxError:
    return MsgxError(
        f"this role may not install schema {schema}: {error.diag.message_primary}",
        exit_code=ExitCode.CONFIG,
        hint=f"connect as a superuser, or as a member of {schema}_owner that may create roles and schemas",
    )


def _become_owner(conn: psycopg.Connection[Any], schema: str) -> None:
    conn.execute(sql.SQL("set local role {}").format(sql.Identifier(f"{schema}_owner")))
    conn.execute(sql.SQL("set local search_path = {}").format(sql.Identifier(schema)))


def _record(kind: str, script: Script) -> sql.Composed:
    return sql.SQL(
        "insert into schema_history (kind, name, checksum, applied_at, applied_by)"
        " values ({}, {}, {}, clock_timestamp(), session_user)"
    ).format(kind, script.name, script.checksum)


def _compare(conn: psycopg.Connection[Any], schema: str, scripts: Scripts) -> list[tuple[str, Script, str]]:
    applied: dict[str, str] = {}
    table = sql.Identifier(schema, "schema_history")
    row = conn.execute("select to_regclass(%s) is not null", (f"{schema}.schema_history",)).fetchone()
    if row and row[0]:
        query = sql.SQL("select distinct on (name) name, checksum from {} order by name, installed_rank desc")
        applied = dict(conn.execute(query.format(table)).fetchall())
    result = []
    for script in scripts.versioned:
        known = applied.get(script.name)
        state = "pending" if known is None else "applied" if known == script.checksum else "changed"
        result.append(("versioned", script, state))
    for script in scripts.repeatables:
        state = "applied" if applied.get(script.name) == script.checksum else "pending"
        result.append(("repeatable", script, state))
    return result


def _render(text: str, schema: str, conn: psycopg.Connection[Any]) -> bytes:
    """Replace the psql variables of the files; nothing else is ever put into their text."""
    names = {"schema": schema} | {r: f"{schema}_{r}" for r in ("owner", "driver", "operator", "report")}

    def value(match: re.Match[str]) -> str:
        quoted: sql.Composable = sql.Identifier(names[match[2]]) if match[1] == '"' else sql.Literal(names[match[2]])
        return quoted.as_string(conn)

    return re.sub(r""":(["'])(schema|owner|driver|operator|report)\1""", value, text).encode()


def pending_migrations(conn: psycopg.Connection[Any], schema: str) -> list[str]:
    """Names of shipped versioned migrations that are not applied; unknown newer ones do not matter."""
    return [
        script.name
        for kind, script, state in _compare(conn, schema, Scripts.load())
        if kind == "versioned" and state == "pending"
    ]
