"""`migrate plan|up|status|verify` on databases that changed under way."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from .conftest import Airport, Cli
from .test_replay import lines, plan


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
    found = differences(cli, airport)
    assert [line for line in found if "release_writer" not in line and "extra" not in line] == [
        "column flight_gate.gctm: definition differs",
        "column flight_schd.flid: comment missing",
        "constraint setting.setting_value_ck: definition missing",
        "index flight_schd_maid_ix: definition missing",
        "routine _writer_key(): definition differs",
        "table flight_schd: grant msgx_report INSERT added",
        "view queue_head: grant msgx_report SELECT missing",
    ]
    assert "routine release_writer(p_now timestamp with time zone): definition missing" in found
    assert "column extra.a: definition added" in found
    schemas = airport.rows("select nspname::text from pg_namespace where nspname like 'v\\_%'")
    assert schemas == []
    assert airport.rows("select rolname::text from pg_roles where rolname like 'v\\_%'") == []


def test_verify_of_nothing_and_without_rights(cli: Cli, airport: Airport) -> None:
    done = cli("migrate", "verify", "--db", airport.admin, "--schema", "nothing", expect=6)
    assert b"schema nothing: not installed" in done.stdout
    done = cli("migrate", "verify", "--db", airport.driver, expect=3)
    assert b"connect as a superuser" in done.stderr


def test_plan_prints_what_up_would_run(cli: Cli, airport: Airport) -> None:
    plan_of = ("migrate", "plan", "--db", airport.admin)
    assert cli(*plan_of).stdout == b"-- schema msgx: nothing to do\n"
    airport.execute("update schema_history set checksum = repeat('0', 64) where name = 'views/queue_head.sql'")
    text = cli(*plan_of).stdout.decode()
    assert "-- views/queue_head.sql\n" in text
    assert "create view queue_head" in text
    assert "-- V0001" not in text
    assert airport.rows("select count(*) from schema_history where checksum = repeat('0', 64)") == [(1,)]
    fresh = cli(*plan_of, "--schema", "other").stdout.decode()
    assert "set local role other_owner;" in fresh
    with psycopg.connect(airport.admin, autocommit=True) as conn:
        conn.execute(fresh.encode())


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
    assert cli("migrate", "up", "--db", airport.admin, expect=1).stderr
    assert airport.rows("select count(*) from schema_history") == before
    airport.execute("drop view keeps")
    assert b"2 files applied" in cli("migrate", "up", "--db", airport.admin).stdout


def test_many_at_once_install_once(cli: Cli, pg_server: Any, new_airport: Callable[[], Airport]) -> None:
    dsn = pg_server.new_database()
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: cli("migrate", "up", "--db", dsn), range(6)))
    assert sorted(b" 0 files applied" in d.stdout for d in done) == [False, True, True, True, True, True]
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select count(*), count(distinct name) from msgx.schema_history").fetchone()
    assert row is not None
    assert row[0] == row[1]
