"""`migrate plan|up|status|verify` on databases that changed under way."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.migrate import _SEEDS, Scripts, migrate_up
from msgx_driver.store import Store

from .conftest import Airport, Cli
from .next_version import ROUTINE, NextVersion, build_next_version, replace_in
from .test_replay import lines, plan

MANY = 20


OwnSchema = Callable[[str], tuple[str, ...]]


@pytest.fixture
def own_schema(airport: Airport) -> Iterator[OwnSchema]:
    """Options for a schema of that name beside msgx; it is removed with its roles, which belong to the whole server."""
    names: list[str] = []

    def options(name: str) -> tuple[str, ...]:
        names.append(name)
        return ("--db", airport.admin, "--schema", name)

    yield options
    for name in names:
        airport.execute(f'drop schema if exists "{name}" cascade')
        roles = ", ".join(f"{name}_{role}" for role in ("owner", "driver", "operator", "report"))
        airport.execute(f"drop role if exists {roles}")


def differences(cli: Cli, airport: Airport, expect: int = 6) -> list[str]:
    found: list[str] = json.loads(cli("migrate", "verify", "--json", "--db", airport.admin, expect=expect).stdout)
    return found


def test_verify_names_each_difference(cli: Cli, airport: Airport) -> None:
    assert b"is what this version ships" in cli("migrate", "verify", "--db", airport.admin).stdout
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")))
    assert differences(cli, airport, expect=0) == []
    airport.execute("alter table flight_gate alter column gctm type varchar(300)")
    airport.execute("create or replace function _writer_key() returns bigint language sql stable as 'select 1::bigint'")
    airport.execute("grant insert on flight_schd to msgx_report")
    assert differences(cli, airport) == [
        "column flight_gate.gctm: definition differs",
        "routine _writer_key(): definition differs",
        "table flight_schd: grant msgx_report INSERT added",
    ]
    airport.execute("drop index flight_schd_maid_ix; alter table setting drop constraint setting_value_ck")
    airport.execute("comment on column flight_schd.flid is null; create table extra (a integer)")
    airport.execute("revoke select on queue_head from msgx_report; drop function release_writer(timestamptz)")
    assert differences(cli, airport) == [
        "column flight_gate.gctm: definition differs",
        "column flight_schd.flid: comment missing",
        "constraint setting.setting_value_ck: definition missing",
        "index flight_schd_maid_ix: definition missing",
        "routine _writer_key(): definition differs",
        "routine release_writer(p_now timestamp with time zone): definition missing",
        "table extra: definition added",
        "table flight_schd: grant msgx_report INSERT added",
        "view queue_head: grant msgx_report SELECT missing",
    ]
    schemas = airport.rows("select nspname::text from pg_namespace where nspname like 'v\\_%'")
    assert schemas == []
    assert airport.rows("select rolname::text from pg_roles where rolname like 'v\\_%'") == []


def test_verify_names_every_kind_of_change_in_one_line(cli: Cli, airport: Airport) -> None:
    text = Path(__file__).with_name("changes.sql").read_text("utf-8")
    changes = [block.partition("\n") for block in text.split("\n\n")[1:]]
    for _, _, statement in changes:
        airport.execute(statement)
    told = [line.removeprefix("-- ") for line, _, _ in changes]
    assert differences(cli, airport) == sorted(line for line in told if line != "nothing")


def test_verify_of_a_table_replaced_by_a_view(cli: Cli, airport: Airport) -> None:
    airport.execute("drop table operator_audit; create view operator_audit as select 1 as audit_id")
    assert differences(cli, airport) == [
        "table operator_audit: definition missing",
        "view operator_audit: definition added",
    ]


def test_verify_of_a_mangled_history(cli: Cli, airport: Airport) -> None:
    airport.execute("alter table schema_history drop column kind; alter table setting drop column pattern")
    found = differences(cli, airport)
    assert "column schema_history.kind: definition missing" in found
    assert "migration V0001__initial.sql: definition missing" in found
    assert "row setting(wire.max_bytes): definition differs" in found


def test_verify_compares_what_the_migrations_fill(airport: Airport) -> None:
    filled = {
        str(table)
        for (table,) in airport.rows("select tablename from pg_tables where schemaname = 'msgx'")
        if airport.rows(f"select count(*) from {table}") != [(0,)]
    }
    assert filled == {*_SEEDS, "schema_history"}
    for table, seed in _SEEDS.items():
        known = airport.rows(f"select attname::text from pg_attribute where attrelid = '{table}'::regclass")
        assert {(column,) for column in seed.key + seed.fixed} <= set(known)


def test_verify_of_the_roles(cli: Cli, airport: Airport, own_schema: OwnSchema) -> None:
    options = own_schema(f"p{uuid.uuid4().hex[:8]}")
    schema = options[-1]
    cli("migrate", "up", *options)
    member = f"{schema}_report"
    airport.execute(f"alter role {schema}_owner superuser createrole createdb replication bypassrls login")
    airport.execute(f"alter role {member} noinherit; grant pg_read_all_data to {member}")
    airport.execute(f"alter role {schema}_driver set work_mem = '1MB'")
    airport.execute(f"alter default privileges for role {schema}_owner grant execute on functions to {member}")
    # Who is a member of our roles is the site's business.
    airport.execute(f"grant {schema}_driver to pump")
    attributes = ("BYPASSRLS", "CREATEDB", "CREATEROLE", "LOGIN", "REPLICATION", "SUPERUSER")
    assert json.loads(cli("migrate", "verify", "--json", *options, expect=6).stdout) == [
        f"default acl for role {schema}_owner on functions: definition added",
        f"role {schema}_driver: setting work_mem=1MB added",
        *(f"role {schema}_owner: attribute {attribute} added" for attribute in attributes),
        f"role {member}: attribute INHERIT missing",
        f"role {member}: membership in pg_read_all_data added",
    ]
    airport.execute(f"alter default privileges for role {schema}_owner revoke execute on functions from {member}")


def test_verify_of_nothing_and_without_rights(cli: Cli, airport: Airport) -> None:
    done = cli("migrate", "verify", "--db", airport.admin, "--schema", "nothing", expect=5)
    assert b"schema nothing is not installed in this database" in done.stderr
    assert b"run msgx-driver migrate up --db DSN --schema nothing" in done.stderr
    assert b"is not installed" in cli("migrate", "verify", "--db", airport.admin, "--schema", "public", expect=5).stderr
    done = cli("migrate", "verify", "--db", airport.driver, expect=3)
    assert b"may not verify schema msgx" in done.stderr
    assert b"connect as a superuser" in done.stderr


def test_again_puts_back_what_was_dropped_or_changed(cli: Cli, airport: Airport, pg_server: Any) -> None:
    breaking = (
        "drop view health; drop function contract_version(); revoke select on queue_head from msgx_report;"
        "create or replace function _writer_key() returns bigint language sql stable as 'select 1::bigint'"
    )
    airport.execute(breaking)
    assert cli("migrate", "up", "--db", airport.admin).stdout == b"schema msgx: 0 files applied\n"
    told = cli("migrate", "verify", "--db", airport.admin, expect=6).stderr.decode()
    assert "msgx-driver migrate up --db DSN --again puts procedures, views and their rights back" in told
    for command in ("status", "doctor"):
        done = cli(command, "--db", airport.driver, expect=5)
        assert b"contract_version" in done.stdout + done.stderr
        assert b"migrate up --db DSN --again" in done.stdout + done.stderr
    shipped = len(Scripts.load().repeatables)
    assert (
        f"schema msgx: {shipped} files applied\n"
        in cli("migrate", "up", "--again", "--db", airport.admin).stdout.decode()
    )
    assert differences(cli, airport, expect=0) == []
    airport.execute(breaking)
    run_by_psql(pg_server.bindir, airport.admin, cli("migrate", "plan", "--again", "--db", airport.admin).stdout)
    assert differences(cli, airport, expect=0) == []
    # What is no procedure, view or right is not promised.
    airport.execute("create table extra (a integer)")
    assert b"--again" not in cli("migrate", "verify", "--db", airport.admin, expect=6).stderr


def test_again_names_what_has_another_owner(cli: Cli, airport: Airport) -> None:
    airport.execute("alter function contract_version() owner to pg_monitor")
    told = cli("migrate", "up", "--again", "--db", airport.admin, expect=1).stderr.decode()
    assert "procedures/pipeline/contract_version.sql failed in schema msgx: must be owner of function" in told


def test_a_dropped_view_is_named(cli: Cli, airport: Airport) -> None:
    airport.execute("drop view health")
    told = cli("status", "--db", airport.driver, expect=5).stderr.decode()
    assert 'schema msgx is not whole: relation "health" does not exist' in told
    assert "run: msgx-driver migrate verify --db DSN, then: msgx-driver migrate up --db DSN --again" in told


def test_plan_prints_what_up_would_run(cli: Cli, airport: Airport) -> None:
    plan_of = ("migrate", "plan", "--db", airport.admin)
    assert cli(*plan_of).stdout == b"-- schema msgx: nothing to do\n"
    airport.execute("update schema_history set checksum = repeat('0', 64) where name = 'views/queue_head.sql'")
    text = cli(*plan_of).stdout.decode()
    assert "-- views/queue_head.sql\n" in text
    assert "create view queue_head" in text
    assert "-- V0001" not in text
    assert airport.rows("select count(*) from schema_history where checksum = repeat('0', 64)") == [(1,)]


@pytest.mark.parametrize("schema", [f"p{uuid.uuid4().hex[:8]}", "order", "user"])
def test_the_printed_plan_run_by_psql_is_the_whole_installation(
    cli: Cli, airport: Airport, pg_server: Any, own_schema: OwnSchema, schema: str
) -> None:
    """Under any name, words of SQL included, and what was installed so works."""
    other = own_schema(schema)
    fresh = cli("migrate", "plan", *other).stdout
    assert f"set local role {schema}_owner;".encode() in fresh
    assert airport.rows(f"select count(*) from pg_namespace where nspname = '{schema}'") == [(0,)]
    assert airport.rows(f"select count(*) from pg_roles where rolname like '{schema}\\_%'") == [(0,)]
    run_by_psql(pg_server.bindir, airport.admin, fresh)
    assert json.loads(cli("migrate", "verify", *other, "--json").stdout) == []
    assert cli("migrate", "up", *other).stdout == f"schema {schema}: 0 files applied\n".encode()
    cli("replay", "-", *other, stdin=lines(plan(1, "A")))
    assert json.loads(cli("status", "--json", *other).stdout)["flights"] == 1
    assert f"schema {schema}, contract version".encode() in cli("doctor", *other).stdout
    airport.execute(f'revoke select on "{schema}".queue_head from {schema}_report')
    found = cli("migrate", "verify", *other, "--json", expect=6).stdout
    assert json.loads(found) == [f"view queue_head: grant {schema}_report SELECT missing"]
    cli("migrate", "up", "--again", *other)
    assert json.loads(cli("migrate", "verify", *other, "--json").stdout) == []


def run_by_psql(bindir: Path, dsn: str, script: bytes) -> None:
    done = subprocess.run(
        [bindir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn],
        input=script,
        capture_output=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_changed_view_keeps_its_grants(cli: Cli, airport: Airport) -> None:
    airport.execute("drop view queue_head; create view queue_head as select 1 as other")
    airport.execute("update schema_history set checksum = 'x' where name = 'views/queue_head.sql'")
    assert b"applied views/queue_head.sql" in cli("migrate", "up", "--db", airport.admin).stdout
    assert differences(cli, airport, expect=0) == []


def test_a_locked_table_ends_with_4_and_frees_the_migration_lock(cli: Cli, airport: Airport) -> None:
    airport.execute("update schema_history set checksum = 'x' where name = 'views/queue_head.sql'")
    with psycopg.connect(airport.admin, options="-c search_path=msgx") as holder:
        holder.execute("select * from queue_head")
        done = cli("migrate", "up", "--db", airport.admin, expect=4)
        assert b"stayed locked by another session" in done.stderr
    assert b"applied views/queue_head.sql" in cli("migrate", "up", "--db", airport.admin).stdout


def test_a_failing_step_leaves_nothing_of_itself(cli: Cli, airport: Airport) -> None:
    airport.execute("create view keeps as select * from queue_head")
    airport.execute("update schema_history set checksum = 'x' where name like 'views/queue%'")
    before = airport.rows("select count(*) from schema_history")
    refused = cli("migrate", "up", "--db", airport.admin, expect=1).stderr.decode()
    assert "views/queue_head.sql failed in schema msgx" in refused
    assert "view keeps depends on view queue_head" in refused
    assert "run migrate up again" in refused
    assert airport.rows("select count(*) from schema_history") == before
    airport.execute("drop view keeps")
    assert b"2 files applied" in cli("migrate", "up", "--db", airport.admin).stdout


def test_many_at_once_install_once(pg_server: Any) -> None:
    dsn = pg_server.new_database()
    together = Barrier(MANY)

    def install(_: int) -> list[str]:
        with psycopg.connect(dsn, autocommit=True) as conn:
            together.wait(60)
            return migrate_up(conn, "msgx")

    with ThreadPoolExecutor(MANY) as pool:
        applied = list(pool.map(install, range(MANY)))
    shipped = [script.name for script in (*Scripts.load().versioned, *Scripts.load().repeatables)]
    assert sorted(applied) == [[]] * (MANY - 1) + [shipped]
    with psycopg.connect(dsn) as conn:
        recorded = conn.execute("select name from msgx.schema_history order by installed_rank").fetchall()
        left = conn.execute(
            "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
            " where l.locktype = 'advisory' and d.datname = current_database()"
        ).fetchone()
    assert [name for (name,) in recorded] == shipped
    assert left == (0,)


def test_many_commands_at_once_end_well(cli: Cli, pg_server: Any) -> None:
    dsn = pg_server.new_database()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: cli("migrate", "up", "--db", dsn), range(4)))
    assert sorted(b" 0 files applied" in d.stdout for d in done) == [False, True, True, True]


def test_changed_rights_alone_are_applied(cli: Cli, airport: Airport) -> None:
    airport.execute("grant insert on flight_schd to msgx_report")
    airport.execute("update schema_history set checksum = repeat('0', 64) where name = 'secure.sql'")
    assert cli("migrate", "up", "--db", airport.admin).stdout == b"applied secure.sql\nschema msgx: 1 files applied\n"
    assert differences(cli, airport, expect=0) == []


@dataclass(frozen=True)
class Upgrade:
    """A used database of this version and the version after it."""

    cli: Cli
    airport: Airport
    version: NextVersion

    def newer(self, *arguments: str, stdin: bytes = b"", expect: int = 0) -> str:
        """Run the newer msgx-driver as administrator; return what it printed, stderr last."""
        done = subprocess.run(
            [self.version.program, *arguments, "--db", self.airport.admin],
            input=stdin,
            capture_output=True,
            cwd=self.cli.cwd,
            env=self.cli.environment,
            timeout=120,
            check=False,
        )
        printed = (done.stdout + done.stderr).decode()
        assert done.returncode == expect, printed
        return printed

    def states(self) -> dict[str, str]:
        """Files that are not simply applied, as the newer version sees them."""
        steps = json.loads(self.newer("migrate", "status", "--json"))
        return {step["name"]: step["state"] for step in steps if step["state"] != "applied"}

    def columns(self) -> list[str]:
        """The new columns that are there."""
        found = self.airport.rows(
            "select attname::text from pg_attribute where attrelid = 'operator_audit'::regclass"
            " and attname in ('ticket', 'more') order by attnum"
        )
        return [str(name) for (name,) in found]


@pytest.fixture
def upgrade(cli: Cli, airport: Airport, tmp_path: Path) -> Upgrade:
    """One flight in a database of this version; the next version is unpacked and has not run."""
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")))
    return Upgrade(cli, airport, build_next_version(tmp_path / "next"))


def test_upgrade_to_the_next_version(upgrade: Upgrade) -> None:
    cli, airport = upgrade.cli, upgrade.airport
    airport.execute("select set_setting('snapshot.max_delete_ratio', '0.5', null)")
    assert upgrade.states() == {upgrade.version.migration: "pending", ROUTINE: "pending"}
    assert f"migration {upgrade.version.migration} is not applied" in upgrade.newer("status", expect=5)
    shown = upgrade.newer("migrate", "plan")
    assert [line for line in shown.splitlines() if line.startswith("-- ") and line.endswith(".sql")] == [
        "-- bootstrap.sql",
        f"-- {upgrade.version.migration}",
        f"-- {ROUTINE}",
        "-- secure.sql",
    ]
    assert upgrade.columns() == []
    assert upgrade.newer("migrate", "up").splitlines() == [
        f"applied {upgrade.version.migration}",
        f"applied {ROUTINE}",
        "schema msgx: 2 files applied",
    ]
    assert upgrade.columns() == ["ticket"]
    assert upgrade.states() == {}
    assert "is what this version ships" in upgrade.newer("migrate", "verify")
    assert upgrade.newer("migrate", "up").splitlines() == ["schema msgx: 0 files applied"]
    assert '"flights": 1' in upgrade.newer("status", "--json")
    assert airport.rows("select value from setting where name = 'snapshot.max_delete_ratio'") == [("0.5",)]
    # The way back: the older driver works on the newer schema, and its migrate up puts its own routines back.
    cli("replay", "-", "--append", "--db", airport.driver, stdin=lines(plan(2, "A", "B")))
    assert '"flights": 2' in upgrade.newer("status", "--json")
    added = [
        "column operator_audit.ticket: definition added",
        f"migration {upgrade.version.migration}: definition added",
    ]
    signature = "acknowledge_state_loss(p_operator text, p_reason text, p_now timestamp with time zone)"
    assert differences(cli, airport) == [*added, f"routine {signature}: definition differs"]
    assert f"applied {ROUTINE}\n" in cli("migrate", "up", "--db", airport.admin).stdout.decode()
    assert differences(cli, airport) == added
    assert airport.rows("select acknowledge_state_loss('li.wei', 'incident 4711', null) ->> 'lost'") == [("0",)]
    assert upgrade.newer("migrate", "up").splitlines()[0] == f"applied {ROUTINE}"
    airport.execute("select acknowledge_state_loss('li.wei', 'incident 4711', null)")
    assert airport.rows("select ticket from operator_audit order by audit_id") == [(None,), ("4711",)]
    assert "is what this version ships" in upgrade.newer("migrate", "verify")


def test_the_plan_of_an_upgrade_run_by_psql_is_the_upgrade(upgrade: Upgrade, pg_server: Any) -> None:
    run_by_psql(pg_server.bindir, upgrade.airport.admin, upgrade.newer("migrate", "plan").encode())
    assert upgrade.states() == {}
    assert "is what this version ships" in upgrade.newer("migrate", "verify")


def test_an_upgrade_that_fails_keeps_the_steps_before_and_is_continued(upgrade: Upgrade) -> None:
    third = upgrade.version.migrations / "V9999__broken.sql"
    third.write_text("alter table operator_audit add column more text;\nselect 1 / 0;\n", "utf-8")
    printed = upgrade.newer("migrate", "up", expect=1)
    assert "V9999__broken.sql failed in schema msgx: division by zero, SQLSTATE 22012" in printed
    assert "the steps before it are kept" in printed
    assert upgrade.states() == {"V9999__broken.sql": "pending", ROUTINE: "pending"}
    assert upgrade.columns() == ["ticket"]
    replace_in(third, "select 1 / 0;\n", "")
    assert upgrade.newer("migrate", "up").splitlines()[:2] == ["applied V9999__broken.sql", f"applied {ROUTINE}"]
    assert upgrade.columns() == ["ticket", "more"]


def test_an_upgrade_waits_for_a_lock(upgrade: Upgrade) -> None:
    with psycopg.connect(upgrade.airport.admin) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("lock table msgx.operator_audit in access share mode")
        running = pool.submit(upgrade.newer, "migrate", "up")
        wait_for_a_waiter(upgrade.airport)
        holder.rollback()
        assert "schema msgx: 2 files applied" in running.result()


def wait_for_a_waiter(airport: Airport) -> None:
    """Until some session of the database waits for the table."""
    waiting = "select 1 from pg_locks where not granted and relation = 'operator_audit'::regclass"
    wait_until(lambda: airport.rows(waiting), timeout=60, clock=SystemClock(), what="a waiting migrate up")


def test_a_driver_at_work_goes_on_over_an_upgrade(upgrade: Upgrade) -> None:
    """A session of the older driver that is open meanwhile keeps the write right and processes on."""
    with Store.open(upgrade.airport.driver, "msgx") as store:
        store.acquire_writer()
        for number in (2, 3):
            store.enqueue("replay", [(number, b"<MSG/>", "text")])
            meta = {"SNDR": "AODB", "TYPE": "FLOP", "STYP": "ESTT", "SEQN": str(number), "DTTM": "20260909100200"}
            command = {"meta": meta, "flights": [{"FLID": "A", "set": {"ESTT": f"09SEP26070{number}"}}]}
            assert store.process_message(number, command)["status"] == "SUCCEEDED"
            if number == 2:
                assert "2 files applied" in upgrade.newer("migrate", "up")
        assert store.release_writer()


def test_a_restored_dump_is_no_difference(cli: Cli, airport: Airport, pg_server: Any) -> None:
    """PostgreSQL prints some definitions in another way once they were read from a dump."""
    restored = pg_server.new_database()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    dump = subprocess.run(
        [pg_server.bindir / "pg_dump", "-d", airport.admin], capture_output=True, env=clean, timeout=120, check=True
    )
    run_by_psql(pg_server.bindir, restored, dump.stdout)
    assert json.loads(cli("migrate", "verify", "--db", restored, "--json").stdout) == []
    with psycopg.connect(restored, autocommit=True, options="-c search_path=msgx") as conn:
        conn.execute("alter table msg_event drop constraint msg_event_status_ck")
        conn.execute("alter table msg_event add constraint msg_event_status_ck check (status in ('PENDING', 'SENT'))")
    found = json.loads(cli("migrate", "verify", "--db", restored, "--json", expect=6).stdout)
    assert found == ["constraint msg_event.msg_event_status_ck: definition differs"]


def test_a_schema_of_somebody_else_is_left_alone(cli: Cli, airport: Airport) -> None:
    schema = f"p{uuid.uuid4().hex[:8]}"
    airport.execute(f"create schema {schema}")
    refused = cli("migrate", "up", "--db", airport.admin, "--schema", schema, expect=None)
    assert refused.returncode != 0
    assert f"schema {schema} is there already and is not ours".encode() in refused.stderr
    assert airport.rows(f"select count(*) from pg_roles where rolname like '{schema}\\_%'") == [(0,)]
