"""The day itself: who flies, what happens when, and the messages that say so, in time order."""

from __future__ import annotations

import base64
import heapq
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgx_driver.generate.airport import REMARKS, Airport, Dice, head_of, relist
from msgx_driver.generate.book import Book
from msgx_driver.generate.flights import KINDS, Flight, Parts, scalar, sis_day, stamp
from msgx_driver.generate.script import ENCODINGS, IGNORED, INCIDENTS, MALFORMED, ROUTINE, UNSUPPORTED, WHOM, Act

MIN_FLIGHTS: Final = 40
"""With fewer flights in the morning plan some incident would find no flight to happen to."""
MAX_FLIGHTS: Final = 3000
"""With more flights a plan would pass the limit of bytes of one message."""

DATE: Final = date(2026, 9, 9)
MIDNIGHT: Final = datetime(2026, 9, 9)  # noqa: DTZ001 - local time of the airport, never an instant
MORNING_PLAN: Final = MIDNIGHT + timedelta(hours=3, minutes=5)
FIRST_REPLAN: Final = MIDNIGHT + timedelta(hours=10, minutes=30)
SECOND_REPLAN: Final = MIDNIGHT + timedelta(hours=15, minutes=30)
NEXT_PLAN: Final = MIDNIGHT + timedelta(hours=20, minutes=40)
LATE_PLAN: Final = MIDNIGHT + timedelta(hours=21, minutes=50)
END: Final = MIDNIGHT + timedelta(hours=27)


@dataclass(frozen=True)
class Message:
    """One message: `text` was decoded before (a JSON line "xml"), `payload` are bytes ("xml_base64")."""

    message_id: int
    text: str | None
    payload: bytes


@dataclass(frozen=True)
class Day:
    """Messages in queue order, ids from 1, and the manifest of what must become of them."""

    messages: list[Message]
    manifest: dict[str, Any]


def generate_day(flights: int, seed: int) -> Day:
    """Make a day whose morning plan lists `flights` flights; the same arguments give the same day everywhere.

    The manifest holds the counts that `replay --expect` compares (messages, succeeded, skipped, failed, dead, flights,
    deleted, events) and `details`: per message kind, status, reason and events; per flight at the end its day and
    version; per deleted flight its version. Raises ValueError when `flights` is not MIN_FLIGHTS..MAX_FLIGHTS.
    """
    if not MIN_FLIGHTS <= flights <= MAX_FLIGHTS:
        raise ValueError(f"flights must be {MIN_FLIGHTS} to {MAX_FLIGHTS}")
    return Maker(flights, seed).make()


