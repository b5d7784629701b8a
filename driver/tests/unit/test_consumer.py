from __future__ import annotations

import json
from typing import Any

import pytest

from msgx_driver.consumer import Change, FlightStates, RecordError


def headers(version: int, kind: str = "STATE", epoch: int = 1) -> list[tuple[str, bytes | str | None]]:
    return [
        ("event_id", b"9"),
        ("kind", kind.encode()),
        ("epoch", str(epoch).encode()),
        ("state_version", str(version).encode()),
        ("other", None),
    ]


def state(version: int, flid: str = "F", **tags: Any) -> dict[str, Any]:
    return {"FLID": flid, "STATE_VERSION": version, **tags}


def put(states: FlightStates, version: int, epoch: int = 1, **tags: Any) -> Change | None:
    return states.apply(b"F", json.dumps(state(version, **tags)).encode(), headers(version, epoch=epoch))


def test_a_state_replaces_the_whole_of_what_was_known() -> None:
    states = FlightStates()
    assert put(states, 1, GATE="A1", STND="5") == Change("F", "added", None, state(1, GATE="A1", STND="5"))
    change = put(states, 2, GATE="A2")
    assert change is not None
    assert (change.kind, change.before, change.after) == ("replaced", state(1, GATE="A1", STND="5"), states["F"])
    assert dict(states) == {"F": state(2, GATE="A2")}
    assert states.version("F") == (1, 2)


def test_repetitions_and_older_states_change_nothing() -> None:
    states = FlightStates()
    put(states, 5, GATE="A1")
    assert put(states, 5, GATE="B1") is None
    assert put(states, 4, GATE="C1") is None
    assert states["F"]["GATE"] == "A1"


def test_epoch_goes_before_version() -> None:
    states = FlightStates()
    put(states, 500)
    assert put(states, 3, epoch=2, GATE="A1") is not None
    assert put(states, 501) is None
    assert states.version("F") == (2, 3)


@pytest.mark.parametrize("value", [None, b'{"DELETED":true,"FLID":"F"}', '{"FLID":"F","DELETED":true}'])
def test_a_tombstone_deletes_and_is_remembered(value: bytes | str | None) -> None:
    states = FlightStates()
    put(states, 1)
    change = states.apply("F", value, headers(2, "TOMBSTONE"))
    assert change == Change("F", "deleted", state(1), None)
    assert (len(states), list(states), states.version("F")) == (0, [], (1, 2))
    assert put(states, 1) is None
    assert "F" not in states
    assert states.apply("F", value, headers(2, "TOMBSTONE")) is None
    reborn = put(states, 3)
    assert reborn is not None
    assert reborn.kind == "added"


def test_a_tombstone_of_a_flight_never_seen_changes_nothing_and_is_remembered() -> None:
    states = FlightStates()
    assert states.apply("F", None, headers(2, "TOMBSTONE")) is None
    assert put(states, 2) is None
    assert "F" not in states


def test_headers_may_be_a_mapping() -> None:
    states = FlightStates()
    given = {"kind": "STATE", "epoch": "1", "state_version": "1"}
    assert states.apply("F", json.dumps(state(1)), given) is not None


@pytest.mark.parametrize(
    ("key", "value", "given", "part"),
    [
        (b"F", b"{}", headers(1), "differ from key"),
        (b"G", json.dumps(state(1)).encode(), headers(1), "differ from key"),
        (b"F", json.dumps(state(2)).encode(), headers(1), "differ from key"),
        (b"F", None, headers(1), "no value"),
        (b"F", b"{", headers(1), "no JSON"),
        (b"F", b"[]", headers(1), "no JSON object"),
        (b"F", b"\xff", headers(1), "value is not UTF-8"),
        (b"\xff", b"{}", headers(1), "key is not UTF-8"),
        (b"F", b'{"FLID":"F"}', headers(1, "TOMBSTONE"), "tombstone"),
        (b"F", b"{}", headers(1, "NOTICE"), "topic of their own"),
        (b"F", b"{}", headers(1)[:3], "state_version is missing"),
        (b"F", b"{}", [*headers(1), ("epoch", b"one")], "epoch is no number"),
        (b"F", b"{}", [*headers(1), ("epoch", b"1" * 5000)], "epoch is no number"),
        (b"F", b"[" * 100_000, headers(1), "no JSON"),
        (b"F", b'{"FLID":"F","STATE_VERSION":' + b"1" * 5000 + b"}", headers(1), "no JSON"),
        (b"F", b'{"FLID":"F","STATE_VERSION":true}', headers(1), "differ from key"),
        (b"F", b"{}", [*headers(1), ("epoch", None)], "epoch is null"),
    ],
)
def test_what_breaks_the_contract_is_refused_and_changes_nothing(
    key: bytes, value: bytes | None, given: Any, part: str
) -> None:
    states = FlightStates()
    with pytest.raises(RecordError, match=part):
        states.apply(key, value, given)
    assert states.version("F") is None
    assert len(states) == 0
