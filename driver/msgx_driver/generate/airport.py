"""Who flies, and what the AODB learns about a flight during the day. Names, numbers and people are invented."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgx_driver.generate.flights import KINDS, Flight, Parts, bridge_of, scalar, stamp

AIRLINES: Final = ("CA", "MU", "CZ", "HU", "GJ", "3U", "MF", "ZH", "SC", "FM", "9C", "HO", "JD", "GS", "KN", "EU")
PARTNERS: Final = ("NX", "KA", "ZH", "SC", "FM", "CA", "MU", "CZ", "HU", "HO")
# Airport, block minutes, D domestic or I international.
ROUTES: Final = (
    ("PEK", 125, "D"), ("PKX", 130, "D"), ("CAN", 120, "D"), ("SZX", 125, "D"), ("CTU", 165, "D"), ("TFU", 165, "D"),
    ("CKG", 150, "D"), ("KMG", 180, "D"), ("XIY", 130, "D"), ("XMN", 85, "D"), ("CSX", 90, "D"), ("HAK", 160, "D"),
    ("SYX", 180, "D"), ("URC", 300, "D"), ("HRB", 170, "D"), ("SHE", 145, "D"), ("DLC", 120, "D"), ("TAO", 95, "D"),
    ("TSN", 110, "D"), ("CGO", 100, "D"), ("NNG", 150, "D"), ("KWE", 155, "D"), ("LHW", 170, "D"), ("HKG", 150, "I"),
    ("MFM", 140, "I"), ("TPE", 115, "I"), ("NRT", 170, "I"), ("ICN", 130, "I"), ("SIN", 300, "I"), ("BKK", 260, "I"),
)  # fmt: skip
AIRCRAFT: Final = ("738", "320", "321", "319", "73H", "32N", "333", "359", "E90")
AGENTS: Final = ("HGS", "MUGS", "CAGS")
ALTERNATES: Final = ("NGB", "PVG", "WNZ", "HFE", "NKG")
DELAYS: Final = (
    ("WX", "雷雨绕飞"), ("WX", "目的地大雾，能见度低"), ("ATC", "流量控制"), ("TECH", "机械故障，更换航材"),
    ("RA", "前序航班晚到"), ("PAX", "等待中转旅客<12人>"), ("AOC", ""), ("MIL", "军事活动 & 空域限制"),
)  # fmt: skip
REMARKS: Final = (
    "预计延误40分钟，请旅客在登机口等候", "桥位调整，注意引导", "机组已到位", "餐食加配30份", "轮椅旅客2名，需升降车",
    "团队旅客 >50人，提前开柜", "除冰待命", "要客保障，摆渡车加派", "crew change at HGH", "货邮超限，复核配载",
)  # fmt: skip
VIPS: Final = ("要客两名，走贵宾通道", "省级代表团，12人", "VIP 1, lounge 3", "外宾，需翻译")
DIVERSIONS: Final = ("杭州雷暴，备降加油", "跑道关闭", "thunderstorm overhead", "旅客突发疾病")

T = TypeVar("T")


class Dice:
    """Chance drawn from `random()` alone: of `random.Random` only its sequence is promised for every Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        """0 to n - 1."""
        return int(self._random() * n)

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in that percentage of cases."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """The items in another order."""
        deck = list(items)
        for i in range(len(deck) - 1, 0, -1):
            j = self.below(i + 1)
            deck[i], deck[j] = deck[j], deck[i]
        return deck


def head_of(f: Flight) -> Parts:
    """Tags that say which flight it is."""
    pairs = {"ALCD": f.alcd, "FLNO": f.flno, "MVIN": f.move, "SODT": stamp(f.sched)}
    if f.main is not None:
        pairs |= {"MAID": f.main.flid, "CSOP": f.main.alcd, "CSFT": f.main.flno}
    return {tag: scalar(tag, value) for tag, value in pairs.items()}


def relist(main: Flight, mafl: list[str]) -> None:
    """Set the list of shared flights that the main flight carries."""
    main.mafl = mafl
    main.parts |= KINDS["MAFL"](main)


class Airport:
    """Makes flights and lets things happen to them."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self._flids = 26090000
        self._numbers: set[str] = set()
        self._aircraft = 0

    def flights(self, start: datetime, size: int, *, after_midnight: int) -> list[Flight]:
        """Turnarounds, night stops and shared flights of a day; its last arrivals come after midnight."""
        found = [
            self.flight("A", start + timedelta(hours=24, minutes=5 * self.dice.between(1, 20)))
            for _ in range(after_midnight)
        ]
        unit = 0
        while len(found) < size:
            room = size - len(found)
            if unit % 6 == 0 or room == 1:
                found.append(self.flight("D", start + timedelta(hours=6, minutes=5 * self.dice.between(2, 30))))
            elif unit % 6 == 5:
                found.append(self.flight("A", start + timedelta(hours=21, minutes=5 * self.dice.between(0, 34))))
            else:
                # Steps of 37 % of the day spread a few turnarounds as evenly as many.
                slot = 90 + 165 * (unit * 37 % 100) // 100 + self.dice.between(0, 4)
                arrival = self.flight("A", start + timedelta(minutes=5 * slot))
                ground = timedelta(minutes=5 * self.dice.between(11, 22))
                departure = self.flight("D", arrival.sched + ground, arrival)
                arrival.values |= {"TAOP": departure.alcd, "TAFL": departure.flno, "TAID": departure.flid}
                arrival.partner = departure
                arrival.parts |= KINDS["TAOP"](arrival)
                found += [arrival, departure]
            main = found[-2 if unit % 8 == 3 else -1]
            found += [self.share(main) for _ in range(min(size - len(found), (0, 1, 0, 2)[unit % 4]))]
            unit += 1
        return found

    def flight(self, move: str, sched: datetime, arrival: Flight | None = None) -> Flight:
        """A new flight; `arrival` is the one whose aircraft it takes on."""
        dice = self.dice
        self._flids += 1
        alcd = arrival.alcd if arrival else dice.pick(AIRLINES)
        port, block, region = dice.pick(ROUTES)
        late = dice.between(-8, 15) if dice.chance(72) else dice.between(20, 110)
        real = sched + timedelta(minutes=late)
        if arrival is not None:
            real = max(real, arrival.real + timedelta(minutes=40))
        values = {
            "FLTY": "W/Z", "FLIN": region, "TRML": "T4" if region == "I" else "T3",
            "ACFT": arrival.values["ACFT"] if arrival else dice.pick(AIRCRAFT),
            "RENO": arrival.values["RENO"] if arrival else self._registration(),
        }  # fmt: skip
        f = Flight(
            str(self._flids), alcd, self._number(alcd), move, sched, real, port, block, region, values,
            stand=arrival.stand if arrival else self._stand(),
        )  # fmt: skip
        f.parts = head_of(f)
        kinds = ["ACFT", "RENO", "PSDT", "ROUT"] if dice.chance(90) else ["ACFT", "ROUT"]
        if move == "D":
            self.happen(f, "gate", sched)
            self.happen(f, "counters", sched)
            self.happen(f, "chutes", sched)
            kinds += ["GTDT", "CKDT", "CHDT"]
        else:
            self.happen(f, "belt", sched)
            kinds += ["CLDT"]
        for kind in ["FLTY", "FLIN", "TRML", *kinds]:
            f.parts |= KINDS[kind](f)
        return f

    def share(self, main: Flight, *, listed: bool = True) -> Flight:
        """A shared flight (共享航班); `listed`: the main's own list names it already."""
        self._flids += 1
        alcd = self.dice.pick([p for p in PARTNERS if p != main.alcd])
        f = Flight(
            str(self._flids), alcd, self._number(alcd), main.move, main.sched, main.real, main.port, main.block,
            main.region, {}, main=main,
        )  # fmt: skip
        f.parts = head_of(f)
        if listed:
            main.shared.append(f)
            relist(main, [*(main.mafl or []), f.flno])
        return f

    def _number(self, alcd: str) -> str:
        flno = ""
        while not flno or flno in self._numbers:
            flno = f"{alcd}{self.dice.between(1000, 9999)}"
        self._numbers.add(flno)
        return flno

    def _registration(self) -> str:
        """One that no other aircraft of the day has: a change of aircraft is always a change."""
        self._aircraft = (self._aircraft + 7919) % 0xE000
        return f"B{0x2000 + self._aircraft:04X}"

    def _stand(self) -> str:
        return str(self.dice.between(101, 160) if self.dice.chance(75) else self.dice.between(301, 340))

    def happen(self, f: Flight, what: str, at: datetime) -> None:
        """What the AODB learns about a flight; four capital letters are a time that has come."""
        dice = self.dice
        match what:
            case "stand":
                f.stand = self._stand()
            case "stand here":
                f.values["STND"] = f.stand
            case "no stand":
                f.stand = ""
            case "aircraft":
                f.values["RENO"] = self._registration()
                if f.partner is not None:
                    f.partner.values["RENO"] = f.values["RENO"]
                    f.partner.parts |= KINDS["RENO"](f.partner)
            case "aircraft type":
                f.values["ACFT"] = dice.pick(AIRCRAFT)
            case "charter":
                f.values["FLTY"] = dice.pick(["C/B", "H/G", "W/Z"])
            case "mixed":
                f.values["FLIN"] = "M"
            case "terminal":
                f.values["TRML"] = dice.pick(["T1", "T3", "T4"])
            case "agents":
                f.values |= {"FHAG": dice.pick(AGENTS), "PHAG": dice.pick(AGENTS)}
                f.values |= {"MHAG": dice.pick(AGENTS)} if dice.chance(50) else {}
            case "route":
                f.stops = [dice.pick(["WUH", "HFE", "KHN"])] if dice.chance(60) else []
            case "gate":
                count = 2 if f.move == "D" and dice.chance(30) else 1
                f.gates = [f"{dice.pick('ABC')}{dice.between(1, 30):02}" for _ in range(count)]
            case "no gate":
                f.gates = []
            case "counters":
                row, first = dice.pick("CDEF"), dice.between(1, 16)
                f.counters = [f"{row}{first + n:02}" for n in range(dice.between(1, 4))]
            case "no counters":
                f.counters = []
            case "chutes":
                f.chutes = [f"{dice.between(1, 24):02}"]
            case "belt":
                f.belts = [f"{dice.between(1, 14):02}"]
            case "no belt":
                f.belts = []
            case "services":
                codes = dice.shuffled(["FUEL", "CATR", "CLEA", "WATR", "TOWB"])[: dice.between(1, 3)]
                f.services = [(c, dice.pick(["OPEN", "DONE"]), dice.pick(["", "", "加急"])) for c in codes]
            case "vip":
                f.vip = dice.pick(VIPS)
            case "remark":
                f.values["REMC"] = dice.pick(REMARKS)
            case "estimate":
                f.values["ESTT"] = stamp(f.real + timedelta(minutes=dice.between(-6, 9)))
            case "delay":
                minutes = max(20, int((f.real - f.sched).total_seconds()) // 60)
                f.delays = [(*dice.pick(DELAYS), minutes) for _ in range(dice.between(1, 2))]
            case "no delay":
                f.delays = []
            case "bridge ON" | "bridge OFF":
                f.bridge_ops.append((bridge_of(f) or f"{f.stand}B", what.split()[1], stamp(at - timedelta(minutes=1))))
            case "chock ON" | "chock OFF":
                f.chocks.append((what.split()[1], stamp(at - timedelta(minutes=1)), f.stand))
            case "done":
                f.values["ACTT"] = stamp(at)
            case "cancel" | "restore":
                f.values["CNCL"] = stamp(at) if what == "cancel" else ""
                f.quiet = what == "cancel"
            case "divert" | "divert over":
                f.quiet = what == "divert"
                f.objects["FDIV"] = {"DDES": dice.pick(ALTERNATES), "TEXT": dice.pick(DIVERSIONS)} if f.quiet else {}
            case "return" | "return over":
                f.objects["FRET"] = {"REID": "T", "TEXT": "旅客突发疾病，返航"} if what == "return" else {}
            case "abort" | "abort over":
                f.quiet = what == "abort"
                f.objects["FLAB"] = {"ARES": "TECH", "TEXT": "take-off aborted, 舱门告警"} if f.quiet else {}
            case _ if what:
                f.facts[what] = stamp(at)
