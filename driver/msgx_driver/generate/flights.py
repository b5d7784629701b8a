"""A flight as the sending AODB knows it, and a writer per kind of event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final
from xml.sax.saxutils import escape, quoteattr

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
Parts = dict[str, str]
"""XML of a record by tag."""


def stamp(at: datetime) -> str:
    """DDMONYYHHMM, with an own month table: `%b` is the locale's."""
    return f"{sis_day(at.date())}{at.hour:02}{at.minute:02}"


def sis_day(day: date) -> str:
    """DDMONYY."""
    return f"{day.day:02}{MONTHS[day.month - 1]}{day.year % 100:02}"


@dataclass(eq=False)
class Flight:
    """A flight as the sending AODB knows it; `parts` are its tags as last sent, from which plans are written."""

    flid: str
    alcd: str
    flno: str
    move: str
    sched: datetime
    real: datetime
    port: str
    block: int
    region: str
    values: dict[str, str]
    main: Flight | None = None
    shared: list[Flight] = field(default_factory=list)
    mafl: list[str] | None = None
    partner: Flight | None = None
    quiet: bool = False
    stand: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    objects: dict[str, dict[str, str]] = field(default_factory=dict)
    gates: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    belts: list[str] = field(default_factory=list)
    chutes: list[str] = field(default_factory=list)
    delays: list[tuple[str, str, int]] = field(default_factory=list)
    bridge_ops: list[tuple[str, str, str]] = field(default_factory=list)
    chocks: list[tuple[str, str, str]] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    services: list[tuple[str, str, str]] = field(default_factory=list)
    vip: str = ""
    parts: Parts = field(default_factory=dict)

    @property
    def delayed(self) -> bool:
        """Whether it is at least 20 minutes late."""
        return self.real - self.sched >= timedelta(minutes=20)

    def planned(self, minute: int) -> str:
        """Local time so many minutes from the scheduled time."""
        return stamp(self.sched + timedelta(minutes=minute))

    def record(self, tag: str, parts: Mapping[str, str]) -> str:
        """A record of this flight."""
        return f"<{tag}><FLID>{self.flid}</FLID>{''.join(parts.values())}</{tag}>"


# -- one writer per kind of event: the tags it sends, from what the AODB knows ------------------------------------


def scalar(tag: str, value: str) -> str:
    """An element; present and empty when the value is empty."""
    return f"<{tag}>{escape(value)}</{tag}>" if value else f"<{tag}/>"


def _items(tag: str, seq: str | None, items: Iterable[Mapping[str, str]], *, nested: bool = False) -> Parts:
    """The whole set, as attributes or as children; an empty set is the protocol's own mark (FS-5.2-8, FS-5.2-9)."""
    xml = ""
    for number, item in enumerate(items, 1):
        keys = {k: v for k, v in item.items() if v and k != "TEXT"}
        attrs = "".join(f" {k}={quoteattr(v)}" for k, v in ({} if nested else keys).items())
        children = "".join(scalar(k, v) for k, v in (keys if nested else {}).items())
        inside = children + escape(item.get("TEXT", ""))
        head = f"{tag} {seq}={quoteattr(str(number))}{attrs}" if seq else tag + attrs
        xml += f"<{head}>{inside}</{tag}>" if inside else f"<{head}/>"
    return {tag: xml or (f'<{tag} {seq}="0"/>' if seq else f"<{tag}/>")}


def _gates(f: Flight) -> Parts:
    times = {"PGOT": f.planned(-45), "PGCT": f.planned(-15)} if f.move == "D" else {}
    times |= {k: f.facts[k] for k in ("GOTM", "GCTM") if k in f.facts}
    return _items("GTDT", "GTNO", [{"GATE": g, "GTYP": f.region} | times for g in f.gates], nested=len(f.gates) > 1)


def _counters(f: Flight) -> Parts:
    times = {"PCOT": f.planned(-120), "PCCT": f.planned(-40)}
    times |= {k: f.facts[k] for k in ("COTM", "CCTM") if k in f.facts}
    # With three or more the first serves two classes: same number, two entries, both stay (FS-6.1-18).
    rows = [(c, "Y") for c in f.counters]
    rows = [(f.counters[0], "F"), *rows] if len(rows) > 2 else rows
    return _items("CKDT", "CKNO", [{"CHKC": c, "CCLS": cls, "CTYP": f.region} | times for c, cls in rows])


