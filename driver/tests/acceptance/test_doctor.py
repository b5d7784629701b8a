"""`msgx-driver doctor`: each check, good and bad."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from msgx_driver import doctor
from msgx_driver.store import connect

from .conftest import Airport, Cli


def findings(cli: Cli, *args: str, expect: int = 0) -> dict[str, tuple[str, str]]:
    rows = json.loads(cli("doctor", "--json", *args, expect=expect).stdout)
    return {row["check"]: (row["status"], row["detail"]) for row in rows}


def test_a_fit_database(cli: Cli, airport: Airport) -> None:
    found = findings(cli, "--db", airport.driver)
    assert {status for status, _ in found.values()} == {"ok"}
    assert list(found) == ["connection", "server", "encoding", "pooler", "schema", "rights"]
    assert "contract version 1; its content is checked by msgx-driver migrate verify" in found["schema"][1]
    assert found["rights"] == ("ok", "has the rights of msgx_driver")
    assert b"sessions are real sessions" in cli("doctor", "--db", airport.driver).stdout


def test_what_is_wrong_decides_the_code(cli: Cli, airport: Airport, pg_server: Any) -> None:
    assert findings(cli, "--db", "host=/nowhere", expect=4)["connection"][0] == "bad"
    empty = pg_server.new_database()
    assert "migrate up" in findings(cli, "--db", empty, expect=5)["schema"][1]
    airport.execute("do $$ begin create role watcher login; exception when duplicate_object then null; end $$")
    watcher = airport.driver.replace("pump", "watcher")
    assert "msgx_driver" in findings(cli, "--db", watcher, expect=3)["rights"][1]
    airport.execute("grant msgx_report to watcher")
    assert findings(cli, "--db", watcher)["rights"] == (
        "warning",
        'has the rights of msgx_report; replay and run need msgx_driver: grant msgx_driver to "watcher"',
    )
    airport.execute("revoke msgx_report from watcher")
    airport.execute("delete from schema_history where kind = 'versioned'")
    assert "V0001__initial.sql" in findings(cli, "--db", airport.driver, expect=5)["schema"][1]


def test_defaults_of_the_database_that_matter(cli: Cli, airport: Airport) -> None:
    """Read only stops everything; another isolation is overruled by the driver."""
    database = airport.rows("select quote_ident(current_database())")[0][0]
    airport.execute(f"alter database {database} set default_transaction_isolation = 'serializable'")
    status, detail = findings(cli, "--db", airport.driver)["isolation"]
    assert (status, detail.partition(";")[0]) == ("ok", "the default is serializable")
    with connect(airport.driver) as conn:
        assert conn.execute("show transaction_isolation").fetchone() == ("read committed",)
    airport.execute(f"alter database {database} set default_transaction_read_only = on")
    status, detail = findings(cli, "--db", airport.driver, expect=3)["read only"]
    assert status == "bad"
    assert "reset it where it was set: alter role, alter database" in detail


def test_the_embedded_disk(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(cli, expect=5)
    assert found["disk"][0] in ("ok", "warning")
    monkeypatch.setattr(doctor, "FREE_BYTES", 1 << 80)
    assert doctor.examine_folder(cli.cwd).status == "warning"


def test_two_connections_on_one_server_process_are_a_pooler(airport: Airport, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(airport.driver, autocommit=True) as conn:

        class Shared:
            """Hands out one server process to everybody, as a pooler in transaction mode does."""

            def __enter__(self) -> psycopg.Connection[Any]:
                return conn

            def __exit__(self, *_: object) -> None:
                return None

        monkeypatch.setattr(doctor, "connect", lambda _: Shared())
        found = {f.check: f for f in doctor.examine(airport.driver, "msgx")}
    assert found["pooler"].status == "bad"
    assert "transaction mode" in found["pooler"].detail
