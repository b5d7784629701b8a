"""The smaller commands: status, flights, dead, settings, config, migrate, and how errors are told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msgx_driver.clock import SystemClock, wait_until

from .conftest import PROGRAM, Airport, Cli
from .test_replay import flop, lines, plan


def test_status_and_flights(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "B", "A"), "<x/>"), expect=7)
    status = json.loads(cli("status", "--json", "--db", airport.driver).stdout)
    assert status["queue"] == {"SUCCEEDED": 1, "DEAD": 1}
    assert (status["head"], status["flights"], status["plans"], status["anomalies"]) == (None, 2, 1, 0)
    assert (status["events_pending"], status["backfill_pending"]) == (2, 2)
    assert "SUCCEEDED" in cli("status", "--db", airport.driver).stdout.decode()
    flights = json.loads(cli("flights", "--db", airport.driver).stdout)
    assert [f["FLID"] for f in flights] == ["A", "B"]
    assert json.loads(cli("flights", "B", "--db", airport.driver).stdout)[0]["FDAY"] == "2026-09-09"
    done = cli("flights", "B", "NO", "--db", airport.driver, expect=9)
    assert done.stdout == b""
    assert b"no flight NO" in done.stderr


def test_dead_letters(cli: Cli, airport: Airport) -> None:
    broken = b"<MSG>\xff\x1b[31m"
    file = cli.cwd / "1.xml"
    file.write_bytes(broken)
    cli("replay", str(file), "--db", airport.driver, expect=7)
    rows = json.loads(cli("dead", "list", "--json", "--db", airport.driver).stdout)
    assert [(r["message_id"], r["error_class"]) for r in rows] == [(1, "MALFORMED")]
    shown = cli("dead", "show", "1", "--db", airport.driver).stdout
    assert b"\x1b" not in shown
    assert b"\\xff" in shown
    assert json.loads(cli("dead", "show", "1", "--json", "--db", airport.driver).stdout)["bytes"] == len(broken)
    assert b"has no DEAD message 7" in cli("dead", "show", "7", "--db", airport.driver, expect=9).stderr
    cli("dead", "show", "x", "--db", airport.driver, expect=2)


def test_a_command_without_its_role_names_the_role(cli: Cli, airport: Airport) -> None:
    airport.execute("do $$ begin create role reader login; exception when duplicate_object then null; end $$")
    airport.execute("grant msgx_report to reader")
    reader = airport.driver.replace("pump", "reader")
    cli("dead", "list", "--db", reader)
    for arguments, roles in (
        (("dead", "show", "1"), "msgx_driver or msgx_operator"),
        (("settings", "set", "wire.max_bytes", "20000"), "msgx_driver or msgx_operator"),
        (("republish", "--all", "--reason", "x"), "msgx_operator"),
        (("replay", "-"), "msgx_driver"),
    ):
        told = cli(*arguments, "--db", reader, stdin=lines(plan(1, "A")), expect=3).stderr.decode()
        assert "role reader may not do this: permission denied for" in told
        granted = roles.partition(" ")[0]
        assert f'it takes the role {roles}; as an administrator: grant {granted} to "reader"\n' in told
    airport.execute("revoke select on msgx.health from msgx_report")
    told = cli("status", "--db", reader, expect=3).stderr.decode()
    assert "it takes the role msgx_report;" in told


def test_settings(cli: Cli, airport: Airport) -> None:
    cli("settings", "set", "snapshot.absent_flight", "keep", "--db", airport.driver)
    rows = {r["name"]: r for r in json.loads(cli("settings", "list", "--json", "--db", airport.driver).stdout)}
    assert rows["snapshot.absent_flight"]["value"] == "keep"
    assert rows["snapshot.absent_flight"]["changed_by"] == "pump"
    done = cli("settings", "set", "snapshot.absent_flight", "perhaps", "--db", airport.driver, expect=2)
    assert b"allowed: delete|keep" in done.stderr
    assert b"no setting is named nope" in cli("settings", "set", "nope", "1", "--db", airport.driver, expect=2).stderr
    history = airport.rows("select name, old_value, new_value from setting_history")
    assert history == [("snapshot.absent_flight", "delete", "keep")]


def test_config_show_masks_secrets_and_warns(cli: Cli) -> None:
    done = cli("config", "show", "--db", "postgresql://u:geheim@h/d")
    assert b"geheim" not in done.stdout + done.stderr
    assert b"a password on the command line" in done.stderr
    done = cli("config", "show", "--json", MSGX_DATABASE__DSN="host=h password=geheim")
    assert b"geheim" not in done.stdout + done.stderr
    assert done.stderr == b""
    rows = {r["key"]: r for r in json.loads(done.stdout)}
    assert rows["database.dsn"]["source"] == "environment variable MSGX_DATABASE__DSN"
    assert b"unknown key" in cli("config", "show", expect=3, MSGX_DATABASE__DNS="x").stderr
    assert b"refuses the embedded server" in cli("status", expect=3, MSGX_ENVIRONMENT="production").stderr
    (cli.cwd / "msgx.toml").write_text('[database]\nschema = "other"\n')
    rows = {r["key"]: r["value"] for r in json.loads(cli("config", "show", "--json").stdout)}
    assert rows["database.schema"] == "other"


def test_migrate_status_and_twice(cli: Cli, airport: Airport, pg_server) -> None:  # type: ignore[no-untyped-def]
    assert b"0 files applied" in cli("migrate", "up", "--db", airport.admin).stdout
    steps = json.loads(cli("migrate", "status", "--json", "--db", airport.admin).stdout)
    assert {s["state"] for s in steps} == {"applied"}
    assert steps[0]["name"] == "V0001__initial.sql"
    empty = pg_server.new_database()
    steps = json.loads(cli("migrate", "status", "--json", "--db", empty).stdout)
    assert {s["state"] for s in steps} == {"pending"}
    cli("migrate", "up", "--db", empty, "--schema", "other_airport")
    status = json.loads(cli("status", "--json", "--db", empty, "--schema", "other_airport").stdout)
    assert status["queue"] == {}
    airport.execute("update schema_history set checksum = 'x' where kind = 'versioned'")
    assert b"with other content" in cli("migrate", "up", "--db", airport.admin, expect=5).stderr
    done = cli("migrate", "up", "--db", airport.driver, "--schema", "mine", expect=3)
    assert b"may not install schema mine" in done.stderr
    cli("migrate", "up", "--schema", "Not Allowed", "--db", airport.admin, expect=3)


def test_embedded_server_below_a_private_home(cli: Cli, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    home: dict[str, Any] = {"MSGX_HOME": str(private / "state")}
    try:
        cli("replay", "-", stdin=lines(plan(1, "A")), **home)
        assert json.loads(cli("flights", **home).stdout)[0]["FLID"] == "A"
        # Killed hard in the middle: the server is left behind, found and used again.
        messages = [plan(1, "A"), *(flop(n, "ESTT", "A", f"<ESTT>{n}</ESTT>") for n in range(2, 2000))]
        file = cli.cwd / "many.jsonl"
        file.write_bytes(lines(*messages))
        with subprocess.Popen([PROGRAM, "replay", str(file)], env=cli.environment | home, cwd=cli.cwd) as process:

            def under_way() -> bool:
                queue = json.loads(cli("status", "--json", **home).stdout)["queue"]
                return bool(queue.get("SUCCEEDED", 0) > 20)

            wait_until(under_way, timeout=60, clock=SystemClock(), what="the replay")
            process.kill()
        again = json.loads(cli("replay", str(file), "--json", **home).stdout)
        assert (again["new"], again["succeeded"]) == (0, 1999)
    finally:
        subprocess.run(
            [PROGRAM.parent / "python", "-m", "msgx_driver.embedded", "remove", home["MSGX_HOME"]],
            check=True, capture_output=True, env=cli.environment,
        )  # fmt: skip


def test_help_needs_no_database(cli: Cli) -> None:
    for args in ((), ("replay",), ("migrate", "up"), ("dead", "show")):
        assert b"Usage" in cli(*args, "--help").stdout
    assert b"msgx-driver" in cli("--version").stdout
    assert cli("nonsense", expect=2).stderr
    assert cli("replay", "x", "--kafka", "y", expect=2).stderr


def test_a_reader_that_leaves_early_is_no_accident(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, *(f"F{n}" for n in range(2000)))))
    read, write = os.pipe()
    with subprocess.Popen(
        [PROGRAM, "flights", "--db", airport.driver], stdout=write, stderr=subprocess.PIPE, env=cli.environment
    ) as process:
        os.close(write)
        os.read(read, 10)
        os.close(read)
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_cleanly(cli: Cli, airport: Airport, number: signal.Signals) -> None:
    with subprocess.Popen(
        [PROGRAM, "replay", "-", "--db", airport.driver],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment, cwd=cli.cwd,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(lines(*(flop(n, "ESTT", "A", f"<ESTT>{n}</ESTT>") for n in range(1, 3000))))
        process.stdin.close()
        while process.poll() is None and airport.rows("select count(*) from flight_schd") == [(0,)]:
            pass
        process.send_signal(number)
        assert process.wait(60) == 1
        assert b"interrupted" in process.stderr.read()
    assert airport.rows("select released_at is not null from pipeline_lock") == [(True,)]


def test_the_exit_code_stands_when_nobody_reads_stderr(cli: Cli) -> None:
    """systemd restarts by it: a reader that has gone, a full disk and a full pipe must not change it."""
    command = [str(PROGRAM), "config", "check"]
    environment = cli.environment | {"MSGX_ENVIRONMENT": "production"}
    gone, broken = os.pipe()
    os.close(gone)
    kept, full = os.pipe()
    os.set_blocking(full, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(full, b"x" * 4096)
    os.set_blocking(full, True)
    with Path("/dev/full").open("wb") as no_space:
        for stderr in (broken, no_space, full):
            done = subprocess.run(command, stderr=stderr, env=environment, cwd=cli.cwd, timeout=60, check=False)
            assert done.returncode == 3
    for end in (broken, kept, full):
        os.close(end)


def test_defaults_of_the_role_change_nothing(cli: Cli, airport: Airport) -> None:
    day = str(Path(__file__).resolve().parents[3] / "examples" / "day")
    ((database,),) = airport.rows("select current_database()")
    airport.execute(f'alter database "{database}" set default_transaction_isolation = serializable')
    cli("replay", "--db", airport.driver, "--no-progress", day, expect=7)


def test_republish_adds_a_state_per_flight(cli: Cli, airport: Airport) -> None:
    cli(
        "replay",
        "--db",
        airport.driver,
        "--no-progress",
        str(Path(__file__).resolve().parents[3] / "examples" / "day"),
        expect=7,
    )
    airport.execute("update msg_event set status = 'SENT'")
    flights = len(json.loads(cli("flights", "--db", airport.admin).stdout))
    done = cli("republish", "--all", "--reason", "new consumer", "--json", "--db", airport.admin)
    assert json.loads(done.stdout) == {"events": flights}
    assert airport.rows("select count(*) from msg_event where status = 'PENDING'") == [(flights,)]
    refused = cli("republish", "--flid", "NOBODY", "--reason", "x", "--db", airport.admin, expect=9)
    assert b"flight NOBODY was never there" in refused.stderr
    refused = cli("republish", "--all", "--reason", "x", "--db", airport.driver, expect=3)
    assert b"it takes the role msgx_operator" in refused.stderr
    cli("republish", "--reason", "x", "--db", airport.admin, expect=2)
    # Notices that were given up are sent again by their id.
    airport.execute("update msg_event set status = 'DEAD' where kind = 'NOTICE'")
    (first,), *_ = given_up = airport.rows("select event_id from msg_event where status = 'DEAD' order by 1")
    done = cli("redeliver", str(first), "--reason", "limit raised", "--json", "--db", airport.admin)
    assert json.loads(done.stdout) == {"events": 1}
    assert b"is no DEAD notice" in cli("redeliver", str(first), "--reason", "x", "--db", airport.admin, expect=9).stderr
    done = cli("redeliver", "--all", "--reason", "limit raised", "--db", airport.admin)
    assert done.stdout.decode().strip() == f"{len(given_up) - 1} notices are sent again"
    refused = cli("redeliver", "--all", "--reason", "x", "--db", airport.driver, expect=3)
    assert b"it takes the role msgx_operator" in refused.stderr
    cli("redeliver", str(first), "--all", "--reason", "x", "--db", airport.admin, expect=2)
