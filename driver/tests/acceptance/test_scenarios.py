"""Every scenario file, step by step through the public command line (see driver/tests/scenarios/README.md)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .conftest import Airport, Cli

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
FILES = sorted(FOLDER.glob("*.json"))
SHARED = FOLDER.parents[3] / "shared" / "scenarios"


def load(path: Path) -> dict[str, Any]:
    scenario: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return scenario


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_scenario(path: Path, cli: Cli, airport: Airport, count: Any) -> None:
    scenario = load(path)
    for name, value in scenario["settings"].items():
        cli("settings", "set", name, value, "--db", airport.driver)
    message_id = 0
    seen_event = 0
    for number, step in enumerate(scenario["steps"], 1):
        where = f"{path.stem} step {number}"
        if "message" in step:
            message_id += 1
            line = json.dumps({"id": message_id, "xml": step["message"]}).encode()
            cli("replay", "-", "--db", airport.driver, stdin=line, expect=None)
            check_outcome(airport, message_id, step["expect"], where)
        elif "check" in step:
            found = [[None if v is None else str(v) for v in row] for row in airport.rows(step["check"])]
            expected = [[None if v is None else str(v) for v in row] for row in step["rows"]]
            assert found == expected, where
        elif "events" in step:
            rows = airport.rows(
                f"select event_id, target, kind, flid from msg_event where event_id > {seen_event} order by 1"
            )
            assert Counter(row[1:] for row in rows) == Counter(map(tuple, step["events"])), where
            seen_event = max([seen_event, *(int(str(row[0])) for row in rows)])
        elif "projection" in step:
            done = cli("flights", step["projection"], "--db", airport.driver)
            state = json.loads(done.stdout)[0]
            assert {k: state.get(k) for k in step["contains"]} == step["contains"], where
            assert not set(step["lacks"]) & set(state), where
        else:
            pytest.fail(f"{where}: unknown step {sorted(step)}")
    assert airport.rows("select * from consistency_check") == []
    count("scenario", 1)


def check_outcome(airport: Airport, message_id: int, expect: dict[str, Any], where: str) -> None:
    names = list(expect)
    row = airport.rows(f"select {', '.join(names)} from proc_state where message_id = {message_id}")[0]
    for name, found in zip(names, row, strict=True):
        if name == "reason":
            assert expect["reason"] in str(found), (where, found)
        else:
            assert found == expect[name], (where, name, found)


def test_scenarios_are_the_agreed_ones() -> None:
    for path in SHARED.glob("*.json"):
        assert (FOLDER / path.name).read_bytes() == path.read_bytes(), path.name
