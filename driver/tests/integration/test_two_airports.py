"""Two airports in one database: each as if it were alone, and neither reaches the other (OPS-1)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.errors import ExitCode
from msgx_driver.generate import generate_day, write_day
from msgx_driver.migrate import migrate_up
from tests.chaos.tables import contents, differences

PROGRAM = Path(sys.executable).parent / "msgx-driver"
AIRPORTS = ("pek", "sha")
ROLES = ("driver", "operator", "report")
TIMEOUT = 120.0
COMMAND = {
    "meta": {"SNDR": "AODB", "TYPE": "FLOP", "STYP": "ESTT", "SEQN": "1"},
    "flights": [{"FLID": "F", "set": {"ESTT": "09SEP261200"}}],
}
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Place:
    """A database with the schemas of both airports, and login roles with one right at one airport each."""

    dsn: str
    logins: dict[tuple[str, str], str]

    def connect(self, user: str | None = None, path: str = "pg_catalog") -> Connection:
        """A connection as superuser or as `user`, with that search_path."""
        dsn = make_conninfo(self.dsn, user=user) if user else self.dsn
        conn = psycopg.connect(dsn, autocommit=True)
        conn.execute("select set_config('search_path', %s, false)", (path,))
        return conn

    def driver(self, airport: str) -> str:
        """The dsn of a login role that has the driver's right at that airport and nothing else."""
        return make_conninfo(self.dsn, user=self.logins[airport, "driver"])


