"""Random streams for the differential test: settings, catalogue rules and messages of every kind, good and bad.

A stream is a list of steps. The alphabet is small on purpose, so that plans, events, deletions and identities collide.
Every choice shrinks towards a plain, valid message.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

from tests.model.model import COLLECTIONS, DISABLED, ENABLED, GROUPS, OBJECTS, SCALARS, TEXTS, El, Message

FLIDS = ("A", "B", "M1", "S1", "S2", "b", "M2", "航1")
FLNOS = ("ZZ1", "ZZ11", "YY9", "CA7", "")
DAYS = ("09SEP26", "10SEP26", "11SEP26")
ISO = {"09SEP26": "2026-09-09", "10SEP26": "2026-09-10", "11SEP26": "2026-09-11"}
TIMES = ("0710", "0000", "0359", "0400", "2359", "2400", "071")
LISTS = ("ZZ1", "ZZ1,YY9", "ZZ1/YY9", "YY9; ZZ1", "ZZ11 ZZ1", "CA7 ,  ZZ1/YY9", ",", "", "ZZ1;;YY9", "YY9/ZZ11 ZZ1")
VALUES = (
    "1",
    "2",
    "A1",
    "登机口",
    "",
    " a & <b> ",
    "09sep261000",
    "x" * 200,
    "x" * 201,
    "机" * 200,
    "[{",
    '"\\',
    '[{"A":"1"}]',
)
DTTMS = ("20260909080000", "20260909100200", "20260910000100", "20260908235959", "2026", "", None, "20261399000000")
SETTINGS = {
    "snapshot.absent_flight": ("delete", "keep"),
    "snapshot.absent_field": ("keep", "clear"),
    "snapshot.reclaim": ("latest_message_wins", "protect"),
    "snapshot.recs_mismatch": ("reject", "warn"),
    "snapshot.max_delete_ratio": ("off", "0", "0.5", "0.9", "1"),
    "snapshot.max_flights": ("10000", "2"),
    "schedule.day_starts_at": ("00:00", "04:00"),
    "wire.unknown_field": ("reject", "ignore"),
    "wire.empty_scalar": ("set", "clear"),
    "wire.max_bytes": ("10485760", "1000"),
    "request.resp_guard": ("strict", "lenient"),
    "pipeline.max_attempts": ("8", "1"),
    "pipeline.unsupported_attempts": ("3", "1", "5"),
    "pipeline.backoff_base": ("1", "60"),
    "pipeline.backoff_cap": ("60", "1"),
    "identity.conflict": ("skip", "accept_newer", "dead"),
    "identity.include_day_boundary": ("no", "yes"),
    "identity.of_dead": ("skip", "takeover"),
    "kafka.tombstone": ("object", "null"),
}
KIND_RULES: dict[str, tuple[Any, ...]] = {
    "collection_mode": ("REPLACE", "APPLY"),
    "on_missing": ("CREATE", "IGNORE"),
    "notify": (True, False),
    "enabled": (True, False),
}
FAULTS = ("cut", "deep", "bytes", "cut-meta", "dtd", "empty", "not-xml")


@dataclass(frozen=True)
class Setting:
    name: str
    value: str


@dataclass(frozen=True)
class KindRule:
    styp: str
    column: str
    value: Any


Step = Setting | KindRule | Message


# ---------------------------------------------------------------- bytes


def xml_of(el: El) -> str:
    attrs = "".join(f" {name}={quoteattr(value)}" for name, value in el.attrs)
    inner = escape(el.text) + "".join(xml_of(child) for child in el.children)
    return f"<{el.tag}{attrs}>{inner}</{el.tag}>" if inner else f"<{el.tag}{attrs}/>"


def render(message: Message) -> tuple[bytes, str]:
    """Bytes of the message, and the value of message_raw.encoding that goes with them."""
    text = xml_of(message.root)
    end_of_meta = text.find("</META>") + len("</META>")
    match message.fault:
        case "cut":
            text = text[: max(end_of_meta, len(text) - 8)]
        case "cut-meta":
            text = text[: text.find("</META>") - 2]
        case "deep":
            text = text.removesuffix("</MSG>") + "<X>" * 21 + "</X>" * 21 + "</MSG>"
        case "dtd":
            text = "<!DOCTYPE MSG>" + text
        case "bytes":
            return text[:end_of_meta].encode() + b"\xff" + text[end_of_meta:].encode(), "bytes"
        case "empty":
            return b"", "bytes"
        case "not-xml":
            return b"ZCZC " + text.encode(), "bytes"
    match message.encoding:
        case "utf-8-bom":
            return b"\xef\xbb\xbf\n" + f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), "bytes"
        case "gbk":
            return f'<?xml version="1.0" encoding="GBK"?>\n{text}'.encode("gb18030"), "bytes"
        case "utf-16":
            return f'<?xml version="1.0" encoding="UTF-16"?>{text}'.encode("utf-16"), "bytes"
        case "text":
            return f'<?xml version="1.0" encoding="GBK"?>{text}'.encode(), "text"
    return text.encode(), "bytes"


# ---------------------------------------------------------------- fields of a record


@dataclass(frozen=True)
class Theme:
    """What a stream is about: which settings change, which kinds come, how much is odd (percent of the usual)."""

    settings: tuple[str, ...]
    kinds: tuple[tuple[int, str], ...]
    odd: int
    again: int = 8
    extra: int = 3
    first: tuple[Step, ...] = ()
    flids: tuple[str, ...] = FLIDS


@dataclass(frozen=True)
class Draw:
    """Draws choices for one stream of a theme."""

    source: Any
    theme: Theme

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.source(strategy)


def pick(draw: Draw, *options: Any) -> Any:
    return draw(st.sampled_from(options))


def chance(draw: Draw, percent: int) -> bool:
    """True in about that many of a hundred cases; shrinks to False."""
    return bool(draw(st.integers(0, 99)) >= 100 - percent)


def odd(draw: Draw, percent: int) -> bool:
    """The same for what a good sender would not do."""
    return bool(draw(st.integers(0, 999)) >= 1000 - percent * draw.theme.odd // 10)


def value(draw: Draw) -> str:
    return str(draw(st.sampled_from(VALUES if chance(draw, 40) else VALUES[:3])))


def scalar(draw: Draw, tag: str, text: str | None = None) -> list[El]:
    """A scalar as one child; now and then twice, or with parts of its own."""
    text = value(draw) if text is None else text
    if not odd(draw, 4):
        return [El(tag, text)]
    return list(
        pick(
            draw,
            (El(tag, f"\n {text}\t"),),
            (El(tag, text), El(tag, text)),
            (El(tag, text), El(tag, "other")),
            (El(tag, text, (("X", "1"),)),),
            (El(tag, text, (), (El("X", "1"),)),),
        )
    )


def fields(draw: Draw, tag: str, keys: tuple[str, ...]) -> El:
    """An object or item with some of its keys as attributes or children."""
    attrs: list[tuple[str, str]] = []
    children: list[El] = []
    text = ""
    for key in draw(st.lists(st.sampled_from(keys), max_size=3, unique=True)):
        if key == "TEXT" and pick(draw, True, False):
            text = value(draw)
        elif pick(draw, True, False):
            attrs.append((key, value(draw)))
        else:
            children.append(El(key, value(draw)))
    if odd(draw, 5):
        key = keys[0]
        extra = pick(draw, "unknown attr", "unknown child", "text", "both texts", "both", "child twice", "parts")
        if extra == "unknown attr":
            attrs.append(("QQ", "1"))
        elif extra == "unknown child":
            children.append(El("QQ", "1"))
        elif extra == "text":
            text = "late"
        elif extra == "both texts":
            attrs, text = [pair for pair in attrs if pair[0] != "TEXT"] + [("TEXT", "1")], pick(draw, "1", "2")
        elif extra == "both":
            attrs = [pair for pair in attrs if pair[0] != key] + [(key, "1")]
            children = [el for el in children if el.tag != key] + [El(key, pick(draw, "1", "2"))]
        elif extra == "child twice":
            children += [El(key, "1"), El(key, "1")]
        else:
            children.append(El(key, "1", (("X", "1"),)))
    return El(tag, text, tuple(attrs), tuple(children))


def collection(draw: Draw, tag: str) -> list[El]:
    _, seq, keys = COLLECTIONS[tag]
    shape = 19 if odd(draw, 8) else draw(st.integers(0, 18))
    if shape == 17:
        return [El(tag)]
    if shape == 18 and seq:
        return [El(tag, "", ((seq, zero),)) for zero in pick(draw, ("0",), ("00",), ("0", "00"), ("000",))]
    if shape == 19:
        bad: list[El] = pick(
            draw,
            [El(tag), El(tag)],
            [El(tag, "", ((seq or keys[0], n),)) for n in ("0", "1")],
            [El(tag, "", ((keys[0], "1"),)), El(tag)],
            [El(tag, "", ((keys[0], "1"),))] * 10,
        )
        return bad
    items = []
    for _ in range(draw(st.integers(1, 3))):
        item = fields(draw, tag, keys)
        if seq and not chance(draw, 15):
            number = str(pick(draw, "1", "2", "3"))
            as_child = chance(draw, 30)
            item = replace(
                item,
                attrs=item.attrs if as_child else ((seq, number), *item.attrs),
                children=(El(seq, number), *item.children) if as_child else item.children,
            )
        items.append(item)
    return items


def text_field(draw: Draw, tag: str) -> list[El]:
    shape = draw(st.integers(0, 9))
    plain = str(pick(draw, *LISTS)) if tag == "MAFL" else value(draw)
    if shape < 6:
        return [El(tag, plain)]
    if shape == 6:
        return [El(tag)]
    if shape == 7:
        return [El(tag, pick(draw, "", "t"), (("CODE", value(draw)), ("BB", "1")))]
    if shape == 8:
        return [El(tag, "", (), (El("FLNO", value(draw)), El("ALCD", "ZZ")))]
    return [El(tag, plain), El(tag, "second", pick(draw, (), (("CODE", "1"),)))]


def field_of(draw: Draw, tag: str) -> list[El]:
    if tag in COLLECTIONS:
        return collection(draw, tag)
    if tag in OBJECTS:
        return [El(tag)] if chance(draw, 20) else [fields(draw, tag, OBJECTS[tag]) for _ in range(1 + odd(draw, 2))]
    if tag in TEXTS:
        return text_field(draw, tag)
    if tag == "MAID":
        return scalar(draw, tag, pick(draw, "M1", "M2", "S1", "A", "", "Z"))
    if tag == "FLNO":
        return scalar(draw, tag, pick(draw, *FLNOS))
    return scalar(draw, tag)


TAG = st.sampled_from(
    (
        *SCALARS[:8],
        "ESTT",
        "REMC",
        "MAID",
        "FLNO",
        "MAID",
        *COLLECTIONS,
        *OBJECTS,
        *TEXTS,
        "GTDT",
        "DELY",
        "PSDT",
        "MAFL",
    )
)


def odd_field(draw: Draw) -> list[El]:
    return list(
        pick(
            draw,
            (El("FFID", "x-1"),),
            (El("BOTM", "1"), El("BOTM")),
            (El("QQQQ", "1"),),
            (El("estt", "1"),),
            (El("FDEL"),),
        )
    )


def record(draw: Draw, tag: str, flid: str, *, first: list[El] | None = None, most: int = 3) -> El:
    """A flight record: FLID, what must be there, and some other fields."""
    parts = list(first or [])
    for name in draw(st.lists(TAG, max_size=most, unique=True)):
        if not any(el.tag == name for el in parts):
            parts += field_of(draw, name)
    attrs: tuple[tuple[str, str], ...] = ()
    head = [El("FLID", flid)]
    if odd(draw, 8):
        match pick(
            draw,
            "not used",
            "attribute",
            "unknown",
            "flid attribute",
            "no flid",
            "long flid",
            "list attribute",
            "text",
            "both",
        ):
            case "not used":
                parts += odd_field(draw)
            case "attribute":
                parts = [el for el in parts if el.tag != "RENO"]
                attrs = (("RENO", value(draw)),)
            case "unknown":
                attrs = (("QQ", "1"),)
            case "flid attribute":
                head, attrs = [], (("FLID", flid),)
            case "no flid":
                head = pick(draw, [], [El("FLID")])
            case "long flid":
                head = [El("FLID", pick(draw, "F" * 20, "F" * 21, "航" * 20))]
            case "list attribute":
                attrs = ((pick(draw, "GTDT", "FDIV", "SRVT"), "1"),)
            case "text":
                return El(tag, "stray", attrs, (*head, *parts))
            case "both":
                parts = [el for el in parts if el.tag != "RENO"] + [El("RENO", "1")]
                attrs = (("RENO", pick(draw, "1", "2")),)
    return El(tag, "", attrs, (*head, *parts))


# ---------------------------------------------------------------- bodies


def flids(draw: Draw, least: int, most: int, *, unique: bool) -> list[str]:
    return list(
        draw(
            st.lists(
                st.sampled_from(draw.theme.flids),
                min_size=least,
                max_size=min(most, len(draw.theme.flids)),
                unique=unique,
            )
        )
    )


def plan(draw: Draw, *, single: bool = False) -> tuple[El, ...]:
    """A SCHD package; `single` for ADFT, which needs no day."""
    day = pick(draw, *DAYS)
    if not single and chance(draw, 6 if draw.theme is PLANS else 1):
        records = [El("FLTR", "", (), (El("FLID", f"P{i:02}"), El("SODT", f"{day}0710"))) for i in range(24)]
        if chance(draw, 50):
            records = records[: pick(draw, 1, 3, 12)]
    else:
        names = flids(draw, 1, 2 if single else 5, unique=not odd(draw, 3))
        names = [] if chance(draw, 3) else names
        records = []
        for flid in names:
            on = pick(draw, *DAYS) if odd(draw, 2) else day
            time = pick(draw, *TIMES) if odd(draw, 6) else "0710"
            sodt = [El("SODT", f"{on}{time}")]
            if odd(draw, 4):
                sodt = list(pick(draw, (), (El("STD", f"{on}0710"),), (El("SODT"), El("STD", f"{on}0710")),
                                 (El("SODT", "junk"), El("STD", f"{on}0710")),
                                 (El("SODT", f"31SEP26{time}"),)))  # fmt: skip
            if flid.startswith("S") and not chance(draw, 25):
                sodt += [El("MAID", pick(draw, "M1", "M2")), El("FLNO", pick(draw, *FLNOS))]
            if flid.startswith("M") and chance(draw, 60 if draw.theme is CODESHARES else 10):
                sodt += [El("MAFL", pick(draw, *LISTS))]
            records.append(
                record(draw, "FLGT" if chance(draw, 10) else "FLTR", flid, first=sodt, most=draw.theme.extra)
            )
    header = [El("RECS", str(len(records)))]
    if odd(draw, 6):
        header = list(pick(draw, (El("RECS", str(len(records) + 1)),), (), (El("RECS", "x"),), (El("RECS"),),
                           (El("RECS", f"0{len(records)}"),), (El("RECS", "1"), El("RECS", "1"))))  # fmt: skip
    if not single and chance(draw, 50):
        text = day if pick(draw, True, False) else ISO[day]
        if odd(draw, 6):
            text = pick(draw, "", "9SEP26", "31SEP26", "2026-02-30", "09sep26", "20260909")
        header.append(El("FDAY", text))
    if odd(draw, 2):
        header += pick(draw, [El("QQQQ", "1")], [El("FFID", "1")])
    return (El("SCHD", "stray" if odd(draw, 1) else "", (), (*header, *records)),)


def event(draw: Draw, styp: str) -> tuple[El, ...]:
    keys = sorted(GROUPS.get(styp, {styp})) if styp in (*ENABLED, *DISABLED) else []
    records = []
    for flid in flids(draw, 1, 3, unique=False)[: pick(draw, 1, 1, 3)]:
        first: list[El] = []
        if keys and not odd(draw, 4):
            for key in draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True)):
                first += field_of(draw, key)
        records.append(record(draw, "FLOP", flid, first=first, most=2 if chance(draw, 30) else 0))
    return tuple(records)


def deletion(draw: Draw) -> tuple[El, ...]:
    records = []
    for flid in flids(draw, 1, 3, unique=not chance(draw, 10))[: pick(draw, 1, 3)]:
        first = [] if chance(draw, 10) else [El("FDEL")]
        records.append(record(draw, "FLOP", flid, first=first, most=1 if chance(draw, 10) else 0))
    return tuple(records)


def body(draw: Draw, kind: str, styp: str) -> tuple[El, ...]:
    """A body for this TYPE and STYP, as a sender would write it."""
    if kind == "SCHD":
        return plan(draw, single=styp == "ADFT")
    if kind == "FDEL" or styp == "FDEL":
        return deletion(draw)
    if kind == "FLOP":
        return event(draw, styp)
    unread: tuple[El, ...] = pick(draw, (), (El("LOAD", "", (("X", "1"),), (El("FLID", "A"),)),))
    return unread


GENERAL_KINDS = (25, "DNLD"), (40, "FLOP"), (12, "ADFT"), (10, "FDEL"), (4, "RESP"), (4, "ignored"), (5, "unsupported")
PLANS = Theme(
    tuple(
        name
        for name in SETTINGS
        if name.startswith("snapshot") or name in ("request.resp_guard", "schedule.day_starts_at")
    ),
    ((55, "DNLD"), (12, "RESP"), (15, "FLOP"), (8, "ADFT"), (10, "FDEL")),
    odd=30,
    extra=1,
)
CODESHARES = Theme(
    ("snapshot.absent_field", "snapshot.reclaim", "snapshot.absent_flight", "wire.empty_scalar"),
    ((25, "DNLD"), (10, "FLOP"), (10, "MAFL"), (30, "ADFT"), (25, "FDEL")),
    odd=15,
    extra=1,
    flids=("M1", "S1", "S2", "M2", "S3", "A"),
)
IDENTITY = Theme(
    ("identity.conflict", "identity.include_day_boundary", "identity.of_dead", "pipeline.unsupported_attempts"),
    ((20, "DNLD"), (30, "GTDT"), (20, "ADFT"), (10, "FDEL"), (15, "unsupported"), (5, "ignored")),
    odd=50,
    again=55,
    extra=1,
)
FIELDS = Theme(
    ("wire.empty_scalar", "wire.unknown_field", "snapshot.absent_field", "kafka.tombstone"),
    ((15, "DNLD"), (30, "FLOP"), (15, "GTDT"), (15, "DELY"), (10, "PSDT"), (15, "ADFT")),
    odd=60,
)
APPLY = Theme(
    ("wire.empty_scalar", "snapshot.absent_field"),
    ((30, "GTDT"), (30, "DELY"), (20, "PSDT"), (10, "ROUT"), (10, "DNLD")),
    odd=15,
    first=tuple(KindRule(styp, "collection_mode", "APPLY") for styp in ("GTDT", "DELY", "PSDT")),
    flids=("A", "B"),
)
HANDOVER = Theme(
    ("snapshot.absent_flight", "snapshot.absent_field"),
    ((80, "DNLD"), (5, "FDEL"), (10, "ADFT"), (5, "FLOP")),
    odd=5,
    extra=1,
    first=(Setting("snapshot.reclaim", "protect"),),
    flids=("A", "S1", "M1"),
)
TAKEOVER = replace(
    IDENTITY, first=(Setting("identity.of_dead", "takeover"), Setting("identity.conflict", "accept_newer"))
)
WIRE = Theme(tuple(SETTINGS), GENERAL_KINDS, odd=300)
SMALL = replace(WIRE, odd=80, first=(Setting("wire.max_bytes", "1000"),))
GENERAL = Theme(tuple(SETTINGS), GENERAL_KINDS, odd=80)
THEMES = (GENERAL, PLANS, CODESHARES, IDENTITY, FIELDS, WIRE, APPLY, HANDOVER, TAKEOVER, SMALL)


def kind_of(draw: Draw) -> tuple[str, str]:
    n = draw(st.integers(0, 99))
    bounds = itertools.accumulate(weight for weight, _ in draw.theme.kinds)
    name = next(name for bound, (_, name) in zip(bounds, draw.theme.kinds, strict=True) if n < bound)
    choices: tuple[tuple[str, str], ...]
    match name:
        case "DNLD" | "ADFT" | "RESP":
            choices = (("SCHD", name),)
        case "FLOP":
            choices = tuple(("FLOP", styp) for styp in ENABLED if styp != "FDEL")
        case "FDEL":
            choices = (("FLOP", "FDEL"), ("FDEL", "NONE"), ("FDEL", "FDEL"))
        case "ignored":
            choices = (("LDM", "X"), ("rsta", "Y"), ("eRor", "NONE"), ("flop", "botm"), ("FLOP", "LACL"))
        case "unsupported":
            flop = ("FLOP", "TOBT"), ("FLOP", "ZZZZ"), ("FLOP", "gtdt"), ("FLOP", pick(draw, *DISABLED))
            choices = (*flop, ("SCHD", "OTHR"), ("XXXX", "YYYY"), ("flop", "ESTT"), ("Schd", "DNLD"))
        case _:
            choices = (("FLOP", name),)
    kind: tuple[str, str] = pick(draw, *choices)
    return kind


# ---------------------------------------------------------------- messages and streams


def meta(draw: Draw, kind: tuple[str, str]) -> El:
    dttm = pick(draw, *(DTTMS if chance(draw, 30) else DTTMS[:2]))
    parts = [El("SNDR", "AODB"), El("TYPE", kind[0]), El("STYP", kind[1])]
    if dttm is not None:
        parts.append(El("DTTM", dttm))
    if odd(draw, 4):
        what = pick(draw, "sndr", "no sndr", "no seqn", "bad seqn", "long seqn", "no type", "extra", "twice")
        if what in ("sndr", "no sndr"):
            parts[0] = El("SNDR", "塔台|B" if what == "sndr" else "")
        elif what.endswith("seqn"):
            parts.insert(1, El("SEQN", {"no seqn": " ", "bad seqn": "-1", "long seqn": "1" * 19}[what]))
        elif what == "no type":
            del parts[pick(draw, 1, 2)]
        elif what == "extra":
            parts.append(El("RCVR", "X"))
        else:
            parts.append(El("SNDR", "AODB"))
    return El("META", "", (), tuple(parts))


def message(draw: Draw) -> Message:
    kind = kind_of(draw)
    parts = (meta(draw, kind), *body(draw, *kind))
    root = El("MSG", "stray" if odd(draw, 1) else "", (), parts)
    if odd(draw, 1):
        root = replace(root, children=(*parts, parts[0]))
    encoding = pick(draw, "utf-8-bom", "gbk", "utf-16", "text") if chance(draw, 15) else "utf-8"
    fault = pick(draw, *FAULTS) if odd(draw, 5) else ""
    return Message(root, encoding, fault)


def head_of(sent: Message) -> dict[str, str]:
    return {el.tag: el.text for el in sent.root.children[0].children}


def with_head(sent: Message, **texts: str) -> Message:
    """The same message with other texts in META; a tag that is not there is added."""
    head, *rest = sent.root.children
    now = [replace(el, text=texts.pop(el.tag)) if el.tag in texts else el for el in head.children]
    head = replace(head, children=(*now, *(El(tag, text) for tag, text in texts.items())))
    return replace(sent, root=replace(sent.root, children=(head, *rest)))


@dataclass(frozen=True)
class Again:
    """An earlier message once more: as it was, repaired, padded, or at another time."""

    back: int
    how: str
    dttm: str

    def of(self, sent: list[Message]) -> Message:
        first = sent[-1 - self.back % len(sent)]
        match self.how:
            case "repaired":
                return replace(first, fault="")
            case "padded":
                return with_head(first, SEQN="00" + head_of(first).get("SEQN", ""))
            case "other time":
                return with_head(first, DTTM=self.dttm)
        return first


@dataclass(frozen=True)
class Reuse:
    """A new message under the number of an earlier one of its kind."""

    new: Message
    dttm: str

    def of(self, sent: list[Message]) -> Message:
        mine = head_of(self.new)
        for earlier in reversed(sent):
            head = head_of(earlier)
            if all(head.get(tag) == mine.get(tag) for tag in ("TYPE", "STYP")):
                return with_head(self.new, SEQN=head.get("SEQN", ""), DTTM=self.dttm or mine.get("DTTM", ""))
        return with_head(self.new, SEQN=mine.get("SEQN") or str(len(sent) + 1))


def change(draw: Draw) -> Step:
    if chance(draw, 30 if draw.theme is FIELDS else 10):
        column = pick(draw, *KIND_RULES)
        styp = pick(draw, "GTDT", "DELY", "PSDT", "CNCL", "ESTT", "FDEL", "MAFL", "TOBT")
        return KindRule(styp, column, pick(draw, *KIND_RULES[column][::-1]))
    name = pick(draw, *draw.theme.settings)
    return Setting(name, pick(draw, *SETTINGS[name][::-1]))


@st.composite
def drawn_steps(source: Any, theme: Theme) -> Any:
    draw = Draw(source, theme)
    n = draw(st.integers(0, 99))
    if n < 92 - theme.again:
        return message(draw)
    if n >= 92:
        return change(draw)
    dttm = pick(draw, "20260909235959", "20260910235959", "20260901000000")
    if pick(draw, True, False):
        return Again(draw(st.integers(0, 9)), pick(draw, "same", "repaired", "padded", "other time"), dttm)
    return Reuse(message(draw), pick(draw, dttm, ""))


@st.composite
def streams(source: Any) -> list[Step]:
    """A stream of about fifteen messages, some settings changed before it and within it."""
    theme = source(st.sampled_from(THEMES))
    draw = Draw(source, theme)
    steps: list[Step] = [*theme.first, *(change(draw) for _ in range(draw(st.integers(0, 4))))]
    sent: list[Message] = []
    parts = st.lists(drawn_steps(theme), max_size=9)
    for step in itertools.chain(*draw(st.tuples(parts, parts, parts, parts, parts))):
        if isinstance(step, (Setting, KindRule)):
            steps.append(step)
            continue
        if isinstance(step, Message):
            sent.append(with_head(step, SEQN=head_of(step).get("SEQN") or str(len(sent) + 1)))
        elif sent:
            sent.append(step.of(sent))
        else:
            continue
        steps.append(sent[-1])
    return steps
