"""install.sql with psql and `migrate up` give the same database; twice is a no-op; another schema fits beside it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.migrate import Scripts, migrate_status, migrate_up
from msgx_driver.resources import sql_dir

Psql = Callable[..., str]
SEEDED = {
    "delivery_target": "target, floor_id, failures",
    "error_class": "sqlstate_prefix, error_class, treatment, meaning",
    "flight_field": "tag, kind, target, width, seq_tag, match_tag, max_items, attrs",
    "flop_kind": "styp, keys, collection_mode, on_missing, notify, enabled, origin",
    "ignore_rule": "type, styp",
    "pipeline_lock": "name, writer_pid, epoch, queue_floor",
    "schema_history": "kind, name, checksum",
    "setting": "name, value, default_value, pattern, description",
    "wire_ignored_field": "tag, why",
}


def install(psql: Psql, dsn: str, schema: str, expect: int = 0) -> str:
    return psql(dsn, "-v", f"schema={schema}", "-f", str(sql_dir() / "install.sql"), expect=expect)


def migrate(dsn: str, schema: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return migrate_up(connection, schema)


def dump(pg_server: Any, dsn: str, schema: str) -> str:
    """Return pg_dump -s without the marks that differ from run to run."""
    done = subprocess.run(
        [pg_server.bindir / "pg_dump", "-s", "-n", schema, "-d", dsn],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
        timeout=120,
        check=True,
    )
    return re.sub(r"^\\(un)?restrict .*\n", "", done.stdout, flags=re.MULTILINE)


def rows(dsn: str, schema: str, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as connection:
        connection.execute(sql.SQL("set search_path = {}").format(sql.Identifier(schema)))
        query = "select {} from {} order by 1, 2"
        return {t: connection.execute(query.format(SEEDED[t], t).encode()).fetchall() for t in tables or SEEDED}


def test_both_ways_give_the_same(pg_server: Any, psql: Psql) -> None:
    by_psql, by_driver = pg_server.new_database(), pg_server.new_database()
    install(psql, by_psql, "msgx")
    applied = migrate(by_driver, "msgx")
    scripts = Scripts.load()
    assert applied == [s.name for s in [*scripts.versioned, *scripts.repeatables]]
    schema = dump(pg_server, by_psql, "msgx")
    assert "CREATE TABLE msgx.flight_schd" in schema
    assert "process_message" in schema
    assert schema == dump(pg_server, by_driver, "msgx")
    assert rows(by_psql, "msgx") == rows(by_driver, "msgx")
    with psycopg.connect(by_psql) as connection:
        assert {step.state for step in migrate_status(connection, "msgx")} == {"applied"}


def test_every_seeded_table_is_compared(pg_server: Any) -> None:
    dsn = pg_server.new_database()
    migrate(dsn, "msgx")
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'msgx'").fetchall()
        count = "select count(*) from msgx.{}"
        filled = {t for (t,) in tables if connection.execute(count.format(t).encode()).fetchone() != (0,)}
    assert filled == set(SEEDED)


def test_migrating_twice_changes_nothing(pg_server: Any) -> None:
    dsn = pg_server.new_database()
    assert migrate(dsn, "msgx")
    before = dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")
    assert migrate(dsn, "msgx") == []
    assert (dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")) == before


def test_migrating_after_install_sql_changes_nothing(pg_server: Any, psql: Psql) -> None:
    dsn = pg_server.new_database()
    install(psql, dsn, "msgx")
    before = dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")
    assert migrate(dsn, "msgx") == []
    assert (dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")) == before


def test_install_sql_twice_is_refused_and_changes_nothing(pg_server: Any, psql: Psql) -> None:
    dsn = pg_server.new_database()
    install(psql, dsn, "msgx")
    before = dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")
    assert "schema msgx is installed already" in install(psql, dsn, "msgx", expect=3)
    assert (dump(pg_server, dsn, "msgx"), rows(dsn, "msgx")) == before


def test_a_changed_routine_is_put_back(pg_server: Any) -> None:
    dsn = pg_server.new_database()
    migrate(dsn, "msgx")
    before = dump(pg_server, dsn, "msgx")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "update msgx.schema_history set checksum = repeat('0', 64) where name like '%/contract_version.sql'"
        )
        connection.execute(
            "create or replace function msgx.contract_version() returns integer language sql immutable as 'select 0'"
        )
        assert migrate_up(connection, "msgx") == ["procedures/pipeline/contract_version.sql"]
    assert dump(pg_server, dsn, "msgx") == before


def test_a_changed_migration_is_refused(pg_server: Any) -> None:
    dsn = pg_server.new_database()
    migrate(dsn, "msgx")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("update msgx.schema_history set checksum = repeat('0', 64) where kind = 'versioned'")
        with pytest.raises(MsgxError) as refused:
            migrate_up(connection, "msgx")
    assert refused.value.exit_code == ExitCode.SCHEMA


def test_another_schema_beside_it(pg_server: Any, psql: Psql) -> None:
    dsn, alone = pg_server.new_database(), pg_server.new_database()
    install(psql, dsn, "msgx")
    install(psql, dsn, "airport_2")
    migrate(dsn, "airport_3")
    install(psql, alone, "airport_2")
    second = dump(pg_server, dsn, "airport_2")
    assert second == dump(pg_server, alone, "airport_2")
    assert "msgx." not in second.replace("msgx.writer_started", "")
    assert second.replace("airport_2", "airport_3") == dump(pg_server, dsn, "airport_3")
    assert rows(dsn, "airport_2") == rows(dsn, "msgx") == rows(dsn, "airport_3")
    with psycopg.connect(dsn, autocommit=True) as connection:
        # A message of one airport is unknown to the other, and so is the right to write.
        for schema in ("airport_2", "airport_3"):
            call = f"select {schema}.enqueue_messages('m', array[1], array['x'::bytea], array['text'], null, null)"
            connection.execute(call.encode())
        assert connection.execute("select count(*) from msgx.proc_state").fetchone() == (0,)
        connection.execute("select airport_2.acquire_writer(null)")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("select airport_3.process_message(1, '{}', null)")
        assert refused.value.sqlstate == "MX401"
        reach = connection.execute(
            "select has_schema_privilege('airport_2_driver', 'airport_3', 'usage'),"
            " has_function_privilege('airport_2_driver', 'airport_3.contract_version()', 'execute')"
        ).fetchone()
        assert reach == (False, False)


@pytest.mark.parametrize("schema", ["Msgx", "1x", "x-y", "", "a" * 21, 'x"; drop schema public; --', "x y", "é"])
def test_a_bad_schema_name_is_refused(pg_server: Any, psql: Psql, schema: str) -> None:
    dsn = pg_server.new_database()
    assert "is not allowed" in install(psql, dsn, schema, expect=3)
    with psycopg.connect(dsn) as connection:
        known = connection.execute("select nspname from pg_namespace where nspname !~ '^pg_'").fetchall()
    assert sorted(known) == [("information_schema",), ("public",)]


def test_without_superuser(pg_server: Any, psql: Psql) -> None:
    """A role that may create roles and a schema installs and migrates, by psql and by the driver."""
    name = f"installer_{uuid.uuid4().hex[:8]}"
    schemas = [f"a{uuid.uuid4().hex[:8]}" for _ in range(2)]
    admin = pg_server.new_database()
    dsn = make_conninfo(admin, user=name, password="only-here")
    roles = [f"{schema}_{role}" for schema in schemas for role in ("owner", "driver", "operator", "report")]
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login createrole password 'only-here'").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("grant create on database {} to {}").format(
                sql.Identifier(connection.info.dbname), sql.Identifier(name)
            )
        )
        try:
            done = install_as_is(pg_server, dsn, schemas[0])
            assert done.returncode == 0, done.stderr
            assert "ERROR" not in done.stderr
            assert migrate(dsn, schemas[0]) == []
            assert migrate(dsn, schemas[1])
            first, second = (dump(pg_server, admin, schema) for schema in schemas)
            assert first.replace(schemas[0], schemas[1]) == second
            owners = connection.execute(
                "select distinct pg_get_userbyid(relowner) from pg_class where relnamespace = %s::regnamespace",
                (schemas[0],),
            ).fetchall()
            assert owners == [(f"{schemas[0]}_owner",)]
        finally:
            for schema in schemas:
                connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
            connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
            for role in [*roles, name]:
                connection.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(role)))


def install_as_is(pg_server: Any, dsn: str, schema: str) -> subprocess.CompletedProcess[str]:
    """Run install.sql and let warnings pass: only a superuser may analyze the tables of the system."""
    return subprocess.run(
        [pg_server.bindir / "psql", "-X", "-q", "-d", dsn, "-v", f"schema={schema}", "-f", sql_dir() / "install.sql"],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
        timeout=120,
        check=False,
    )


def test_without_the_rights_nothing_is_left(pg_server: Any) -> None:
    name = f"nobody_{uuid.uuid4().hex[:8]}"
    admin = pg_server.new_database()
    dsn = make_conninfo(admin, user=name, password="only-here")
    schema = f"n{uuid.uuid4().hex[:8]}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login password 'only-here'").format(sql.Identifier(name)))
        try:
            with pytest.raises(MsgxError) as refused:
                migrate(dsn, schema)
            assert refused.value.exit_code == ExitCode.CONFIG
            assert install_as_is(pg_server, dsn, schema).returncode == 3
            query = "select count(*) from pg_roles where rolname like %s"
            assert connection.execute(query, (f"{schema}%",)).fetchone() == (0,)
        finally:
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def test_install_sql_is_current() -> None:
    root = Path(sql_dir()).parent
    done = subprocess.run(
        [sys.executable, root / "scripts" / "render_install.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_released_migrations_never_change() -> None:
    """Versioned files are immutable: what a database has applied is what the file says."""
    scripts = Scripts.load()
    assert [s.name for s in scripts.versioned] == ["V0001__initial.sql", "V0002__service.sql", "V0003__delivery.sql"]
    assert [s.checksum for s in scripts.versioned[:2]] == [
        "66ae75249975fe02714be256dee94f0cb844523488709a2675562a92a79885c9",
        "b0a792fd14f264564f92541e4149be933981bf131471d090cfc250c0373ec4a9",
    ]


def uninstall(psql: Psql, dsn: str, schema: str, expect: int = 0) -> str:
    return psql(dsn, "-v", f"schema={schema}", "-f", str(sql_dir() / "uninstall.sql"), expect=expect)


def test_uninstall_leaves_nothing(pg_server: Any, psql: Psql) -> None:
    here, there = pg_server.new_database(), pg_server.new_database()
    roles = "select count(*) from pg_roles where rolname like 'gone\\_%'"
    for dsn in (here, there):
        install(psql, dsn, "gone")
    assert "role gone_owner is used in another database and stays" in uninstall(psql, here, "gone")
    with psycopg.connect(here, autocommit=True) as connection:
        assert connection.execute("select to_regnamespace('gone')").fetchone() == (None,)
        # The other database still has the airport: its roles stay, and it works.
        assert connection.execute(roles).fetchone() == (4,)
    with psycopg.connect(there, autocommit=True) as connection:
        assert connection.execute("select gone.contract_version()").fetchone() == (1,)
    uninstall(psql, there, "gone")
    with psycopg.connect(there, autocommit=True) as connection:
        assert connection.execute(roles).fetchone() == (0,)
    assert "is no msgx schema" in uninstall(psql, there, "public", expect=3)
    install(psql, here, "gone")
    uninstall(psql, here, "gone")