def install(dsn: str, *airports: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        for airport in airports:
            migrate_up(conn, airport)


@pytest.fixture(scope="module")
def logins(pg_server: Any) -> Iterator[dict[tuple[str, str], str]]:
    """One login role per airport and right; roles belong to the server, so they are dropped at the end."""
    mark = uuid.uuid4().hex[:8]
    names = {(airport, role): f"{airport}_{role}_{mark}" for airport in AIRPORTS for role in ROLES}
    # A first installation makes the roles that are granted.
    install(pg_server.new_database(), *AIRPORTS)
    with psycopg.connect(pg_server.dsn, autocommit=True) as conn:
        for (airport, role), name in names.items():
            conn.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
            conn.execute(sql.SQL("grant {} to {}").format(sql.Identifier(f"{airport}_{role}"), sql.Identifier(name)))
        yield names
        for name in names.values():
            conn.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def place(pg_server: Any, logins: dict[tuple[str, str], str]) -> Place:
    dsn = pg_server.new_database()
    install(dsn, *AIRPORTS)
    return Place(dsn, logins)


def one(conn: Connection, query: str, *params: Any) -> Any:
    row = conn.execute(query.encode(), params or None).fetchone()
    assert row is not None
    return row[0]


def process(airport: str) -> str:
    """The statement that processes message 1 of that airport."""
    return f"select {airport}.process_message(1, '{json.dumps(COMMAND)}', null) ->> 'status'"


def state_of(conn: Connection, statement: str) -> str:
    """SQLSTATE of a statement, '' when it succeeds."""
    try:
        conn.execute(statement.encode())
    except psycopg.Error as e:
        return e.sqlstate or "?"
    return ""


# ---------------------------------------------------------------- two pumps at once


def start(dsn: str, airport: str, folder: Path) -> subprocess.Popen[bytes]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MSGX_", "PG"))}
    expect = ("--expect", folder / "manifest.json")
    return subprocess.Popen(
        [PROGRAM, "replay", folder / "day.jsonl", "--db", dsn, "--schema", airport, "--json", *expect],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean | {"LC_ALL": "C.UTF-8"},
    )


def finish(driver: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = driver.communicate(timeout=TIMEOUT)
    assert driver.returncode == ExitCode.OK, err.decode()
    summary: dict[str, Any] = json.loads(out)
    return summary


def test_two_pumps_at_once_end_as_alone(place: Place, pg_server: Any, tmp_path: Path) -> None:
    """Different days with the same message ids and flight numbers: nothing of one shows in the other."""
    folders = {airport: tmp_path / airport for airport in AIRPORTS}
    alone = {}
    for seed, airport in enumerate(AIRPORTS, 11):
        write_day(generate_day(40, seed), folders[airport])
        database = pg_server.new_database()
        install(database, airport)
        with start(make_conninfo(database, user=place.logins[airport, "driver"]), airport, folders[airport]) as driver:
            finish(driver)
        alone[airport] = contents(database, airport)
    assert {row["message_id"] for row in alone["pek"]["proc_state"]} & {
        row["message_id"] for row in alone["sha"]["proc_state"]
    }
    assert differences(alone["pek"], alone["sha"])

    with place.connect() as watch, place.connect() as holder, contextlib.ExitStack() as stack:
        # Both are held at their first lock, so that they are at work at the same time for certain.
        holder.execute("begin")
        for airport in AIRPORTS:
            holder.execute(f"select from {airport}.pipeline_lock for update".encode())
        drivers = {a: stack.enter_context(start(place.driver(a), a, folders[a])) for a in AIRPORTS}
        held = (
            "select count(distinct a.pid) = 2 from pg_stat_activity a join pg_locks l on l.pid = a.pid"
            " where a.application_name = 'msgx-driver' and a.datname = current_database() and not l.granted"
        )
        wait_until(lambda: one(watch, held), timeout=TIMEOUT, clock=SystemClock(), what="both pumps to be at work")
        assert one(watch, "select count(*) from pg_locks where locktype = 'advisory' and granted") == 2
        holder.execute("commit")
        for airport in AIRPORTS:
            assert finish(drivers[airport])["new"] == len(alone[airport]["proc_state"])
    for airport in AIRPORTS:
        assert differences(contents(place.dsn, airport), alone[airport]) == []


def test_one_session_writes_for_both(place: Place) -> None:
    with place.connect() as conn:
        for airport in AIRPORTS:
            conn.execute(
                f"select {airport}.acquire_writer(null),"
                f" {airport}.enqueue_messages('x', array[1], array['a'::bytea], array['text'], null, null)".encode()
            )
        for airport in AIRPORTS:
            assert one(conn, process(airport)) == "SUCCEEDED"
            assert one(conn, f"select {airport}.release_writer(null)")
            assert state_of(conn, process(airport)) == "MX401"


# ---------------------------------------------------------------- rights


def routine_calls(conn: Connection, airport: str) -> list[str]:
    """A call of every routine of the schema, with nulls of the right types."""
    rows = conn.execute(
        "select p.prokind, p.oid::regproc::text, coalesce((select string_agg('null::' || format_type(t.oid, null), ', '"
        " order by n) from unnest(p.proargtypes) with ordinality as u (type, n) join pg_type t on t.oid = u.type), '')"
        " from pg_proc p where p.pronamespace = %s::regnamespace order by 2",
        (airport,),
    ).fetchall()
    assert len(rows) > 40
    return [f"{'call' if kind == 'p' else 'select'} {name}({arguments})" for kind, name, arguments in rows]


def relation_reads(conn: Connection, airport: str) -> list[str]:
    """A read of every table, view and sequence of the schema."""
    rows = conn.execute(
        "select format('%%I.%%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = %s and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') order by 1",
        (airport,),
    ).fetchall()
    assert len(rows) > 25
    return [f"select count(*) from {name}" for (name,) in rows]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("mine", "other"), [AIRPORTS, AIRPORTS[::-1]])
def test_nothing_of_the_other_airport_is_within_reach(place: Place, mine: str, other: str, role: str) -> None:
    """Every routine, table, view and sequence: 42501; the same when somebody granted the use of the schema."""
    with place.connect() as admin, place.connect(place.logins[mine, role], path=other) as conn:
        statements = routine_calls(admin, other) + relation_reads(admin, other)
        wrong = {statement: state for statement in statements if (state := state_of(conn, statement)) != "42501"}
        assert wrong == {}
        # The proof of the statements: with the right, reading succeeds.
        assert {state_of(admin, statement) for statement in relation_reads(admin, other)} == {""}
        admin.execute(f"grant usage on schema {other} to {mine}_{role}".encode())
        wrong = {statement: state for statement in statements if (state := state_of(conn, statement)) != "42501"}
        assert wrong == {}
        assert state_of(conn, f"create table {other}.x (a integer)") == "42501"


def test_the_rights_at_home_are_there(place: Place) -> None:
    """What is refused abroad works at home, so that the refusals above mean something."""
    for airport in AIRPORTS:
        with place.connect(place.logins[airport, "driver"]) as conn:
            assert one(conn, f"select {airport}.acquire_writer(null) ->> 'epoch'") == "1"
            assert one(conn, f"select {airport}.release_writer(null)") is True
        for role in ROLES:
            with place.connect(place.logins[airport, role]) as conn:
                assert one(conn, f"select count(*) from {airport}.flight_schd_display") == 0
                assert one(conn, f"select {airport}.contract_version()") == 1


def test_no_role_belongs_to_both(place: Place) -> None:
    with place.connect() as admin:
        crossing = admin.execute(
            "select a.rolname, b.rolname from pg_roles a, pg_roles b"
            " where a.rolname ~ '^pek_(owner|driver|operator|report)$'"
            " and b.rolname ~ '^sha_(owner|driver|operator|report)$'"
            " and (pg_has_role(a.oid, b.oid, 'member') or pg_has_role(b.oid, a.oid, 'member'))"
        ).fetchall()
        assert crossing == []
        owners = "select distinct pg_get_userbyid({}) from {} where {} = 'sha'::regnamespace"
        for column, table, namespace in (
            ("relowner", "pg_class", "relnamespace"),
            ("proowner", "pg_proc", "pronamespace"),
            ("typowner", "pg_type", "typnamespace"),
        ):
            assert admin.execute(owners.format(column, table, namespace).encode()).fetchall() == [("sha_owner",)]


# ---------------------------------------------------------------- locks


def test_writer_locks_do_not_cross(place: Place) -> None:
    """Both airports have their writer at once; a second writer of one is refused and told who the first is."""
    sessions = {a: place.connect(place.logins[a, "driver"], path=a) for a in AIRPORTS}
    with contextlib.ExitStack() as stack:
        for session in sessions.values():
            stack.enter_context(session)
            assert one(session, "select acquire_writer(null) ->> 'unclean'") == "false"
        for airport, session in sessions.items():
            with place.connect(place.logins[airport, "driver"], path=airport) as second:
                with pytest.raises(psycopg.Error) as refused:
                    second.execute("select acquire_writer(null)")
                assert refused.value.sqlstate == "MX402"
                assert f"(pid {session.info.backend_pid})" in str(refused.value)
        for session in sessions.values():
            session.execute("select enqueue_messages('m', array[1], array['x'::bytea], array['text'], null, null)")
        # An open transaction of one, which holds its row, does not hold up the other.
        sessions["pek"].execute("begin")
        assert one(sessions["pek"], process("pek")) == "SUCCEEDED"
        sessions["sha"].execute("set lock_timeout = '20s'")
        assert one(sessions["sha"], process("sha")) == "SUCCEEDED"
        sessions["pek"].execute("commit")
        assert [one(session, "select release_writer(null)") for session in sessions.values()] == [True, True]


# ---------------------------------------------------------------- where names lead


def test_every_routine_is_pinned_and_nothing_depends_on_the_other(place: Place) -> None:
    with place.connect() as admin:
        for airport, other in (AIRPORTS, AIRPORTS[::-1]):
            pinned = admin.execute(
                "select distinct (select c from unnest(proconfig) c where c like 'search_path=%%')"
                " from pg_proc where pronamespace = %s::regnamespace",
                (airport,),
            ).fetchall()
            assert pinned == [(f"search_path=pg_catalog, {airport}, pg_temp",)]
            named = admin.execute(
                "select p.oid::regprocedure::text from pg_proc p"
                " where pronamespace = %(here)s::regnamespace and prosrc ~* %(word)s"
                " union all select c.relname from pg_class c where relnamespace = %(here)s::regnamespace"
                " and relkind = 'v' and pg_get_viewdef(c.oid) ~* %(word)s",
                {"here": airport, "word": rf"\m{other}\M"},
            ).fetchall()
            assert named == []
        schemas_of = (
            "(select relnamespace from pg_class where oid = {0}.objid and {0}.classid = 'pg_class'::regclass union all"
            " select proc.pronamespace from pg_proc proc where oid = {0}.objid and {0}.classid = 'pg_proc'::regclass"
            " union all select c.relnamespace from pg_rewrite r join pg_class c on c.oid = r.ev_class"
            " where r.oid = {0}.objid and {0}.classid = 'pg_rewrite'::regclass)"
        )
        crossing = admin.execute(
            (
                "with d as (select d.*, " + schemas_of.format("d") + " as here, coalesce("
                "(select relnamespace from pg_class where oid = d.refobjid and d.refclassid = 'pg_class'::regclass),"
                "(select pronamespace from pg_proc where oid = d.refobjid and d.refclassid = 'pg_proc'::regclass),"
                "(select typnamespace from pg_type where oid = d.refobjid and d.refclassid = 'pg_type'::regclass)"
                ") as there from pg_depend d)"
                " select count(*) filter (where here = there), count(*) filter (where here <> there) from d"
                " where here in ('pek'::regnamespace, 'sha'::regnamespace)"
                " and there in ('pek'::regnamespace, 'sha'::regnamespace)"
            ).encode()
        ).fetchone()
        assert crossing is not None
        assert crossing[0] > 100
        assert crossing[1] == 0


@pytest.mark.parametrize("path", ["sha", "pg_temp, sha, pek", "sha, pg_catalog", "pg_temp, public, sha"])
def test_a_hostile_search_path_does_not_lead_astray(place: Place, path: str) -> None:
    """A role with the rights of both airports calls a routine of one: the other keeps every row it had."""
    both = f"both_{uuid.uuid4().hex[:8]}"
    with place.connect() as admin:
        before = contents(place.dsn, "sha")
        admin.execute(f"create role {both} login in role pek_driver, sha_driver, pek_operator, sha_operator".encode())
        try:
            with place.connect(both, path=path) as conn:
                # Tables of the same names in front of everything, as far as this role can make them.
                for table in ("proc_state", "pipeline_lock", "flight_schd", "setting", "flop_kind", "msg_event"):
                    conn.execute(f"create temp table {table} (like sha.{table} including all)".encode())
                enqueue = "select pek.enqueue_messages('m', array[1], array['x'::bytea], array['text'], null, null)"
                assert one(conn, enqueue) == {"new": 1, "known": 0}
                assert one(conn, "select pek.acquire_writer(null) ->> 'unclean'") == "false"
                assert one(conn, "select message_id from pek.next_message(null)") == 1
                assert one(conn, process("pek")) == "SUCCEEDED"
                assert one(conn, "select count(*) from pek.preview_events()") == 2
                assert one(conn, "select pek.flight_projection(null) ->> 'FLID'") == "F"
                conn.execute("select pek.set_setting('kafka.tombstone', 'null', null)")
                assert one(conn, "select count(*) from pek.queue_status") == 1
                assert one(conn, "select pek.acknowledge_state_loss('o', 'r', null) ->> 'lost'") == "0"
                assert one(conn, "select pek.release_writer(null)") is True
                for table in ("proc_state", "flight_schd", "setting", "msg_event"):
                    assert one(conn, f"select count(*) from pg_temp.{table}") == 0
                conn.execute("discard temp")
            assert one(admin, "select estt from pek.flight_schd") == "09SEP261200"
            assert one(admin, "select value from pek.setting where name = 'kafka.tombstone'") == "null"
            assert differences(contents(place.dsn, "sha"), before) == []
        finally:
            admin.execute(f"drop owned by {both}; drop role {both}".encode())
