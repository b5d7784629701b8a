"""What must become of the messages: the rules of docs/decisions.md, booked by hand while the day is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgx_driver.generate.flights import Flight


class Book:
    """Which flights exist, whose they are, their versions, lists and shared flights: the rules, booked by hand."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}  # of deleted flights too: a deletion takes a version (D18)
        self.owner: dict[str, str | None] = {}  # flights that exist -> day of the plan that owns them
        self.main: dict[str, str] = {}
        self.flno: dict[str, str] = {}
        self.mafl: dict[str, list[str]] = {}
        self.lists: dict[str, list[str]] = {}
        self.deleted = 0

    def _write(self, f: Flight, *, whole: bool) -> int:
        self.versions[f.flid] = self.versions.get(f.flid, 0) + 1
        self.owner.setdefault(f.flid, None)
        if whole:
            self.flno[f.flid] = f.flno
            if f.main is not None:
                self.main[f.flid] = f.main.flid
            if f.mafl is not None:
                self.mafl[f.flid] = list(f.mafl)
        return 1

    def _delete(self, flids: Iterable[str]) -> int:
        gone = list(flids)
        for flid in gone:
            self.versions[flid] += 1
            del self.owner[flid]
            for kept in (self.main, self.flno, self.mafl):
                kept.pop(flid, None)
        self.deleted += len(gone)
        return len(gone)

    def _shared_of(self, roots: set[str], but: Iterable[str] = ()) -> set[str]:
        return {flid for flid, main in self.main.items() if main in roots} - roots - set(but)

    def plan(self, day: str, flights: Sequence[Flight]) -> int:
        """A STATE each; old list without new list goes where it still belongs to the day (FS-3.3-19, D23)."""
        listed = [f.flid for f in flights]
        goes = {x for x in self.lists.get(day, ()) if self.owner.get(x) == day} - set(listed)
        goes |= self._shared_of(goes, listed)
        events = sum(self._write(f, whole=True) for f in flights) + self._delete(sorted(goes))
        self.owner.update(dict.fromkeys(listed, day))
        self.lists[day] = listed
        return events

    def flop(self, kind: str, flights: Iterable[Flight]) -> tuple[int, str | None]:
        """A NOTICE and a STATE each; deleted flights stay away, CNCL creates none (D13)."""
        events, reason = 0, None
        for f in flights:
            if f.flid not in self.owner and f.flid in self.versions:
                reason = reason or "deleted"
            elif f.flid not in self.owner and kind == "CNCL":
                reason = reason or "missing"
            else:
                events += 2 * self._write(f, whole=False)
                if kind == "MAFL":
                    self.mafl[f.flid] = list(f.mafl or [])
        return events, reason

    def adft(self, flights: Sequence[Flight], *, equal: bool) -> tuple[int, str | None]:
        """A NOTICE and a STATE each, and of each main whose list grew; equal content changes nothing (D23, D24)."""
        if equal:
            return 0, "equal"
        new = [f for f in flights if f.flid not in self.owner]
        events = sum(2 * self._write(f, whole=f in new) for f in flights)
        return events + self._edit_lists({f.main.flid for f in new if f.main}, add=new, remove=()), None

    def fdel(self, f: Flight) -> tuple[int, str | None]:
        """A NOTICE and a TOMBSTONE each, shared flights too; the list of a main that stays shrinks (D23)."""
        if f.flid not in self.owner:
            return 0, "deleted" if f.flid in self.versions else "missing"
        main, removed = self.main.get(f.flid), [f.flno]
        events = 2 * self._delete([f.flid, *sorted(self._shared_of({f.flid}))])
        return events + (self._edit_lists({main}, add=(), remove=removed) if main in self.owner else 0), None

    def _edit_lists(self, mains: Iterable[str | None], add: Sequence[Flight], remove: Sequence[str]) -> int:
        events = 0
        for flid in mains:
            if flid is None or flid not in self.owner:
                continue
            tokens = [t for t in self.mafl.get(flid, []) if t not in remove]
            tokens += [f.flno for f in add if f.main is not None and f.main.flid == flid and f.flno not in tokens]
            if tokens != self.mafl.get(flid, []):
                self.mafl[flid] = tokens
                self.versions[flid] += 1
                events += 2
        return events
