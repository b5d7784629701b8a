"""A golden sample per kind: input and prior state → next state → notice → state event → terminal status (US-05/2).

Each file of driver/tests/golden was worked out from the documents. `given` are messages 1..n that lead to `prior`,
the projections of all flights. Each case sends the next message: `next` are the projections of the flights it changes
(null: deleted) and every other flight stays; `rows` are the stored rows of the named tables; `events` are the rows of
the outbox in order; `status` is the terminal row. A case without `next` leaves every table of the state as it was.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from msgx_driver.clock import SystemClock
from msgx_driver.loops.pump import Pump
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store
from tests.conftest import Count
from tests.property.test_model import DETAILS, REMEMBER, RESET

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "driver" / "tests" / "golden"
FILES = sorted(FOLDER.glob("*.json"))
STATE = (*DETAILS, "flight_schd", "flight_tombstone", "schd_gen", "schd_gen_flid", "msg_event")
TIMES = ("created_at", "updated_at", "deleted_at", "applied_at")
OF_DAYS = ("schd_gen", "schd_gen_flid")
TARGETS = {"NOTICE": "KAFKA:msg", "STATE": "KAFKA:schd", "TOMBSTONE": "KAFKA:schd"}

Row = dict[str, Any]


def load(path: Path) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return sample


class Product:
    """The engine behind store and pump, one message after the other."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.conn.execute(REMEMBER.encode())
        store.acquire_writer()

    def reset(self) -> None:
        self.store.conn.execute(RESET.encode())
        self.pump = Pump(self.store, SystemClock())
        self.message_id = 0

    def send(self, xml: str) -> Row:
        """Enqueue, process to the end, and return the row of proc_state."""
        self.message_id += 1
        self.store.enqueue("golden", [(self.message_id, xml.encode(), "text")])
        self.pump.drain(lambda outcome: True)
        (row,) = self.rows("proc_state", f"where message_id = {self.message_id}")
        return row

    def rows(self, table: str, rest: str = "") -> list[Row]:
        """Rows of a table without what is null."""
        query = f"select jsonb_strip_nulls(to_jsonb(t)) from {table} t {rest}"
        return [row[0] for row in self.store.conn.execute(query.encode())]

    def projections(self) -> dict[str, Row]:
        return {p["FLID"]: {k: v for k, v in p.items() if k != "UPDATED_AT"} for p in self.store.projections()}

    def everything(self) -> dict[str, list[Row]]:
        return {table: sorted(self.rows(table), key=key_of) for table in STATE}


def key_of(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


def timeless(rows: list[Row]) -> list[Row]:
    return sorted(({k: v for k, v in row.items() if k not in TIMES} for row in rows), key=key_of)


def check_status(row: Row, wanted: Row, where: str) -> None:
    for name, value in wanted.items():
        if name == "reason":
            assert all(part in row["reason"] for part in value), (where, row["reason"])
        elif name == "not_applied":
            assert row["result"].get("not_applied") == value, (where, row["result"])
        else:
            assert row.get(name) == value, (where, name, row)
    assert row["backfill_status"] == "PENDING", where


def check_rows(product: Product, case: dict[str, Any], where: str) -> None:
    for table, wanted in case.get("rows", {}).items():
        found = timeless(product.rows(table))
        if table not in OF_DAYS:
            found = [row for row in found if row["flid"] in case["next"]]
        assert found == timeless(wanted), (where, table)


def check_events(product: Product, case: dict[str, Any], state: dict[str, Row], where: str) -> None:
    rows = product.rows("msg_event", f"where message_id = {product.message_id} order by event_id")
    found = [[r["kind"], r["flid"], r["state_version"], *([r["payload"]] if "payload" in r else [])] for r in rows]
    assert found == case["events"], where
    assert all(r["target"] == TARGETS[r["kind"]] and r["status"] == "PENDING" for r in rows), where
    # What would leave now: the whole state, or that it is gone.
    leaves = {e["flid"]: e for e in product.store.preview_events() if e["target"] == "KAFKA:schd"}
    for kind, flid, version, *_ in case["events"]:
        if kind == "NOTICE":
            continue
        event = leaves[flid]
        assert (event["kind"], event["state_version"]) == (kind, version), where
        value = {k: v for k, v in event["value"].items() if k != "UPDATED_AT"}
        assert value == (state[flid] if kind == "STATE" else {"DELETED": True, "FLID": flid}), where


def check_sample(product: Product, path: Path) -> None:
    """Send a sample, message by message, and compare every side of every case."""
    sample = load(path)
    product.reset()
    for xml in sample["given"]:
        assert product.send(xml)["status"] == "SUCCEEDED", path.stem
    state: dict[str, Row] = dict(sample["prior"])
    assert product.projections() == state, path.stem
    for case in sample["cases"]:
        where = f"{path.stem}, {case['shows']}"
        before = product.everything()
        check_status(product.send(case["send"]), case["status"], where)
        for flid, projection in case.get("next", {}).items():
            if projection is None:
                del state[flid]
            else:
                state[flid] = projection
        assert product.projections() == state, where
        check_rows(product, case, where)
        check_events(product, case, state, where)
        if "next" not in case:
            assert product.everything() == before, where
        assert product.rows("consistency_check") == [], where


@pytest.fixture(scope="module")
def product(pg_server: Any) -> Iterator[Product]:
    dsn = pg_server.new_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate_up(conn, "msgx")
    logger = logging.getLogger("msgx_driver")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with Store.open(dsn, "msgx") as store:
        yield Product(store)
    logger.setLevel(level)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sample(path: Path, product: Product, count: Count) -> None:
    check_sample(product, path)
    count("golden", 1)


def test_every_enabled_kind_has_a_sample(product: Product) -> None:
    product.reset()
    enabled = {row["styp"] for row in product.rows("flop_kind", "where enabled")}
    assert len(enabled) == 29
    assert {path.stem for path in FILES} == enabled | {"ADFT", "DNLD"}
    assert all(load(path)["kind"] == path.stem for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sample_shows_what_differs(path: Path, product: Product) -> None:
    """Duplicate, set, a flight that is not there, the explicit empty form of the kind, main beside shared."""
    sample = load(path)
    shown = {case["shows"].split(":")[0] for case in sample["cases"]}
    product.reset()
    kinds = {row["tag"]: row["kind"] for row in product.rows("flight_field")}
    rules = {row["styp"]: row["keys"] for row in product.rows("flop_kind")}
    wanted = {"duplicate"}
    if rules.get(path.stem):
        form = {kinds[key] for key in rules[path.stem]}
        wanted |= {"set", "missing flight", "clear" if form & {"collection", "object"} else "empty"}
    assert wanted <= shown, path.stem
    assert any(flight.get("MAID") for flight in sample["prior"].values()) or "shared flight" in shown, path.stem


def test_coverage_page_is_what_the_samples_say() -> None:
    script = ROOT / "scripts" / "render_coverage.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
