"""For consumers of the topic of states: the current state of every flight, kept by the rules of the contract (§5).

It needs nothing but Python; feed it the records of whatever Kafka client reads the topic. `docs/consumers.md` has the
whole picture, the folder `schemas` beside this file JSON Schemas of every payload and of the headers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, Literal

__all__ = ["SCHEMAS", "Change", "FlightStates", "Headers", "RecordError", "schemas"]

State = Mapping[str, Any]
Headers = Mapping[str, "bytes | str | None"] | Iterable[tuple[str, "bytes | str | None"]]
"""Headers as the clients give them: a mapping, or pairs."""

SCHEMAS: Final = ("state", "tombstone", "notice", "headers")
_NEEDED: Final = ("kind", "epoch", "state_version")


class RecordError(ValueError):
    """A record that does not follow the contract; the text says what, and never repeats the payload."""


@dataclass(frozen=True)
class Change:
    """What a record changed: `before` and `after` are whole states, None = no such flight."""

    flid: str
    kind: Literal["added", "replaced", "deleted"]
    before: State | None
    after: State | None


class FlightStates(Mapping[str, State]):
    """The flights that exist, by FLID, each with its whole state.

    The newest record of a flight is the one with the highest epoch, then the highest state_version. It replaces what
    was known as a whole; anything older or equal is a repetition and changes nothing. A tombstone deletes, and is
    remembered, so that an older state that comes after it does not bring the flight back.
    """

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._versions: dict[str, tuple[int, int]] = {}

    def __getitem__(self, flid: str) -> State:
        """State of one flight; KeyError when it does not exist."""
        return self._states[flid]

    def __iter__(self) -> Iterator[str]:
        """FLIDs of the flights that exist."""
        return iter(self._states)

    def __len__(self) -> int:
        """Return the number of flights that exist."""
        return len(self._states)

    def version(self, flid: str) -> tuple[int, int] | None:
        """(epoch, state_version) of the newest record of a flight, deleted ones too; None when it was never seen."""
        return self._versions.get(flid)

    def apply(self, key: bytes | str, value: bytes | str | None, headers: Headers) -> Change | None:
        """Take one record of the topic of states; returns what it changed, None when it was a repetition or older.

        Raises RecordError for a record that does not follow the contract, and leaves everything as it was.
        """
        flid = _text(key, "key")
        named = _named(headers)
        kind = named["kind"]
        version = (_number(named, "epoch"), _number(named, "state_version"))
        state = _state_of(flid, kind, value, version[1])
        known = self._versions.get(flid)
        if known is not None and version <= known:
            return None
        before = self._states.get(flid)
        self._versions[flid] = version
        if state is None:
            self._states.pop(flid, None)
            return None if before is None else Change(flid, "deleted", before, None)
        self._states[flid] = state
        return Change(flid, "added" if before is None else "replaced", before, state)


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas (draft 2020-12) of the values by kind in lower case, and of the headers, by the names in SCHEMAS."""
    folder = resources.files("msgx_driver").joinpath("schemas")
    return {name: json.loads(folder.joinpath(f"{name}.schema.json").read_text("utf-8")) for name in SCHEMAS}


def _state_of(flid: str, kind: str, value: bytes | str | None, state_version: int) -> State | None:
    if kind == "TOMBSTONE":
        if value is not None and _parsed(value) != {"DELETED": True, "FLID": flid}:
            raise RecordError("the value of a tombstone is neither null nor DELETED with the FLID of the key")
        return None
    if kind != "STATE":
        raise RecordError("header kind is neither STATE nor TOMBSTONE; notices have a topic of their own")
    if value is None:
        raise RecordError("a STATE has no value")
    state = _parsed(value)
    if state.get("FLID") != flid or type(version := state.get("STATE_VERSION")) is not int or version != state_version:
        raise RecordError("FLID or STATE_VERSION of the value differ from key and header")
    return state


def _parsed(value: bytes | str) -> dict[str, Any]:
    text = _text(value, "value")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError("the value is no JSON") from None
    if not isinstance(found, dict):
        raise RecordError("the value is no JSON object")
    return found


def _named(headers: Headers) -> dict[str, str]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    named = {name: _text(value, f"header {name}") for name, value in pairs if name in _NEEDED}
    for name in _NEEDED:
        if name not in named:
            raise RecordError(f"header {name} is missing")
    return named


def _number(named: Mapping[str, str], name: str) -> int:
    if not (named[name].isascii() and named[name].isdigit() and len(named[name]) < 20):
        raise RecordError(f"header {name} is no number")
    return int(named[name])


def _text(value: bytes | str | None, what: str) -> str:
    if value is None:
        raise RecordError(f"{what} is null")
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"{what} is not UTF-8") from None