def _belts(f: Flight) -> Parts:
    times = {k: f.facts[k] for k in ("FBAG", "LBAG") if k in f.facts}
    return _items("CLDT", "CLNO", [{"BELT": b, "BTYP": f.region} | times for b in f.belts])


def _chutes(f: Flight) -> Parts:
    times = {"PCBT": f.planned(-120), "PCET": f.planned(-30)}
    times |= {k: f.facts[k] for k in ("CBTM", "CETM") if k in f.facts}
    return _items("CHDT", "CHNO", [{"CHUT": c, "CCLS": "Y", "CTYP": f.region} | times for c in f.chutes])


def _stand_plan(f: Flight) -> Parts:
    start, end = (-70, 5) if f.move == "D" else (-5, 60)
    item = {"PSST": f.stand, "STST": f.planned(start), "STET": f.planned(end), "ABDG": bridge_of(f)}
    return _items("PSDT", "PSNO", [item] if f.stand else [])


def bridge_of(f: Flight) -> str:
    """Contact stands have a bridge, remote stands (3xx) none."""
    return f"{f.stand}A" if f.stand.startswith("1") else ""


def _delays(f: Flight) -> Parts:
    rows = [{"CODE": c, "STRT": f.planned(0), "DURA": f"{m // 60:02}{m % 60:02}", "TEXT": t} for c, t, m in f.delays]
    return _items("DELY", None, rows)


def _bridge_ops(f: Flight) -> Parts:
    rows = [{"ABDG": bridge, "ABOP": op, "AOTM": at} for bridge, op, at in f.bridge_ops]
    return _items("ABTM", "ASNO", rows, nested=True)


def _chocks(f: Flight) -> Parts:
    return _items("CHOT", "CSNO", [{"CHID": op, "CHTM": at, "CHST": stand} for op, at, stand in f.chocks])


def _route(f: Flight, tag: str = "ROUT") -> Parts:
    away = f.block if f.move == "D" else -f.block
    key = "SCAT" if f.move == "D" else "SCDT"
    stops = [*f.stops, f.port] if f.move == "D" else [f.port, *f.stops]
    points = [{"APCD": s, key: f.planned(away) if s == f.port else ""} for s in stops]
    return _items(tag, "RTNO", points, nested=tag == "ERUT")


def _object(f: Flight, tag: str) -> Parts:
    """The whole object; empty means that it is over (FS-5.2-7)."""
    keys = {k: v for k, v in f.objects.get(tag, {}).items() if k != "TEXT"}
    text = escape(f.objects.get(tag, {}).get("TEXT", ""))
    attrs = "".join(f" {k}={quoteattr(v)}" for k, v in keys.items())
    return {tag: f"<{tag}{attrs}>{text}</{tag}>" if keys or text else f"<{tag}/>"}


def _services(f: Flight) -> Parts:
    return {"SRVT": "".join(f'<SRVT CODE="{c}" STAT="{s}">{escape(t)}</SRVT>' for c, s, t in f.services) or "<SRVT/>"}


def _scalars(*tags: str) -> Callable[[Flight], Parts]:
    return lambda f: {tag: scalar(tag, f.values[tag]) for tag in tags if tag in f.values}


KINDS: Final[Mapping[str, Callable[[Flight], Parts]]] = {
    **{tag: _scalars(tag) for tag in ["ESTT", "ACTT", "RENO", "ACFT", "FLTY", "FLIN", "TRML", "STND", "REMC", "CNCL"]},
    "TAOP": _scalars("TAOP", "TAFL", "TAID"),
    "HNAG": _scalars("FHAG", "PHAG", "MHAG"),
    "GTDT": _gates,
    "CKDT": _counters,
    "CLDT": _belts,
    "CHDT": _chutes,
    "PSDT": _stand_plan,
    "DELY": _delays,
    "ABTM": _bridge_ops,
    "CHOT": _chocks,
    "ROUT": _route,
    "ERUT": lambda f: _route(f, "ERUT"),
    "FDIV": lambda f: _object(f, "FDIV"),
    "FRET": lambda f: _object(f, "FRET"),
    "FLAB": lambda f: _object(f, "FLAB"),
    "SRVT": _services,
    "VIPF": lambda f: {"VIPF": scalar("VIPF", f.vip)},
    "MAFL": lambda f: {"MAFL": scalar("MAFL", ",".join(f.mafl or []))},
}
"""The 28 kinds that change a flight; the 29th, FDEL, removes one."""
