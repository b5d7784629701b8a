"""The script of a day: which events come when, what happens to a few flights, and messages that are no good."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgx_driver.generate.flights import Flight

WHOM: Final[Mapping[str, Callable[[Flight], bool]]] = {
    "DA": lambda f: True,
    "D": lambda f: f.move == "D",
    "A": lambda f: f.move == "A",
    "late": lambda f: f.delayed,
    "main": lambda f: bool(f.shared),
    "turn": lambda f: f.move == "A" and f.partner is not None,
}


class Act(NamedTuple):
    """What happens to `percent` of the flights of `whom`: (kind, minute from the real time, what happens)."""

    whom: str
    percent: int
    steps: tuple[tuple[str, int, str], ...]


ROUTINE: Final = (
    Act("D", 100, (("PSDT", -185, "stand"), ("STND", -80, "stand here"))),
    Act("D", 45, (("RENO", -170, "aircraft"),)),
    Act("D", 8, (("ACFT", -168, "aircraft type"), ("RENO", -167, "aircraft"))),
    Act("DA", 3, (("FLTY", -175, "charter"),)),
    Act("DA", 3, (("FLIN", -174, "mixed"),)),
    Act("DA", 4, (("TRML", -172, "terminal"),)),
    Act("DA", 25, (("HNAG", -165, "agents"),)),
    Act("DA", 15, (("ROUT", -160, "route"),)),
    Act("DA", 8, (("ERUT", -158, "route"),)),
    Act("D", 90, (("CHDT", -150, "chutes"), ("CHDT", -125, "CBTM"), ("CHDT", -38, "CETM"))),
    Act("D", 100, (("CKDT", -140, "counters"), ("CKDT", -120, "COTM"), ("CKDT", -40, "CCTM"))),
    Act("D", 3, (("CKDT", -145, "no counters"),)),
    Act("D", 60, (("GTDT", -100, "gate"),)),
    Act("D", 50, (("CKDT", -70, "counters"),)),
    Act("D", 2, (("GTDT", -115, "no gate"),)),
    Act("D", 97, (("GTDT", -40, "GOTM"), ("GTDT", -12, "GCTM"))),
    Act("DA", 60, (("SRVT", -75, "services"),)),
    Act("DA", 12, (("VIPF", -90, "vip"),)),
    Act("DA", 12, (("REMC", -62, "remark"),)),
    Act("main", 30, (("MAFL", -130, ""),)),
    Act("DA", 97, (("ESTT", -55, "estimate"),)),
    Act("DA", 90, (("ESTT", -25, "estimate"),)),
    Act("late", 100, (("DELY", -70, "delay"), ("ESTT", -69, "estimate"))),
    Act("late", 60, (("REMC", -66, "remark"),)),
    Act("late", 30, (("DELY", -30, "delay"),)),
    Act("late", 15, (("DELY", -20, "no delay"),)),
    Act("D", 80, (("ABTM", -55, "bridge ON"), ("ABTM", -7, "bridge OFF"))),
    Act("D", 92, (("CHOT", -4, "chock OFF"),)),
    Act("A", 100, (("PSDT", -150, "stand"), ("STND", -60, "stand here"))),
    Act("A", 3, (("PSDT", -155, "no stand"),)),
    Act("A", 50, (("RENO", -140, "aircraft"),)),
    Act("A", 80, (("ESTT", -95, "estimate"), ("ESTT", -12, "estimate"))),
    Act("A", 60, (("GTDT", -58, "gate"),)),
    Act("turn", 25, (("TAOP", -30, ""),)),
    Act("A", 95, (("CLDT", -45, "belt"), ("CLDT", 16, "FBAG"), ("CLDT", 34, "LBAG"))),
    Act("A", 3, (("CLDT", -50, "no belt"),)),
    Act("A", 95, (("CHOT", 8, "chock ON"),)),
    Act("A", 80, (("ABTM", 10, "bridge ON"), ("ABTM", 48, "bridge OFF"))),
    Act("A", 50, (("GTDT", 9, "GOTM"),)),
    Act("DA", 100, (("ACTT", 0, "done"),)),
)
INCIDENTS: Final = (
    Act("DA", 2, (("CNCL", -110, "cancel"),)),
    Act("DA", 1, (("CNCL", -150, "cancel"), ("CNCL", -105, "restore"))),
    Act("A", 1, (("FDIV", -25, "divert"),)),
    Act("A", 1, (("FDIV", -35, "divert"), ("FDIV", 70, "divert over"), ("ACTT", 95, "done"))),
    Act("D", 1, (("FRET", 25, "return"), ("FRET", 140, "return over"), ("ACTT", 150, "done"))),
    Act("D", 1, (("FLAB", -1, "abort"), ("FLAB", 25, "abort over"), ("ACTT", 40, "done"))),
)
IGNORED: Final = (
    ("LDM", "LDM", "LDM-*"), ("LDM", "UCM", "LDM-*"), ("REGN", "ADD", "REGN-*"), ("RSTA", "NONE", "RSTA-*"),
    ("EROR", "NONE", "EROR-*"), ("FLOP", "BOTM", "FLOP-BOTM"), ("FLOP", "LACL", "FLOP-LACL"),
    ("FLOP", "FINT", "FLOP-FINT"), ("FLOP", "APPT", "FLOP-APPT"), ("ldm", "Ldm", "LDM-*"),
    ("Flop", "botm", "FLOP-BOTM"),
)  # fmt: skip
# STYP and the body of a record that no rule accepts (D37, D40, contract 1).
MALFORMED: Final = (
    ("GTDT", '<GTDT GTNO="1" GATE="A11"/><GTDT GTNO="0"/>'), ("CKDT", '<CKDT CKNO="1" CHKC="C01"/><CKDT/>'),
    ("RENO", "<STND>112</STND>"), ("ESTT", "<ESTT>09SEP261200</ESTT><ESTT>09SEP261210</ESTT>"),
    ("TRML", "<TRML>" + "T" * 201 + "</TRML>"), ("REMC", "<REMC>等待</REMC>机位"),
    ("PSDT", "".join(f'<PSDT PSNO="{n}" PSST="11{n}"/>' for n in range(10))), ("STND", "<STND>112</STND>\x01"),
)  # fmt: skip
# TYPE, STYP and the body of a record that is legal but not supported (D10, D14).
UNSUPPORTED: Final = (
    ("FLOP", "DEIC", "<DEIC>09SEP260720</DEIC>"), ("FLOP", "TOBT", "<TOBT>09SEP261135</TOBT>"),
    ("FLOP", "RUNW", "<RUNW>07</RUNW>"), ("FLOP", "RENO", "<RENO>B1730</RENO><SEAT>164</SEAT>"),
    ("FLOP", "GTDT", '<GTDT GTNO="1" GATE="A11" ZONE="N"/>'), ("SCHD", "UPDT", "<STND>112</STND>"),
)  # fmt: skip

# Declared encoding -> codec that writes the bytes; UTF-16 with a fixed byte order, never the machine's.
ENCODINGS: Final = (("GBK", "gb18030"), ("GB2312", "gb18030"), ("GB18030", "gb18030"), ("UTF-16", "utf-16-le"))
