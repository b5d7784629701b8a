"""Surroundings that must change nothing: session settings, odd files and streams, broken rows, edges of ids."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from msgx_driver.clock import SystemClock, wait_until

from .conftest import PROGRAM, Airport, Cli
from .test_replay import DAY, flop, lines, meta, plan, summary, tables

SETTINGS = {
    "standard_conforming_strings": "off",
    "datestyle": "SQL, DMY",
    "timezone": "America/St_Johns",
    "intervalstyle": "iso_8601",
    "bytea_output": "escape",
    "search_path": "pg_catalog, public",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "-15",
    "jit": "on",
    "plan_cache_mode": "force_custom_plan",
}


def test_settings_of_a_database_change_nothing(cli: Cli, new_airport: Callable[[], Airport]) -> None:
    plain, odd = new_airport(), new_airport()
    name = psycopg.conninfo.conninfo_to_dict(odd.admin)["dbname"]
    for setting, value in SETTINGS.items():
        odd.execute(
            f"alter database {name} set {setting} = {value}"
            if "," in value
            else f"alter database {name} set {setting} = '{value}'"
        )
    cli("migrate", "up", "--db", odd.admin, "--schema", "again")
    results = []
    for airport in (plain, odd):
        done = cli(
            "replay", "-", "--json", "--db", airport.driver, stdin=lines(*DAY, flop(9, "ZZZZ", "A", "")), expect=7
        )
        results.append(summary(done) | {"seconds": 0})
        cli("status", "--db", airport.driver)
        cli("dead", "list", "--db", airport.driver)
        cli("dead", "show", "9", "--db", airport.driver)
    assert results[0] == results[1]
    payload = "select payload from message_raw order by message_id"
    assert plain.rows(payload) == odd.rows(payload)
    pattern = "select pattern from {}.setting where name = 'snapshot.max_delete_ratio'"
    assert odd.rows(pattern.format("again")) == plain.rows(pattern.format("msgx"))


def test_the_events_file_replaces_regular_files_only(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for target in (fifo, Path("/dev/null"), tmp_path):
        done = cli("replay", "-", "--db", airport.driver, "--events", str(target), stdin=lines(plan(1, "A")), expect=2)
        assert b"no regular file" in done.stderr
    assert fifo.is_fifo()
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    cli("replay", "-", "--db", airport.driver, "--events", str(link), stdin=lines(plan(1, "A")))
    assert link.is_symlink()
    assert json.loads(real.read_text())["key"] == "A"


def test_odd_files_are_refused_by_name(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    folder = tmp_path / "day"
    folder.mkdir()
    (folder / "1.xml").write_text(flop(1, "ESTT", "A", "<ESTT>1</ESTT>"))
    (folder / "2.xml").symlink_to(folder / "nowhere")
    assert b"2.xml" in cli("replay", str(folder), "--db", airport.driver, expect=2).stderr
    (folder / "2.xml").unlink()
    os.mkfifo(folder / "3.xml")
    assert b"no regular file" in cli("replay", str(folder), "--db", airport.driver, expect=2).stderr
    (folder / "3.xml").unlink()
    (folder / "4.XML").write_text("x")
    assert b"4.XML" in cli("replay", str(folder), "--db", airport.driver, expect=2).stderr
    (folder / "4.XML").unlink()
    with (folder / "5.xml").open("wb") as file:
        file.truncate(65 << 20)
    assert b"larger than 64 MiB" in cli("replay", str(folder), "--db", airport.driver, expect=2).stderr
    assert airport.rows("select count(*) from proc_state") == [(0,)]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(cli: Cli, airport: Airport, tmp_path: Path, closed: str) -> None:
    file = tmp_path / "1.xml"
    file.write_text("<x/>")
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {closed}', PROGRAM, "replay", str(file), "--db", airport.driver],
        env=cli.environment, check=False,
    )  # fmt: skip
    assert done.returncode == 7


def test_stdout_is_utf8_in_every_locale(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(flop(1, "REMC", "A", "<REMC>登机口</REMC>")))
    for done in (
        cli("flights", "--db", airport.driver, PYTHONIOENCODING="latin-1"),
        cli("flights", "--db", airport.driver, LC_ALL="C", PYTHONUTF8="0"),
    ):
        assert json.loads(done.stdout.decode("utf-8"))[0]["REMC"] == "登机口"


def test_what_hides_the_queue_is_never_success(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")))
    airport.execute("select enqueue_messages('replay', '{2}', array['x'::bytea], '{text}', null, null)")
    airport.execute("delete from message_raw where message_id = 2")
    assert ("no-original", "2") in airport.rows("select anomaly, subject from consistency_check")
    done = cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")), expect=6)
    assert b"message 2 has no bytes in message_raw" in done.stderr
    airport.execute("create table kept as select * from pipeline_lock; delete from pipeline_lock")
    for command in (("replay", "-"), ("settings", "set", "wire.empty_scalar", "clear")):
        done = cli(*command, "--db", airport.driver, stdin=lines(plan(1, "A")), expect=6)
        assert b"pipeline_lock has no row FLIGHT_SCHD_WRITER" in done.stderr
    assert ("no-writer-row", "pipeline_lock") in airport.rows("select anomaly, subject from consistency_check")


def test_ids_at_the_edges(cli: Cli, airport: Airport) -> None:
    last = json.dumps({"id": 2**63 - 1, "xml": flop(1, "ESTT", "A", "<ESTT>1</ESTT>")}).encode()
    cli("replay", "-", "--db", airport.driver, stdin=last)
    done = cli("replay", "-", "--append", "--db", airport.driver, stdin=lines("<x/>"), expect=2)
    assert b"the ids are used up" in done.stderr
    for ids in ("{0}", "{-9223372036854775808}", "{1,1}", "{null}"):
        count = f"array[cardinality('{ids}'::bigint[])]"
        arrays = f"'{ids}', array_fill('x'::bytea, {count}), array_fill('text'::text, {count})"
        call = f"select enqueue_messages('x', {arrays}, null, null)"
        with pytest.raises(psycopg.Error) as caught:
            airport.execute(call)
        assert caught.value.sqlstate == "MX001"


def test_database_as_a_whole_refuses_with_4(cli: Cli, airport: Airport) -> None:
    with psycopg.connect(airport.admin, options="-c search_path=msgx") as holder:
        holder.execute("select 1 from pipeline_lock for update")
        for command in (("replay", "-"), ("settings", "set", "wire.empty_scalar", "clear")):
            done = cli(
                *command, "--db", airport.driver, stdin=lines("<x/>"), expect=4, PGOPTIONS="-c lock_timeout=200ms"
            )
            assert b"the database refuses at present (SQLSTATE 55P03)" in done.stderr
    done = cli(
        "settings",
        "set",
        "wire.empty_scalar",
        "clear",
        "--db",
        airport.driver,
        expect=4,
        PGOPTIONS="-c default_transaction_read_only=on",
    )
    assert b"25006" in done.stderr


def test_only_utf8_databases(cli: Cli, pg_server: Any) -> None:
    with psycopg.connect(pg_server.dsn, autocommit=True) as conn:
        conn.execute("drop database if exists msgx_test_ascii")
        conn.execute("create database msgx_test_ascii template template0 encoding 'SQL_ASCII' locale 'C'")
        dsn = psycopg.conninfo.make_conninfo(pg_server.dsn, dbname="msgx_test_ascii")
        done = cli("migrate", "up", "--db", dsn, expect=5)
        assert b"a database in UTF8" in done.stderr
        conn.execute("drop database msgx_test_ascii")


def test_a_smaller_id_meanwhile_does_not_stop_the_pump(cli: Cli, airport: Airport) -> None:
    messages = [flop(n, "ESTT", "A", f"<ESTT>{n}</ESTT>") for n in range(1, 800)]
    stdin = "".join(json.dumps({"id": 1000 + n, "xml": m}) + "\n" for n, m in enumerate(messages)).encode()
    result: list[subprocess.CompletedProcess[bytes]] = []
    thread = threading.Thread(target=lambda: result.append(cli("replay", "-", "--db", airport.driver, stdin=stdin)))
    thread.start()
    wait_until(
        lambda: airport.rows("select count(*) from flight_schd") != [(0,)],
        timeout=60,
        clock=SystemClock(),
        what="the replay",
    )
    with psycopg.connect(airport.admin, autocommit=True, options="-c search_path=msgx") as poller:
        for n in range(1, 100):
            poller.execute(
                "select enqueue_messages('other', array[%s::bigint], array['<x/>'::bytea], '{text}', null, null)", [n]
            )
    thread.join()
    assert len(result) == 1
    assert airport.rows("select status, count(*) from proc_state group by 1 order by 1") == [
        ("DEAD", 99),
        ("SUCCEEDED", 799),
    ]


def test_a_rolled_back_acquire_leaves_no_lock(airport: Airport) -> None:
    with psycopg.connect(airport.admin, autocommit=True, options="-c search_path=msgx") as conn:
        conn.execute("begin")
        conn.execute("select acquire_writer(null)")
        conn.execute("rollback")
        conn.execute("select acquire_writer(null)")
        assert conn.execute("select release_writer(null)").fetchone() == (True,)
        assert conn.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() == (0,)


def test_many_records_in_one_message(cli: Cli, airport: Airport) -> None:
    records = "".join(f"<FLTR><FLID>N{n}</FLID><REMC>r</REMC></FLTR>" for n in range(3000))
    adft = f"<MSG>{meta(1, 'SCHD', 'ADFT')}<SCHD><RECS>3000</RECS>{records}</SCHD></MSG>"
    events = "".join(f"<FLOP><FLID>N{n}</FLID><ESTT>1</ESTT></FLOP>" for n in range(3000))
    unknown = "".join(f"<Q{n}/>" for n in range(5000))
    cli("settings", "set", "wire.unknown_field", "ignore", "--db", airport.driver)
    done = cli(
        "replay", "-", "--json", "--db", airport.driver,
        stdin=lines(
            adft,
            f"<MSG>{meta(2, 'FLOP', 'ESTT')}{events}</MSG>",
            flop(3, "ESTT", "N1", f"<ESTT>2</ESTT>{unknown}"),
        ),
    )  # fmt: skip
    assert summary(done)["succeeded"] == 3
    assert airport.rows("select count(*), min(state_version), max(state_version) from flight_schd") == [(3000, 2, 3)]
    kept = airport.rows(
        "select count(*) from proc_state, jsonb_object_keys(result -> 'ignored_fields') where message_id = 3"
    )
    assert kept == [(100,)]
    assert tables(airport)["flight_tombstone"] == []


def test_the_embedded_server_is_never_another_one(cli: Cli, tmp_path: Path) -> None:
    """Variables of libpq lead elsewhere; the embedded database is migrated without being asked, a foreign one never."""
    (tmp_path / "service.conf").write_text("[elsewhere]\nhostaddr=127.0.0.1\nport=1\n")
    file = str(tmp_path / "service.conf")
    done = cli("status", "--json", PGHOSTADDR="127.0.0.1", PGPORT="1", PGSERVICE="elsewhere", PGSERVICEFILE=file)
    assert json.loads(done.stdout)["flights"] == 0
