"""SIS XML to the command of contract §2: keys are tags in upper case, values strings, nothing interpreted.

The document is read as a stream: what is kept of it is the command. Everything that needs settings, the
day or the stored state is decided in SQL; here only the shape is (D40).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pyexpat import ErrorString
from typing import Any, Final, NoReturn, TypeAlias

from defusedxml import DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden
from defusedxml.ElementTree import ParseError, XMLParser

from msgx_driver.wire.canonical import canonical_json
from msgx_driver.wire.encodings import BLANK, EncodingError, decode_text
from msgx_driver.wire.fields import FieldCatalogue, FieldSpec

MAX_DEPTH: Final = 20
# Before META has been read a deeper element does not end the pass, but expat keeps every open element.
_DEPTH_BEFORE_META = 1000
MAX_FLID: Final = 20
MAX_REASON_BYTES: Final = 4096

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_META_FIELDS = frozenset({"SNDR", "SEQN", "DTTM", "TYPE", "STYP"})
_SCHEDULE_FIELDS = frozenset({"RECS", "FDAY"})
# TYPE -> the elements below MSG (SCHD: below SCHD) that are flight records.
_RECORDS = {
    "SCHD": frozenset({"FLTR", "FLGT"}),
    "FLOP": frozenset({"FLOP"}),
    "FDEL": frozenset({"FLOP", "FDEL"}),
}
_ZERO = re.compile(r"[ \t\r\n]*0+[ \t\r\n]*")
# Names come from the message: one that is longer than any real one is shortened where it is only reported.
_NAME_MAX = 64
# Expat scans an unfinished token again with every piece, so pieces are large; they bound the copy it makes.
_PIECE = 1 << 20

_OnStart: TypeAlias = Callable[["_Reader", str, dict[str, str]], None]
_OnEnd: TypeAlias = Callable[["_Reader"], None]
_OnLeaf: TypeAlias = Callable[["_Reader", str, str | None], None]


class DecodeError(Exception):
    """A message that is refused as MALFORMED.

    ``reason`` (at most 4 kB of UTF-8) names tag, FLID, rule and offset, never values of the message.
    ``capacity`` is true when a size limit was passed.
    """

    def __init__(self, reason: str, *, capacity: bool = False) -> None:
        reason = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        super().__init__(reason)
        self.reason = reason
        self.capacity = capacity


class _Stop(Exception):
    """META has been read and nothing more is wanted of this pass."""


def decode_message(payload: bytes, encoding: str, catalogue: FieldCatalogue, *, max_bytes: int) -> dict[str, Any]:
    """Decode one message into its command, a dict of JSON values whose leaves are strings.

    ``payload`` and ``encoding`` are the columns of ``message_raw``: ``bytes`` = as received, ``text`` =
    UTF-8 of text that was decoded before. ``max_bytes`` is setting ``wire.max_bytes``.

    Result: ``{"meta", "schedule", "flights", "unknown"}``. ``meta`` holds what was sent of SNDR, SEQN,
    DTTM, TYPE and STYP. ``schedule`` holds RECS and FDAY of a SCHD. ``flights`` is there for TYPE SCHD,
    FLOP and FDEL: ``FLID``, ``set`` {tag: str, or {key: str} of an object}, ``clear`` [tag], ``replace``
    {tag: [{key: str}]}, ``unknown`` [name]. ``unknown`` names what the catalogue does not hold, so that
    SQL can refuse or count it (D10). Empty members are left out. When META could be read and the rest is
    wrong: ``{"meta", "error": {"reason", "capacity"}}``, so that an ignore rule can win (D36). The body
    of any other TYPE is checked as XML only.

    Raises DecodeError when META cannot be read: undecodable bytes, DTD or broken XML before its end, no
    META, TYPE or STYP missing or empty, a META tag twice, a root that is not MSG. Source: contract §1,
    FS-4.1-4, US-03/2.
    """
    undecodable = None
    try:
        text = decode_text(payload[:max_bytes], encoding)
    except EncodingError as failure:
        text, undecodable = failure.prefix, failure.reason
    too_long = len(payload) > max_bytes
    reader = _Reader(catalogue, meta_only=too_long)
    error = reader.read(text, complete=undecodable is None)
    if error is None and reader.meta_is_late:
        reader = _Reader(catalogue, meta=reader.meta)
        error = reader.read(text, complete=undecodable is None)
    if too_long:
        rule = f"capacity: the message is over the limit of {max_bytes} bytes (wire.max_bytes)"
        error = DecodeError(rule, capacity=True)
    elif undecodable is not None:
        error = DecodeError((reader.where() if error is None else "") + undecodable)
    if reader.meta is None:
        raise error or DecodeError("the message has no META")
    if error is not None:
        return {"meta": reader.meta, "error": {"reason": error.reason, "capacity": error.capacity}}
    return reader.command()


class _Flight:
    """What one record says about one flight, while it is being read."""

    __slots__ = (
        "clear",
        "empty",
        "flid",
        "items",
        "number",
        "plain",
        "seen",
        "set",
        "tag",
        "texts",
        "unknown",
    )

    def __init__(self, tag: str, number: int) -> None:
        self.tag = tag
        self.number = number
        self.flid: str | None = None
        self.set: dict[str, str | dict[str, str]] = {}
        self.clear: list[str] = []
        self.items: dict[str, list[dict[str, str]]] = {}
        self.texts: dict[str, list[dict[str, str]]] = {}
        self.seen: set[str] = set()  # FLID, scalars and objects that came as an element
        self.empty: set[str] = set()  # collections with an empty element
        self.plain: set[str] = set()  # texts that came once, without keys of their own
        self.unknown: set[str] = set()


class _Reader:
    """One pass over one document.

    ``_on_start`` and ``_on_end`` are the handlers of the element that is open now, ``_sink`` takes its
    text (None: only blanks may stand there). ``_skip`` is the depth of an element whose whole content is
    left out, 0 = none. Handlers are plain functions, so a reader holds no reference to itself and is
    freed at once.
    """

    def __init__(
        self, catalogue: FieldCatalogue, *, meta: dict[str, str] | None = None, meta_only: bool = False
    ) -> None:
        self.meta = meta
        self.meta_is_late = False  # something stands before META, so its TYPE is not known there
        self._catalogue = catalogue
        self._meta_only = meta_only
        self._meta_given = meta is not None
        self._meta_seen = False
        self._meta_read: dict[str, str] = {}
        self._meta_fault: str | None = None
        self._records: frozenset[str] = frozenset()
        self._body = ""  # TYPE when its body is decoded, else ''
        self._schedule_seen = False
        self._schedule: dict[str, str] = {}
        self._schedule_elements: set[str] = set()
        self._flights: list[dict[str, Any]] = []
        self._unknown: set[str] = set()  # of the message
        self._notes = self._unknown  # where names go now: of the message, or of the open record
        self._flight: _Flight | None = None
        self._depth = 0
        self._skip = 0
        self._sink: list[str] | None = None
        self._on_start: _OnStart = _Reader._start_root
        self._on_end: _OnEnd = _Reader._end_nothing
        # The open item, object or text element.
        self._spec = FieldSpec("", "scalar")
        self._item: dict[str, str] = {}
        self._item_text: list[str] = []
        self._item_elements: set[str] = set()
        self._item_filled = False
        # The open leaf: a scalar, a key of an item, a META field, RECS or FDAY.
        self._leaf = ""
        self._leaf_path = ""
        self._leaf_text: list[str] = []
        self._leaf_nested = False
        self._on_leaf: _OnLeaf = _Reader._leaf_ignored
        self._leaf_parent: tuple[_OnStart, _OnEnd, list[str] | None] = (self._on_start, self._on_end, None)
        if meta is not None:
            self._choose_body(meta["TYPE"])

    # -- the pass ------------------------------------------------------------------------------------------

    def read(self, text: str, *, complete: bool) -> DecodeError | None:
        """Feed the document and return what is wrong with it; ``meta`` is set as soon as META has been
        read.

        Not ``complete``: the text breaks off, which is no error of its own.
        """
        parser = XMLParser(target=object(), forbid_dtd=True)
        expat = parser.parser
        # Straight to expat: no second call per event, and attributes come as a dict that nobody else holds.
        expat.ordered_attributes = False
        expat.StartElementHandler = self._start
        expat.EndElementHandler = self._end
        expat.CharacterDataHandler = self._data
        closing = False
        try:
            for begin in range(0, len(text), _PIECE):
                parser.feed(text[begin : begin + _PIECE])
            closing = True
            parser.close()
        except _Stop:
            return None
        except DecodeError as error:
            return error
        except ParseError as error:
            if closing and not complete:
                return None
            line, column = error.position
            rule = f"not well-formed XML at line {line}, column {column}: {ErrorString(error.code)}"
            return DecodeError(self.where() + rule)
        except DTDForbidden:
            return DecodeError("a DTD (DOCTYPE) is not accepted")
        except (EntitiesForbidden, ExternalReferenceForbidden):
            return DecodeError("entities and external references are not accepted")
        finally:
            # Expat hands out the text it still holds when its handler changes; this pass takes no more.
            self._skip = -1
            expat.StartElementHandler = expat.EndElementHandler = expat.CharacterDataHandler = None
        return None

    def command(self) -> dict[str, Any]:
        """Return the command of a document that was read without an error."""
        command: dict[str, Any] = {"meta": self.meta}
        if self._schedule:
            command["schedule"] = self._schedule
        if self._body:
            command["flights"] = self._flights
        if self._unknown:
            command["unknown"] = sorted(self._unknown)
        return command

    def where(self) -> str:
        """Return the record that is open, as the start of a reason; '' between records."""
        flight = self._flight
        if flight is None:
            return ""
        flid = "" if flight.flid is None else f" (FLID {_printable(flight.flid)})"
        return f"{flight.tag} record {flight.number}{flid}: "

    def _start(self, tag: str, attrs: dict[str, str]) -> None:
        self._depth += 1
        if not self._skip:
            self._on_start(self, tag, attrs)
        elif self._depth > MAX_DEPTH:
            rule = f"elements are nested deeper than {MAX_DEPTH}"
            if self._depth > _DEPTH_BEFORE_META:
                self._fail(rule)
            self._fail_late(rule)

    def _end(self, _tag: str) -> None:
        if not self._skip:
            self._on_end(self)
        elif self._skip == self._depth:
            self._skip = 0
        self._depth -= 1

    def _data(self, text: str) -> None:
        if self._skip:
            return
        if self._sink is not None:
            self._sink.append(text)
        elif text.strip(BLANK):
            self._stray_text()

    def _stray_text(self) -> None:
        if self.meta is None:
            self.meta_is_late = True
        elif self._body:
            self._fail("text between the elements")

    def _fail(self, rule: str, *, capacity: bool = False) -> NoReturn:
        raise DecodeError(self.where() + rule, capacity=capacity)

    def _fail_late(self, rule: str) -> None:
        """Refuse the message, but not before META has been read: an ignore rule may win (D36)."""
        if self.meta is not None:
            self._fail(rule)
        self._meta_fault = self._meta_fault or rule

    def _leave_out(self) -> None:
        self._skip = self._depth

    def _attributes(self, attrs: dict[str, str]) -> dict[str, str]:
        """Attributes by local name, without those of XMLSchema-instance."""
        if not any("}" in name for name in attrs):
            return attrs
        named: dict[str, str] = {}
        for name, value in attrs.items():
            namespace, _, local = name.rpartition("}")
            if namespace == _XSI:
                continue
            if local in named:
                self._fail(f"attribute {_clip(local)} twice in one element")
            named[local] = value
        return named

    def _end_nothing(self) -> None:
        """End of MSG: nothing is left to do."""

    # -- MSG and META --------------------------------------------------------------------------------------

    def _start_root(self, tag: str, _attrs: dict[str, str]) -> None:
        if _local(tag) != "MSG":
            self._fail("the root element is not MSG")
        self._on_start = _Reader._start_in_msg

    def _start_in_msg(self, tag: str, attrs: dict[str, str]) -> None:
        name = _local(tag)
        if name == "META":
            if self._meta_seen:
                self._fail("a second META")
            self._meta_seen = True
            if self._meta_given:
                self._leave_out()
            else:
                self._on_start, self._on_end, self._sink = _Reader._start_in_meta, _Reader._end_meta, []
        elif self.meta is None:
            self.meta_is_late = True
            self._leave_out()
        elif self._body == name == "SCHD":
            self._start_schedule(attrs)
        elif self._body != "SCHD" and name in self._records:
            self._start_record(name, attrs)
        else:
            if self._body:
                self._unknown.add(f"MSG/{_clip(name)}")
            self._leave_out()

    def _start_in_meta(self, tag: str, _attrs: dict[str, str]) -> None:
        name = _local(tag)
        if name not in _META_FIELDS:
            self._leave_out()
            return
        if name in self._meta_read:
            self._fail(f"META/{name} twice")
        self._notes = set()
        self._open_leaf(name, "META", {}, _Reader._leaf_of_meta)
        self._meta_read[name] = ""

    def _leaf_of_meta(self, name: str, value: str | None) -> None:
        self._notes = self._unknown
        if self._leaf_nested:
            self._fail_late(f"META/{name} has elements of its own")
        self._meta_read[name] = value or ""

    def _end_meta(self) -> None:
        for name in ("TYPE", "STYP"):
            if not self._meta_read.get(name):
                self._fail(self._meta_fault or f"META/{name} is missing or empty")
        self.meta = self._meta_read
        if self._meta_fault is not None:
            self._fail(self._meta_fault)
        if self._meta_only or self.meta_is_late:
            raise _Stop
        self._choose_body(self.meta["TYPE"])
        self._on_start, self._on_end, self._sink = _Reader._start_in_msg, _Reader._end_nothing, None

    def _choose_body(self, message_type: str) -> None:
        records = _RECORDS.get(message_type)
        if records is not None:
            self._body, self._records = message_type, records

    # -- SCHD ----------------------------------------------------------------------------------------------

    def _start_schedule(self, attrs: dict[str, str]) -> None:
        if self._schedule_seen:
            self._fail("a second SCHD")
        self._schedule_seen = True
        for name, value in self._attributes(attrs).items():
            if name in _SCHEDULE_FIELDS:
                self._schedule[name] = value
            else:
                self._unknown.add(f"SCHD/@{_clip(name)}")
        self._on_start, self._on_end = _Reader._start_in_schedule, _Reader._end_schedule

    def _start_in_schedule(self, tag: str, attrs: dict[str, str]) -> None:
        name = _local(tag)
        if name in self._records:
            self._start_record(name, attrs)
        elif name in _SCHEDULE_FIELDS:
            if name in self._schedule_elements:
                self._fail(f"SCHD/{name} twice")
            self._schedule_elements.add(name)
            self._open_leaf(name, f"SCHD/{name}", attrs, _Reader._leaf_of_schedule)
        else:
            self._unknown.add(f"SCHD/{_clip(name)}")
            self._leave_out()

    def _leaf_of_schedule(self, name: str, value: str | None) -> None:
        if value is not None and self._schedule.setdefault(name, value) != value:
            self._fail(f"SCHD/{name}: attribute and element differ")

    def _end_schedule(self) -> None:
        self._on_start, self._on_end = _Reader._start_in_msg, _Reader._end_nothing

    # -- a flight record -----------------------------------------------------------------------------------

    def _start_record(self, name: str, attrs: dict[str, str]) -> None:
        flight = self._flight = _Flight(name, len(self._flights) + 1)
        self._notes = flight.unknown
        for key, value in self._attributes(attrs).items():
            spec = self._catalogue.get(key)
            if key == "FLID":
                self._take_flid(flight, value)
            elif spec is not None and spec.kind == "scalar":
                flight.set[key] = value
            else:
                flight.unknown.add(f"@{_clip(key)}")
        self._on_start, self._on_end = _Reader._start_in_record, _Reader._end_record

    def _start_in_record(self, tag: str, attrs: dict[str, str]) -> None:
        spec = self._catalogue.get(tag)
        if spec is None or tag == "FLID":
            self._start_other(tag, attrs)
        elif spec.kind == "scalar":
            self._see_once(tag)
            self._open_leaf(tag, tag, attrs, _Reader._leaf_of_record)
        else:
            self._start_item(spec, attrs)

    def _start_other(self, tag: str, attrs: dict[str, str]) -> None:
        """A child of a record that the catalogue does not hold under this very name."""
        name = _local(tag)
        if name == "FLID":
            self._see_once(name)
            self._open_leaf(name, name, attrs, _Reader._leaf_of_flid)
        elif name == "FDEL" and self._open_flight().tag == "FLOP" and self._deletes():
            # The marker of a deletion says nothing that TYPE or STYP does not say; elsewhere it is unknown (D10).
            self._open_leaf(name, name, attrs, _Reader._leaf_ignored)
        elif name != tag:
            self._start_in_record(name, attrs)
        else:
            self._notes.add(_clip(name))
            self._leave_out()

    def _deletes(self) -> bool:
        return self.meta is not None and "FDEL" in (self.meta["TYPE"], self.meta["STYP"])

    def _open_flight(self) -> _Flight:
        if self._flight is None:
            raise AssertionError("no record is open")
        return self._flight

    def _see_once(self, name: str) -> None:
        seen = self._open_flight().seen
        if name in seen:
            self._fail(f"{name} twice in one record")
        seen.add(name)

    def _leaf_of_record(self, name: str, value: str | None) -> None:
        if value is not None and self._open_flight().set.setdefault(name, value) != value:
            self._fail(f"{name}: attribute and element differ")

    def _leaf_of_flid(self, _name: str, value: str | None) -> None:
        flight = self._open_flight()
        if value is None:
            return
        if flight.flid is None:
            self._take_flid(flight, value)
        elif flight.flid != value:
            self._fail("FLID: attribute and element differ")

    def _leaf_ignored(self, _name: str, _value: str | None) -> None:
        """A leaf whose value says nothing."""

    def _take_flid(self, flight: _Flight, value: str) -> None:
        if not value.strip(BLANK):
            self._fail("FLID is empty")
        if len(value) > MAX_FLID:
            self._fail(f"capacity: FLID is over {MAX_FLID} characters", capacity=True)
        flight.flid = value

    def _end_record(self) -> None:
        flight = self._open_flight()
        if flight.flid is None:
            self._fail("FLID is missing")
        record: dict[str, Any] = {"FLID": flight.flid}
        replace: dict[str, list[dict[str, str]]] = {}
        for tag, items in flight.items.items():
            if self._says_clear(tag, items):
                flight.clear.append(tag)
            else:
                replace[tag] = [] if tag in flight.empty else items
        for tag, elements in flight.texts.items():
            flight.set[tag] = _text_value(elements, plain=tag in flight.plain)
        if flight.set:
            record["set"] = flight.set
        if flight.clear:
            record["clear"] = sorted(flight.clear)
        if replace:
            record["replace"] = replace
        if flight.unknown:
            record["unknown"] = sorted(flight.unknown)
        self._flights.append(record)
        self._flight = None
        self._notes = self._unknown
        if self._body == "SCHD":
            self._on_start, self._on_end = _Reader._start_in_schedule, _Reader._end_schedule
        else:
            self._on_start, self._on_end = _Reader._start_in_msg, _Reader._end_nothing

    def _says_clear(self, tag: str, items: list[dict[str, str]]) -> bool:
        """Whether every item has sequence 0 (FS-5.2-8); 0 beside anything else is refused."""
        seq_tag = self._catalogue[tag].seq_tag
        if seq_tag is None:
            return False
        zeros = sum(1 for item in items if _ZERO.fullmatch(item.get(seq_tag, "")))
        if zeros and zeros != len(items):
            self._fail(f"{tag}: items with {seq_tag} 0 (clear) and others side by side")
        return zeros > 0

    # -- an item of a collection, an object, a text element --------------------------------------------------

    def _start_item(self, spec: FieldSpec, attrs: dict[str, str]) -> None:
        if spec.kind == "object":
            self._see_once(spec.tag)
        if attrs and not attrs.keys() <= spec.attrs:
            attrs = self._attributes(attrs)
        self._spec = spec
        self._item_filled = bool(attrs)
        self._item = attrs if spec.kind == "text" else self._known(spec, attrs)
        self._item_text.clear()
        self._item_elements.clear()
        self._on_start, self._on_end, self._sink = _Reader._start_in_item, _Reader._end_item, self._item_text

    def _known(self, spec: FieldSpec, attrs: dict[str, str]) -> dict[str, str]:
        if attrs.keys() <= spec.attrs:
            return attrs
        for name in attrs.keys() - spec.attrs:
            self._notes.add(f"{spec.tag}/{_clip(name)}")
        return {name: value for name, value in attrs.items() if name in spec.attrs}

    def _start_in_item(self, tag: str, attrs: dict[str, str]) -> None:
        spec = self._spec
        self._item_filled = True
        name = tag if tag in spec.attrs else _local(tag)
        if name not in spec.attrs and spec.kind != "text":
            self._notes.add(f"{spec.tag}/{_clip(name)}")
            self._leave_out()
            return
        if name in self._item_elements:
            self._fail(f"{spec.tag}/{_clip(name)} twice in one element")
        self._item_elements.add(name)
        self._open_leaf(name, "", attrs, _Reader._leaf_of_item)

    def _leaf_of_item(self, name: str, value: str | None) -> None:
        if value is not None and self._item.setdefault(name, value) != value:
            self._fail(f"{self._spec.tag}/{_clip(name)}: attribute and element differ")

    def _end_item(self) -> None:
        spec, item = self._spec, self._item
        has_keys = self._item_filled
        text = "".join(self._item_text).strip(BLANK)
        if text:
            self._item_filled = True
            if spec.kind != "text" and "TEXT" not in spec.attrs:
                self._notes.add(f"{spec.tag}/TEXT")
            elif item.setdefault("TEXT", text) != text:
                self._fail(f"{spec.tag}: its own text and its key TEXT differ")
        self._on_start, self._on_end, self._sink = _Reader._start_in_record, _Reader._end_record, None
        flight = self._open_flight()
        if spec.kind == "collection":
            self._add_item(flight, spec, item)
        elif spec.kind == "object":
            self._add_object(flight, spec, item)
        else:
            self._add_text(flight, spec, item, has_keys=has_keys)

    def _add_item(self, flight: _Flight, spec: FieldSpec, item: dict[str, str]) -> None:
        items = flight.items.setdefault(spec.tag, [])
        items.append(item)
        if not self._item_filled:
            flight.empty.add(spec.tag)
        if len(items) > 1 and spec.tag in flight.empty:
            self._fail(f"{spec.tag}: an empty element among others")
        if spec.max_items is not None and len(items) > spec.max_items:
            self._fail(f"{spec.tag}: capacity: more than {spec.max_items} items", capacity=True)

    def _add_object(self, flight: _Flight, spec: FieldSpec, item: dict[str, str]) -> None:
        if any(item.values()):
            flight.set[spec.tag] = item
        elif not any(name.startswith(f"{spec.tag}/") for name in flight.unknown):
            flight.clear.append(spec.tag)
        # Else only its unknown part may say something: it is no Clear, and nothing known is there to be set.

    def _add_text(self, flight: _Flight, spec: FieldSpec, item: dict[str, str], *, has_keys: bool) -> None:
        elements = flight.texts.setdefault(spec.tag, [])
        elements.append(item)
        if len(elements) == 1 and not has_keys:
            flight.plain.add(spec.tag)
        else:
            flight.plain.discard(spec.tag)

    # -- an element that holds one value ---------------------------------------------------------------------

    def _open_leaf(self, name: str, path: str, attrs: dict[str, str], on_leaf: _OnLeaf) -> None:
        """``path`` is its name in ``unknown``; '' = a key of the open item."""
        self._leaf = name
        self._leaf_path = path
        self._leaf_nested = False
        self._leaf_text.clear()
        self._leaf_parent = (self._on_start, self._on_end, self._sink)
        self._on_leaf = on_leaf
        self._on_start, self._on_end, self._sink = _Reader._start_in_leaf, _Reader._end_leaf, self._leaf_text
        if attrs:
            for key in self._attributes(attrs):
                self._notes.add(f"{self._path_of_leaf()}/@{_clip(key)}")

    def _path_of_leaf(self) -> str:
        return self._leaf_path or f"{self._spec.tag}/{_clip(self._leaf)}"

    def _start_in_leaf(self, tag: str, _attrs: dict[str, str]) -> None:
        self._leaf_nested = True
        self._notes.add(f"{self._path_of_leaf()}/{_clip(_local(tag))}")
        self._leave_out()

    def _end_leaf(self) -> None:
        value: str | None = "".join(self._leaf_text).strip(BLANK)
        self._on_start, self._on_end, self._sink = self._leaf_parent
        # With elements of its own and no text it has no value that could be told from an empty one.
        if self._leaf_nested and not value:
            value = None
        self._on_leaf(self, self._leaf, value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _clip(name: str) -> str:
    return name if len(name) <= _NAME_MAX else name[:_NAME_MAX] + "…"


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def _text_value(elements: list[dict[str, str]], *, plain: bool) -> str:
    """Value of SRVT, VIPF or MAFL (D28): its text as sent, or canonical JSON; what starts as JSON is
    JSON.
    """
    if not plain:
        return canonical_json(elements)
    text = elements[0].get("TEXT", "")
    if text.startswith("[{") and not _is_json_list(text):
        return canonical_json(elements)
    return text


def _is_json_list(text: str) -> bool:
    """Whether ``text`` is a JSON array of flat objects of strings that jsonb holds without loss."""
    try:
        value: list[Any] = json.loads(text, object_pairs_hook=_strings)
    except (ValueError, RecursionError):
        return False
    return all(isinstance(item, dict) for item in value)


def _strings(pairs: list[tuple[str, Any]]) -> dict[str, str]:
    """An object of strings: no key twice, no NUL, no half of a surrogate pair; else ValueError."""
    for key, value in pairs:
        if not isinstance(value, str) or "\0" in key or "\0" in value:
            raise ValueError
        (key + value).encode()
    strings = dict(pairs)
    if len(strings) != len(pairs):
        raise ValueError
    return strings
