"""The messages of the benchmark: plans of any size with 21 detail rows per flight, and a mix of small events.

Everything is made of counters and a seeded generator, so two runs send the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

__all__ = ["DETAIL_ROWS", "MIX", "PLACEHOLDER", "event", "events", "flid", "plan"]

DAY: Final = "09SEP26"
DETAIL_ROWS: Final = 21
MIX: Final = ("GTDT", "ESTT", "DELY")
PLACEHOLDER: Final = b"<MSG/>"
"""Stands in the queue for a plan that is given to the engine as a command."""


def flid(number: int) -> str:
    """FLID of a flight, from 0."""
    return f"2609{number:05d}"


def plan(flights: int, seqn: int, version: int) -> bytes:
    """A SCHD/DNLD with that many flights; another `version` changes a value in each of the 21 rows of each flight."""
    body = "".join(_record(number, version) for number in range(flights))
    return f"{_meta('SCHD', 'DNLD', seqn)}<SCHD><RECS>{flights}</RECS><FDAY>{DAY}</FDAY>{body}</SCHD></MSG>".encode()


def events(count: int, flights: int, first_seqn: int, seed: int) -> Iterator[bytes]:
    """Events of one flight each: GTDT, ESTT and DELY in turn, flights at random."""
    choose = random.Random(seed)
    for n in range(count):
        yield event(MIX[n % len(MIX)], choose.randrange(flights), first_seqn + n, choose.randrange(1440))


def event(kind: str, number: int, seqn: int, minute: int) -> bytes:
    """One FLOP of a kind of MIX about flight `number`; `minute` of the day is the changed value."""
    at = _at(minute)
    body = {
        "ESTT": f"<ESTT>{at}</ESTT>",
        "GTDT": f'<GTDT GTNO="1" GATE="A{minute % 40}" GTYP="D" PGOT="{at}" PGCT="{at}"/>'
        f'<GTDT GTNO="2" GATE="B{minute % 30}" GTYP="D" PGOT="{at}" PGCT="{at}"/>',
        "DELY": f'<DELY CODE="WX" STRT="{at}" DURA="0030">weather</DELY><DELY CODE="ATC" STRT="{at}" DURA="0010"/>',
    }[kind]
    return f"{_meta('FLOP', kind, seqn)}<FLOP><FLID>{flid(number)}</FLID>{body}</FLOP></MSG>".encode()


def _meta(message_type: str, subtype: str, seqn: int) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?><MSG><META><SNDR>AODB</SNDR>'
        f"<SEQN>{seqn}</SEQN><DTTM>20260909040000</DTTM><TYPE>{message_type}</TYPE><STYP>{subtype}</STYP></META>"
    )


def _at(minute: int) -> str:
    return f"{DAY}{minute // 60 % 24:02d}{minute % 60:02d}"


def _record(number: int, version: int) -> str:
    at = _at(number + 7 * version)
    pick = number + version
    rows = [f'<GTDT GTNO="{i}" GATE="A{(pick + i) % 40}" GTYP="D" PGOT="{at}" PGCT="{at}"/>' for i in (1, 2)]
    rows += [f'<CKDT CKNO="{i}" CHKC="C{(pick + i) % 60:02d}" CCLS="Y" PCOT="{at}" PCCT="{at}"/>' for i in (1, 2, 3, 4)]
    rows += [f'<CLDT CLNO="{i}" BELT="{(pick + i) % 12:02d}" BCLS="D" PCOT="{at}" PCCT="{at}"/>' for i in (1, 2)]
    rows += [
        f'<PSDT PSNO="{i}" PSST="{100 + (pick + i) % 90}" STST="{at}" STET="{at}" ABDG="{number % 90}A"/>'
        for i in (1, 2)
    ]
    rows += [f'<CHDT CHNO="{i}" CHUT="{(pick + i) % 20:02d}" CCLS="Y" PCBT="{at}" PCET="{at}"/>' for i in (1, 2)]
    rows += [f'<DELY CODE="{code}" STRT="{at}" DURA="0030">late aircraft</DELY>' for code in ("RA", "WX")]
    rows += [f'<ABTM ASNO="{i}" ABDG="{number % 90}A" ABOP="{i}" AOTM="{at}"/>' for i in (1, 2)]
    rows += [f'<CHOT CSNO="{i}" CHID="{number % 90}" CHTM="{at}" CHST="{i}"/>' for i in (1, 2)]
    rows += [f'<ROUT RTNO="{i}" APCD="{code}" SCAT="{at}" SCDT="{at}"/>' for i, code in ((1, "KMG"), (2, "CTU"))]
    rows += [f'<ERUT RTNO="1" APCD="KMG" SCAT="{at}"/>']
    return (
        f"<FLTR><FLID>{flid(number)}</FLID><ALCD>CA</ALCD><FLNO>CA{number:04d}</FLNO><MVIN>D</MVIN>"
        f"<SODT>{_at(number)}</SODT><FLTY>W/Z</FLTY><FLIN>D</FLIN><ACFT>738</ACFT><RENO>B{number:05d}</RENO>"
        f"<TRML>T3</TRML><ESTT>{at}</ESTT><STND>{100 + pick % 90}</STND>{''.join(rows)}</FLTR>"
    )
