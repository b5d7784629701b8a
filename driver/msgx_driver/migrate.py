"""Installs and upgrades the schema of one airport (contract §6, `migrate`).

Versioned files (`migrations/V0001__….sql`) run once, in order, and never change. Repeatable files (procedures and
views, and at the end the rights in `secure.sql`) are applied again when their text changed. Each step is one
transaction; `schema_history` keeps the SHA-256 of what was applied.
"""

from __future__ import annotations

import hashlib
import json
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


def migrate_up(
    conn: psycopg.Connection[Any], schema: str, clock: Clock | None = None, *, again: bool = False
) -> list[str]:
    """Apply what is pending; returns the names of the files applied, none when there was nothing to do.

    `again` applies every repeatable file, as when all were pending: it puts back what was dropped or changed by hand.

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
        return _apply(conn, schema, scripts, clock, again)
    except psycopg.errors.InsufficientPrivilege as e:
        raise _not_permitted("install", schema, e) from e
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", (lock,))


def migrate_plan(conn: psycopg.Connection[Any], schema: str, *, again: bool = False) -> str:
    """The SQL that migrate_up would run now, as text; empty when there is nothing to do. Changes nothing.

    Run by psql it does the same, schema_history included, but waits once for a lock and does not analyze.
    """
    scripts = Scripts.load()
    todo = _todo(conn, schema, scripts, again)
    kinds = {script.name: kind for kind, script in todo}
    parts = []
    for step in _steps(scripts, todo):
        parts.append(f"begin;\nset local lock_timeout = '{LOCK_TIMEOUT}';\n")
        if step[0] is not scripts.bootstrap:
            # The name may be a word of SQL; with a suffix it is none.
            path = sql.Identifier(schema).as_string(conn)
            parts.append(f"set local role {schema}_owner;\nset local search_path = {path};\n")
        for script in step:
            parts.append(f"-- {script.name}\n{_render(script.text, schema, conn).decode()}\n")
            if script.name in kinds:
                parts.append(f"{_record(kinds[script.name], script).as_string(conn)};\n")
        parts.append("commit;\n\n")
    return "".join(parts)


def migrate_verify(conn: psycopg.Connection[Any], schema: str) -> list[str]:
    """Compare the installed schema with the shipped files; returns one line per difference, in a fixed order.

    The files are loaded into a scratch schema inside a transaction that is rolled back. Needs the rights of an
    installation. Raises MsgxError SCHEMA when nothing is installed, CONFIG when rights are missing.
    """
    scratch = f"v_{uuid.uuid4().hex[:16]}"
    scripts = Scripts.load()
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(_render(scripts.bootstrap.text, scratch, conn))
            _become_owner(conn, scratch)
            for script in (*scripts.versioned, *scripts.repeatables):
                conn.execute(_render(script.text, scratch, conn))
            for script in scripts.versioned:
                conn.execute(_record("versioned", script))
            conn.execute("reset role; set local search_path = pg_catalog")
            here, wanted = _Shape(conn, schema, schema), _Shape(conn, scratch, schema)
            conn.execute("select set_config('msgx.reprint', %s, true)", (scratch,))
            conn.execute(_packaged("reprint.sql"))
            restored = _Shape(conn, scratch, schema)
    except psycopg.errors.InsufficientPrivilege as e:
        raise _not_permitted("verify", schema, e) from e
    if not here.tables() & wanted.tables():
        raise MsgxError(
            f"schema {schema} is not installed in this database",
            exit_code=ExitCode.SCHEMA,
            hint="run msgx-driver migrate up --db DSN" + ("" if schema == "msgx" else f" --schema {schema}"),
        )
    return here.differences(wanted, restored)


@dataclass(frozen=True)
class _Seed:
    """How the rows are compared that migrations write: `key` must be there, `fixed` must be equal."""

    key: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    site_adds: bool = False


# What is neither key nor fixed changes at work, by set_setting, or is the site's choice (dba.md, decisions.md).
_SEEDS: Final = {
    "delivery_target": _Seed(("target",)),
    "error_class": _Seed(("sqlstate_prefix",), ("error_class", "treatment", "meaning")),
    "flight_field": _Seed(("tag",), ("kind", "target", "width", "seq_tag", "match_tag", "max_items", "attrs")),
    "flop_kind": _Seed(("styp",), ("keys", "notify"), site_adds=True),
    "ignore_rule": _Seed(("type", "styp"), site_adds=True),
    "pipeline_lock": _Seed(("name",)),
    "setting": _Seed(("name",), ("default_value", "pattern", "description")),
    "wire_ignored_field": _Seed(("tag",), site_adds=True),
}
# Properties of which an object has any number; the line names each.
_MANY: Final = ("grant", "child", "attribute", "setting", "membership in")
# Kinds that others belong to; their names are one name space.
_PARENTS: Final = ("table", "view", "materialized view", "foreign table", "type")


class _Shape:
    """Objects, properties and seed rows of one schema; what PostgreSQL prints, with the names made equal."""

    def __init__(self, conn: psycopg.Connection[Any], schema: str, name: str) -> None:
        """Read `schema`, as if its name were `name`."""
        self.parents: dict[tuple[str, str], str] = {}
        self.properties: dict[tuple[str, str, str], set[str]] = {}

        def add(kind: str, thing: str, parent: str, what: str, definition: str) -> None:
            thing, definition = (_renamed(text, schema, name) for text in (thing, definition))
            self.parents[kind, thing] = parent or self.parents.get((kind, thing), "")
            self.properties.setdefault((kind, thing, what), set()).add(definition)

        for row in conn.execute(_packaged("catalogue.sql"), {"schema": schema}).fetchall():
            add(*row)

        def rows(table: str) -> list[dict[str, Any]]:
            # As JSON, because somebody may have taken away a column or the table.
            query = sql.SQL("select to_jsonb(t) from {} t").format(sql.Identifier(schema, table))
            return [row for (row,) in conn.execute(query).fetchall()] if ("table", table) in self.parents else []

        for table, seed in _SEEDS.items():
            for row in rows(table):
                key = ", ".join(str(row.get(column)) for column in seed.key)
                fixed = json.dumps([row.get(column) for column in seed.fixed])
                add("row", f"{table}({key})", table, "definition", fixed)
        history = sorted(rows("schema_history"), key=lambda row: row.get("installed_rank") or 0)
        migrations = {row.get("name"): row.get("checksum") for row in history if row.get("kind") == "versioned"}
        for file, checksum in migrations.items():
            add("migration", str(file), "schema_history", "definition", str(checksum))

    def objects(self) -> set[tuple[str, str]]:
        """Kind and name of all there is."""
        return {(kind, name) for kind, name, what in self.properties if what == "definition"}

    def tables(self) -> set[str]:
        """Names of the tables."""
        return {name for kind, name in self.objects() if kind == "table"}

    def differences(self, wanted: _Shape, restored: _Shape) -> list[str]:
        """One line per difference; either of the two prints of the shipped files is right."""
        uneven = self.objects() ^ wanted.objects()
        names = {name for kind, name in uneven if kind in _PARENTS}
        parents = wanted.parents | self.parents
        lines = []
        for kind, name, what in self.properties.keys() | wanted.properties.keys():
            whole = (kind, name) in uneven
            # An object that is there on one side only is one line, with all that belongs to it.
            if parents[kind, name] in names or (whole and what != "definition"):
                continue
            here, first, second = (s.properties.get((kind, name, what), set()) for s in (self, wanted, restored))
            if what in _MANY:
                lines += [f"{kind} {name}: {what} {text} added" for text in here - first]
                lines += [f"{kind} {name}: {what} {text} missing" for text in first - here]
            elif here not in (first, second):
                change = "differs" if here and first else "added" if here else "missing"
                seed = _SEEDS.get(parents[kind, name]) if kind == "row" else None
                if not (change == "added" and seed and seed.site_adds):
                    lines.append(f"{kind} {name}: {what} {change}")
        return sorted(lines)


def _renamed(text: str, schema: str, name: str) -> str:
    # PostgreSQL quotes a name that is one of its words, and a scratch name never is.
    return re.sub(rf"\b{schema}(?=\b|_)", name, text).replace(f'"{name}"', name)


def _packaged(name: str) -> bytes:
    return resources.files("msgx_driver").joinpath(name).read_text("utf-8").encode()


def _todo(conn: psycopg.Connection[Any], schema: str, scripts: Scripts, again: bool) -> list[tuple[str, Script]]:
    compared = _compare(conn, schema, scripts)
    changed = [s.name for _, s, state in compared if state == "changed"]
    if changed:
        raise MsgxError(
            f"migration {changed[0]} was applied to schema {schema} with other content than this version ships",
            exit_code=ExitCode.SCHEMA,
            hint="install the msgx-driver version that this database was migrated with",
        )
    return [(kind, s) for kind, s, state in compared if state == "pending" or (again and kind == "repeatable")]


def _steps(scripts: Scripts, todo: list[tuple[str, Script]]) -> list[list[Script]]:
    """Files of each transaction: the roles, each versioned file, and all repeatables with the rights."""
    if not todo:
        return []
    repeatables = [s for kind, s in todo if kind == "repeatable" and s is not scripts.secure]
    return [[scripts.bootstrap], *([s] for kind, s in todo if kind == "versioned"), [*repeatables, scripts.secure]]


def _apply(conn: psycopg.Connection[Any], schema: str, scripts: Scripts, clock: Clock, again: bool) -> list[str]:
    todo = _todo(conn, schema, scripts, again)
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
            # A superuser lacks no right: something in the schema has another owner.
            refused = state == "42501" and conn.info.parameter_status("is_superuser") == "off"
            if isinstance(e, psycopg.OperationalError) or refused or state[:2] == "MX":
                raise
            blockers = f" ({e.diag.message_detail})" if state == "2BP01" else ""
            raise MsgxError(
                f"{script.name} failed in schema {schema}: {e.diag.message_primary}{blockers}, SQLSTATE {state}",
                hint="the steps before it are kept, nothing of this one is; remove the cause and run migrate up again",
            ) from e


def _not_permitted(doing: str, schema: str, error: psycopg.Error) -> MsgxError:
    return MsgxError(
        f"this role may not {doing} schema {schema}: {error.diag.message_primary}",
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
    row = conn.execute("select to_regclass(%s) is not null", (table.as_string(conn),)).fetchone()
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