def write_day(day: Day, folder: Path) -> None:
    """Write `day.jsonl` and, last, `manifest.json` into the folder, which is made if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "day.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for message in day.messages:
            line: dict[str, Any] = {"id": message.message_id}
            if message.text is not None:
                line["xml"] = message.text
            else:
                line["xml_base64"] = base64.b64encode(message.payload).decode("ascii")
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    (folder / "manifest.json").write_text(_pretty(day.manifest, 3) + "\n", encoding="utf-8", newline="\n")


def _pretty(value: Any, levels: int) -> str:
    """JSON with a line per message: objects are opened down to `levels` only."""
    if not levels or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {_pretty(v, levels - 1)}" for k, v in value.items()) + "\n}"


class Sent(NamedTuple):
    """A message that was written, and what becomes of it."""

    type: str
    styp: str
    seqn: int
    body: str
    message: Message
    status: str
    reason: str | None


class Maker:
    """Builds the flights, schedules what happens, and writes it in time order."""

    def __init__(self, flights: int, seed: int) -> None:
        self.size = flights
        self.seed = seed
        self.dice = Dice(seed)
        self.airport = Airport(self.dice)
        self.book = Book()
        self.sent: list[Sent] = []
        self.log: dict[str, dict[str, Any]] = {}
        self.events = 0
        self.seqn = 0
        self.roster: list[Flight] = []  # what the AODB lists for the day
        self.tomorrow: list[Flight] = []
        self._agenda: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self._order = itertools.count()
        self._deck: list[Flight] = []

    def make(self) -> Day:
        """Lay the agenda, then write what is due until it is empty."""
        self.roster = self.airport.flights(MIDNIGHT, self.size, after_midnight=max(3, self.size // 25))
        self.tomorrow = self.airport.flights(MIDNIGHT + timedelta(days=1), self.size // 2, after_midnight=0)
        # From nine on: what happens to these flights comes after the plan of the morning.
        self._deck = self.dice.shuffled(
            f for f in self.roster if f.main is None and timedelta(hours=9) <= f.sched - MIDNIGHT < timedelta(hours=24)
        )
        self._plan_plans()
        self._plan_incidents()
        self._plan_deletions()
        self._plan_adfts()
        self._plan_routine(self.roster, MORNING_PLAN)
        self._plan_noise()
        while self._agenda:
            at, _, act = heapq.heappop(self._agenda)
            act(at)
        return Day([s.message for s in self.sent], self._manifest())

    def _manifest(self) -> dict[str, Any]:
        statuses = Counter(s.status for s in self.sent)
        counts = {name: statuses[name.upper()] for name in ("succeeded", "skipped", "failed", "dead")}
        alive = {x: [self.book.owner[x], self.book.versions[x]] for x in sorted(self.book.owner)}
        return {
            "messages": len(self.sent),
            **counts,
            "flights": len(alive),
            "deleted": self.book.deleted,
            "events": self.events,
            "details": {
                "flights_asked": self.size,
                "seed": self.seed,
                "messages_by_id": self.log,
                "flights_by_id": alive,
                "deleted_by_id": {x: v for x, v in sorted(self.book.versions.items()) if x not in alive},
            },
        }

    # -- the agenda -----------------------------------------------------------------------------------------------

    def _at(self, at: datetime, act: Callable[[datetime], None]) -> None:
        if at < END:
            heapq.heappush(self._agenda, (at, next(self._order), act))

    def _sometime(self, first: int = 5, last: int = 23) -> datetime:
        return MIDNIGHT + timedelta(seconds=self.dice.between(first * 3600, last * 3600))

    def _plan_routine(self, flights: Iterable[Flight], since: datetime) -> None:
        mains = [f for f in flights if f.main is None]
        for act in ROUTINE:
            found = self.dice.shuffled(f for f in mains if WHOM[act.whom](f))
            for f in found[: _share_of(len(found), act.percent)]:
                self._plan_steps(f, act, since)

    def _plan_incidents(self) -> None:
        for act in INCIDENTS:
            for f in self._take(_share_of(self.size, act.percent), WHOM[act.whom]):
                self._plan_steps(f, act, MORNING_PLAN)

    def _plan_steps(self, f: Flight, act: Act, since: datetime) -> None:
        for kind, minute, what in act.steps:
            at = max(f.real + timedelta(minutes=minute), since + timedelta(minutes=1 + (minute + 200) // 40))
            at += timedelta(seconds=self.dice.below(60))
            self._at(at, partial(self._step, f, kind, what))

    def _take(self, count: int, fits: Callable[[Flight], bool]) -> list[Flight]:
        """Flights of the deck to which nothing out of the ordinary has happened yet."""
        # Flights with shared ones are few; they are left to what needs them.
        taken = sorted((f for f in self._deck if fits(f)), key=lambda f: bool(f.shared))[:count]
        if not taken:
            raise ValueError(f"{self.size} flights are too few for this day")
        self._deck = [f for f in self._deck if f not in taken]
        return taken

    def _live(self, now: datetime, fits: Callable[[Flight], bool] = lambda f: True) -> Flight:
        """A flight of the day that exists, near its time if there is one."""
        alive = [f for f in self.roster if f.flid in self.book.owner and f.main is None and not f.quiet and fits(f)]
        near = [f for f in alive if abs(f.real - now) < timedelta(hours=3)]
        return self.dice.pick(near or alive)

    # -- plans ----------------------------------------------------------------------------------------------------

    def _plan_plans(self) -> None:
        few = _share_of(self.size, 2)
        last = self._take(few, lambda f: f.sched > SECOND_REPLAN + timedelta(minutes=150))
        (back,) = self._take(1, lambda f: not f.shared and f.sched > SECOND_REPLAN + timedelta(minutes=90))
        # Deleted by mistake: the next plan brings it back.
        self._at(SECOND_REPLAN - timedelta(minutes=70), partial(self._delete, back, "FLOP", False))
        first = self._take(1, lambda f: bool(f.shared) and f.sched > FIRST_REPLAN + timedelta(minutes=150))
        first += self._take(few, lambda f: f.sched > FIRST_REPLAN + timedelta(minutes=150))
        yesterday = DATE - timedelta(days=1)
        self._at(MORNING_PLAN - timedelta(minutes=20), lambda now: self._send_plan(now, yesterday, []))
        self._at(MORNING_PLAN, lambda now: self._send_plan(now, DATE, self.roster))
        self._at(MORNING_PLAN + timedelta(minutes=7), partial(self._resend, kinds=["DNLD"]))
        self._at(FIRST_REPLAN, partial(self._replan, first))
        self._at(SECOND_REPLAN - timedelta(minutes=6), self._send_half_a_plan)
        self._at(SECOND_REPLAN, partial(self._replan, last))
        self._at(NEXT_PLAN, self._plan_next_day)
        self._at(LATE_PLAN, self._plan_late)

    def _send_plan(self, now: datetime, day: date, flights: Iterable[Flight], *, header: bool = True) -> None:
        """Departures before arrivals, shared flights behind their main (FS-3.2-11)."""
        ordered = sorted(flights, key=_plan_order)
        fday = f"<FDAY>{self.dice.pick([sis_day(day), day.isoformat()])}</FDAY>" if header else ""
        tag = self.dice.pick(["FLTR", "FLTR", "FLGT"])
        records = "".join(f.record(tag, f.parts) for f in ordered)
        events = self.book.plan(day.isoformat(), ordered)
        self._send(now, "SCHD", "DNLD", f"<SCHD><RECS>{len(ordered)}</RECS>{fday}{records}</SCHD>", events=events)

    def _replan(self, dropped: Sequence[Flight], now: datetime) -> None:
        for f in dropped:
            self._leave(f)
            # The event that was on its way: the flight is gone and stays gone.
            self._at(now + timedelta(minutes=self.dice.between(2, 9)), partial(self._step, f, "GTDT", "late gate"))
        added = [
            self.airport.flight("DA"[n % 2], now + timedelta(minutes=5 * self.dice.between(38, 90)))
            for n in range(_share_of(self.size, 2))
        ]
        self.roster += added
        self._send_plan(now, DATE, self.roster)
        self._plan_routine(added, now)

    def _send_half_a_plan(self, now: datetime) -> None:
        records = "".join(f.record("FLTR", f.parts) for f in sorted(self.roster, key=_plan_order)[:9])
        body = f"<SCHD><RECS>{len(self.roster)}</RECS><FDAY>{sis_day(DATE)}</FDAY>{records}</SCHD>"
        self._send(now, "SCHD", "DNLD", body, "DEAD", "MALFORMED")

    def _after_midnight(self) -> list[Flight]:
        return [f for f in self.roster if f.sched.date() > DATE]

    def _plan_next_day(self, now: datetime) -> None:
        """The day of the records counts; flights after midnight move to it (D9, FS-3.6)."""
        self._send_plan(now, DATE + timedelta(days=1), [*self.tomorrow, *self._after_midnight()], header=False)
        for f in self.dice.shuffled(f for f in self.tomorrow if f.main is None)[: _share_of(self.size, 15)]:
            self._at(now + timedelta(minutes=self.dice.between(5, 300)), partial(self._step, f, "RENO", "aircraft"))

    def _plan_late(self, now: datetime) -> None:
        """The old day once more: flights that moved on are not in it and stay, but one that is comes back (D3)."""
        moved = self._after_midnight()
        self._send_plan(now, DATE, [f for f in self.roster if f not in moved[:-1]])

    def _leave(self, f: Flight) -> None:
        self.roster = [x for x in self.roster if x is not f and x.main is not f]
        if f.main is not None:
            f.main.shared.remove(f)
            relist(f.main, self.book.mafl.get(f.main.flid, []))

    # -- single flights -------------------------------------------------------------------------------------------

    def _plan_deletions(self) -> None:
        few = _share_of(self.size, 1)
        for f in self._take(few, lambda f: bool(f.shared)):
            self._before(f, 200, partial(self._delete, f, "FLOP", True))
            self._before(f, 150, partial(self._delete, f, "FDEL", False))
        for f in self._take(few, lambda f: bool(f.shared)):
            self._before(f, 190, partial(self._delete, f.shared[0], "FDEL", True))
        for f in self._take(few, lambda f: not f.shared):
            self._before(f, 210, partial(self._delete, f, "FDEL", True))
            self._before(f, 195, partial(self._bring_back, f))
        for f in self._take(few, lambda f: not f.shared):
            self._before(f, 180, partial(self._move, f))
        for _ in range(few):
            nobody = self.airport.flight("D", SECOND_REPLAN)
            self._at(self._sometime(), partial(self._delete, nobody, "FLOP", False))
            self._at(self._sometime(), partial(self._flop, "CNCL", [(nobody, {"CNCL": "<CNCL/>"})]))
        for f in self.dice.shuffled(f for f in self.tomorrow if f.main is None)[: 1 + few]:
            self._at(self._sometime(16, 20), partial(self._flop, "RENO", [(f, KINDS["RENO"](f))]))

    def _before(self, f: Flight, minutes: int, act: Callable[[datetime], None]) -> None:
        self._at(f.real - timedelta(minutes=minutes), act)

    def _delete(self, f: Flight, type_: str, leaves: bool, now: datetime) -> None:
        events, reason = self.book.fdel(f)
        body = f.record(type_, {"FDEL": "<FDEL/>"} if type_ == "FLOP" else {})
        self._send(now, type_, "FDEL", body, reason=reason, events=events)
        if leaves:
            self._leave(f)

    def _bring_back(self, f: Flight, now: datetime) -> None:
        """The same flight again: its version goes on from the deletion (D18)."""
        self.roster.append(f)
        self._send_adft([f], now)

    def _move(self, f: Flight, now: datetime) -> None:
        """A key field changes: the AODB deletes the flight and sends it again under another id (FS-0-7)."""
        self._delete(f, "FLOP", True, now)
        again = self.airport.flight(f.move, f.sched + timedelta(minutes=45))
        again.alcd, again.flno = f.alcd, f.flno
        again.parts |= head_of(again)
        self.roster.append(again)
        self._send_adft([again], now)
        self._plan_routine([again], now)

    def _plan_adfts(self) -> None:
        for n in range(max(2, _share_of(self.size, 3))):
            self._at(self._sometime(6, 18), partial(self._extra_flight, n))
        for _ in range(_share_of(self.size, 2)):
            self._at(self._sometime(6, 22), self._extra_share)
            self._at(self._sometime(6, 22), self._changed)

    def _send_adft(
        self, flights: Sequence[Flight], now: datetime, *, parts: Parts | None = None, equal: bool = False
    ) -> None:
        records = "".join(f.record("FLTR", f.parts if parts is None else parts) for f in flights)
        events, reason = self.book.adft(flights, equal=equal)
        body = f"<SCHD><RECS>{len(flights)}</RECS>{records}</SCHD>"
        self._send(now, "SCHD", "ADFT", body, reason=reason, events=events)

    def _extra_flight(self, n: int, now: datetime) -> None:
        """加班: the next plan lists every second one, the others no plan. Every third has a shared flight."""
        f = self.airport.flight("DA"[n % 2], now + timedelta(minutes=5 * self.dice.between(40, 60)))
        flights = [f, self.airport.share(f)] if n % 3 == 0 else [f]
        self._send_adft(flights, now)
        if n % 2 == 0:
            self.roster += flights
        version = self.book.versions[f.flid]

        def again(later: datetime) -> None:
            if self.book.versions[f.flid] == version:
                self._send_adft(flights, later, equal=True)

        self._at(now + timedelta(seconds=20), again)
        self._plan_routine([f], now)

    def _extra_share(self, now: datetime) -> None:
        main = self._live(now)
        shared = self.airport.share(main, listed=False)
        self._send_adft([shared], now)
        main.shared.append(shared)
        relist(main, list(self.book.mafl[main.flid]))
        self.roster.append(shared)

    def _changed(self, now: datetime) -> None:
        f = self._live(now)
        self.airport.happen(f, "aircraft", now)
        f.parts |= KINDS["RENO"](f)
        self._send_adft([f], now, parts=KINDS["RENO"](f))

    # -- dynamic events -------------------------------------------------------------------------------------------

    def _step(self, f: Flight, kind: str, what: str, now: datetime) -> None:
        if f.quiet and not what.endswith((" over", "restore")):
            return
        # A few events of deleted flights come late, most do not come at all.
        if f.flid not in self.book.owner and what != "late gate" and not self.dice.chance(12):
            return
        self.airport.happen(f, what.removeprefix("late "), now)
        parts = KINDS[kind](f)
        records = [(f, parts)]
        if kind in ("ESTT", "ACTT"):
            records += [(s, parts) for s in f.shared if s.flid in self.book.owner and self.dice.chance(60)]
        for flight, sent in records:
            flight.parts |= sent
        self._flop(kind, records, now)

    def _flop(self, kind: str, records: Sequence[tuple[Flight, Parts]], now: datetime) -> None:
        events, reason = self.book.flop(kind, [f for f, _ in records])
        body = "".join(f.record("FLOP", parts) for f, parts in records)
        self._send(now, "FLOP", kind, body, reason=reason, events=events)

    def _kinds_not_seen(self, now: datetime) -> None:
        seen = {entry["kind"] for entry in self.log.values() if entry["events"]}
        for kind in [k for k in KINDS if f"FLOP/{k}" not in seen]:
            f = self._live(now, partial(_knows, kind))
            self._flop(kind, [(f, KINDS[kind](f))], now)

    def _swap_gates(self, now: datetime) -> None:
        """Two flights in one message, all or nothing."""
        one = self._live(now, lambda f: f.move == "D")
        two = self._live(now, lambda f: f.move == "D" and f is not one)
        one.gates, two.gates = two.gates, one.gates
        for f in (one, two):
            f.parts |= KINDS["GTDT"](f)
        self._flop("GTDT", [(f, KINDS["GTDT"](f)) for f in (one, two)], now)

    def _twice_in_one(self, now: datetime) -> None:
        """Two records of one flight: the second sees the first (D8)."""
        f = self._live(now)
        records = []
        for _ in range(2):
            self.airport.happen(f, "estimate", now)
            f.parts |= KINDS["ESTT"](f)
            records.append((f, KINDS["ESTT"](f)))
        self._flop("ESTT", records, now)

    # -- what goes wrong, comes twice or is not for us ------------------------------------------------------------

    def _plan_noise(self) -> None:
        dice, size = self.dice, self.size
        for f in dice.shuffled(f for f in self.roster if f.main is None and f.move == "D")[: _share_of(size, 15)]:
            for minute, styp in ((35, "BOTM"), (20, "LACL"), (14, "FINT")):
                self._before(f, minute, partial(self._ignored, ("FLOP", styp, f"FLOP-{styp}")))
        acts: list[tuple[int, Sequence[Callable[[datetime], None]]]] = [
            (size // 12, [partial(self._ignored, row) for row in IGNORED]),
            (size // 30, [partial(self._malformed, row) for row in MALFORMED]),
            (size // 60, [partial(self._unsupported, row) for row in UNSUPPORTED]),
            (size // 60, [self._cut_off, self._with_dtd, self._without_number, self._not_its_encoding]),
            (size // 30, [self._swap_gates, self._twice_in_one, self._number_used_twice]),
            (size // 6, [self._resend, partial(self._resend, exact=False)]),
        ]
        for extra, choices in acts:
            for act in [*choices, *(dice.pick(choices) for _ in range(extra))]:
                self._at(self._sometime(), act)
        self._at(self._sometime(9, 20), self._unasked)
        # Chance may have left these out of a small day.
        self._at(END - timedelta(minutes=3), self._number_used_twice)
        self._at(END - timedelta(minutes=2), partial(self._resend, kinds=["DEIC", "TOBT", "RUNW"]))
        self._at(END - timedelta(minutes=1), self._kinds_not_seen)

    def _ignored(self, row: tuple[str, str, str], now: datetime) -> None:
        """An ignore rule wins even when the body is no XML at all (D36)."""
        f = self._live(now)
        type_, styp, rule = row
        inside = f"<{styp}>{stamp(now)}</{styp}>" if type_.upper() == "FLOP" else "<LOAD>旅客 128, 行李 1450</LOAD>"
        body = f.record(type_, {styp: inside})
        self._send(now, type_, styp, body + ("<" if self.dice.chance(5) else ""), "SKIPPED", f"ignored:{rule}")

    def _malformed(self, row: tuple[str, str], now: datetime) -> None:
        styp, inside = row
        self._send(now, "FLOP", styp, self._live(now).record("FLOP", {styp: inside}), "DEAD", "MALFORMED")

    def _unsupported(self, row: tuple[str, str, str], now: datetime) -> None:
        type_, styp, inside = row
        body = self._live(now).record("FLTR" if type_ == "SCHD" else type_, {styp: inside})
        body = f"<SCHD><RECS>1</RECS>{body}</SCHD>" if type_ == "SCHD" else body
        self._send(now, type_, styp, body, "DEAD", "UNSUPPORTED")

    def _estimate(self, now: datetime) -> tuple[Flight, Parts]:
        f = self._live(now)
        self.airport.happen(f, "estimate", now)
        return f, KINDS["ESTT"](f)

    def _cut_off(self, now: datetime) -> None:
        """Refused without an identity, so that the whole message may follow under the same number (D31)."""
        f, parts = self._estimate(now)
        body = f.record("FLOP", parts)
        self._send(now, "FLOP", "ESTT", body, "DEAD", "MALFORMED", change=lambda text: text[:-9])
        number = self.seqn

        def whole(later: datetime) -> None:
            events, reason = self.book.flop("ESTT", [f])
            f.parts |= parts
            self._send(later, "FLOP", "ESTT", body, reason=reason, events=events, seqn=number)

        self._at(now + timedelta(seconds=30), whole)

    def _with_dtd(self, now: datetime) -> None:
        f, parts = self._estimate(now)
        dtd = '<!DOCTYPE MSG [<!ENTITY a "b">]><MSG>'
        body = f.record("FLOP", parts)
        self._send(now, "FLOP", "ESTT", body, "DEAD", "MALFORMED", change=lambda t: t.replace("<MSG>", dtd, 1))

    def _without_number(self, now: datetime) -> None:
        f, parts = self._estimate(now)
        body = f.record("FLOP", parts)
        self._send(now, "FLOP", "ESTT", body, "DEAD", "MALFORMED", change=lambda t: t.replace("SEQN", "SQNO"))

    def _not_its_encoding(self, now: datetime) -> None:
        body = self._live(now).record("FLOP", {"REMC": scalar("REMC", self.dice.pick(REMARKS[:8]))})
        self._send(now, "FLOP", "REMC", body, "DEAD", "MALFORMED", declared=("UTF-8", "gb18030"))

    def _unasked(self, now: datetime) -> None:
        """An answer to no request (D4)."""
        body = f"<SCHD><RECS>1</RECS><FDAY>{sis_day(DATE)}</FDAY>{self._live(now).record('FLTR', {})}</SCHD>"
        self._send(now, "SCHD", "RESP", body, "SKIPPED", "resp-unmatched")

    def _number_used_twice(self, now: datetime) -> None:
        """Another content under a number that is taken (D15)."""
        taken = [s for s in self.sent if s.styp == "ESTT" and s.status == "SUCCEEDED"]
        if not taken:
            return
        old = self.dice.pick(taken)
        f = self._live(now, lambda f: f.flid not in old.body)
        body = f.record("FLOP", {"ESTT": scalar("ESTT", stamp(now))})
        self._send(now, "FLOP", "ESTT", body, "SKIPPED", "identity-reused", seqn=old.seqn)

    def _resend(self, now: datetime, *, kinds: Iterable[str] = (), exact: bool = True) -> None:
        """A message once more, byte by byte, or the same content with a new DTTM."""
        recent = self.sent if kinds else [s for s in self.sent[-400:] if s.type == "FLOP"]
        known = [s for s in recent if s.status != "SKIPPED" and (not kinds or s.styp in kinds)]
        if not known:
            return
        old = self.dice.pick(known)
        if old.status == "DEAD" and old.reason == "MALFORMED":
            # Refused without an identity: the copy is a new malformed message.
            self._put(old.message.text, old.message.payload, old, ("DEAD", "MALFORMED"))
        else:
            outcome = ("SKIPPED", "duplicate" if old.status == "SUCCEEDED" else "duplicate-of-dead")
            if exact:
                self._put(old.message.text, old.message.payload, old, outcome)
            else:
                self._send(now, old.type, old.styp, old.body, *outcome, seqn=old.seqn)

    # -- the wire -------------------------------------------------------------------------------------------------

    def _send(
        self,
        now: datetime,
        type_: str,
        styp: str,
        body: str,
        status: str = "SUCCEEDED",
        reason: str | None = None,
        *,
        events: int = 0,
        seqn: int | None = None,
        change: Callable[[str], str] = lambda text: text,
        declared: tuple[str, str] | None = None,
    ) -> None:
        """Write one message: most as text, some with Chinese in them as bytes of their declared encoding."""
        dice = self.dice
        if seqn is None:
            seqn = self.seqn = self.seqn + 1
        number = f"{seqn:06}" if dice.chance(20) else str(seqn)
        meta = f"<SNDR>AODB</SNDR><SEQN>{number}</SEQN><DTTM>{now:%Y%m%d%H%M%S}</DTTM>"
        meta += f"<TYPE>{type_}</TYPE><STYP>{styp}</STYP>"
        xml = change(f"<MSG><META>{meta}</META>{body}</MSG>")
        if declared is None and not body.isascii() and dice.chance(35):
            declared = dice.pick(ENCODINGS)
        elif declared is None and dice.chance(2):
            declared = ("UTF-8", "utf-8-sig")
        text = None
        payload = b""
        if declared is None:
            # Of text the declaration says nothing: it was decoded before.
            text = f'<?xml version="1.0" encoding="{"GBK" if dice.chance(5) else "UTF-8"}"?>{xml}'
        else:
            mark = "\ufeff" if declared[0] == "UTF-16" else ""
            payload = f'{mark}<?xml version="1.0" encoding="{declared[0]}"?>{xml}'.encode(declared[1])
        self._put(
            text, payload, Sent(type_, styp, seqn, body, Message(0, None, b""), "", None), (status, reason), events
        )

    def _put(
        self, text: str | None, payload: bytes, like: Sent, outcome: tuple[str, str | None], events: int = 0
    ) -> None:
        status, reason = outcome
        message = Message(len(self.sent) + 1, text, payload)
        self.sent.append(like._replace(message=message, status=status, reason=reason))
        self.log[str(message.message_id)] = {
            "kind": f"{like.type}/{like.styp}", "status": status, "reason": reason, "events": events,
        }  # fmt: skip
        self.events += events


def _plan_order(f: Flight) -> tuple[bool, datetime, str, bool, str]:
    main = f.main or f
    return main.move != "D", main.sched, main.flid, f.main is not None, f.flid


def _knows(kind: str, f: Flight) -> bool:
    return bool(KINDS[kind](f))


def _share_of(count: int, percent: int) -> int:
    """That part of a number, but at least one."""
    return max(1, (count * percent + 50) // 100)
