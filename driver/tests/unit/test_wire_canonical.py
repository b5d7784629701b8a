"""Canonical JSON: one spelling per value (contract §5)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgx_driver.wire import canonical_json

_LEAVES = st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("AB_a é", max_size=3), inner)
)


def test_it_is_the_wire_example_of_the_contract() -> None:
    gates = [{"GTYP": "D", "GTNO": "1", "GATE": "A1"}]
    assert canonical_json({"GTDT": gates}) == '{"GTDT":[{"GATE":"A1","GTNO":"1","GTYP":"D"}]}'


def test_keys_are_in_code_point_order_at_every_level() -> None:
    # jsonb and length-first orders would put "B" and "a" elsewhere.
    value = {
        "b": 1,
        "a": {"é": 1, "z": 2, "Z": 3},
        "AAA": 1,
        "B": [{"y": 1, "x": 2}],
        "\U0001f600": 1,
        "｡": 1,
    }
    expected = '{"AAA":1,"B":[{"x":2,"y":1}],"a":{"Z":3,"z":2,"é":1},"b":1,"｡":1,"\U0001f600":1}'
    assert canonical_json(value) == expected


def test_text_stays_text_and_only_what_json_demands_is_escaped() -> None:
    assert canonical_json(["登机口", '"', "\\", "\n", "\x00", "/", "\u2028"]) == (
        '["登机口","\\"","\\\\","\\n","\\u0000","/","\u2028"]'
    )


def test_numbers_stay_as_given() -> None:
    assert canonical_json([0, -1, 10**30, 1.5, True, None]) == f"[0,-1,{10**30},1.5,true,null]"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_no_json_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(value)


@pytest.mark.parametrize("value", [b"bytes", {"a": Decimal("1")}, {1, 2}])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@given(_VALUES)
def test_it_round_trips_and_does_not_depend_on_the_order_of_keys(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(_reversed(value)) == text
    assert text.encode().decode() == text


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(list(value))}
    return [_reversed(item) for item in value] if isinstance(value, list) else value
