from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest

from msgx_driver.kafka import Delivery
from msgx_driver.loops.relay import TARGETS, Relay
from msgx_driver.store import Event, Store

MSG, SCHD = TARGETS


class Lost(psycopg.Error):
    sqlstate = "MX503"


class Deadlock(psycopg.Error):
    sqlstate = "40P01"


class FakeClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 9, 9, tzinfo=UTC)

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def monotonic(self) -> float:
        return self.time


def event(event_id: int, target: str = MSG) -> Event:
    return Event(target, event_id, "NOTICE", f"F{event_id}", 1, 1, "2026-09-09T00:00:00.000000Z", 1, {})


class FakeStore:
    """Gives the events it holds, and notes every call."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.calls: list[tuple[Any, ...]] = []
        self.due: dict[str, list[Event] | None] = {MSG: [event(1), event(2)], SCHD: []}
        self.raises: dict[str, Exception] = {}
        self.claim_seconds = 0.0

    def _note(self, name: str, *arguments: Any) -> None:
        if name in self.raises:
            raise self.raises[name]
        self.calls.append((name, *arguments))

    def claim_events(self, target: str, token: UUID, *, limit: int, lease_seconds: int) -> list[Event] | None:
        self._note("claim", target, limit, lease_seconds)
        self.clock.time += self.claim_seconds
        return self.due[target]

    def confirm_events(self, target: str, token: UUID, events: Sequence[Event]) -> int:
        self._note("confirm", target, [e.event_id for e in events])
        return len(events)

    def fail_events(self, target: str, token: UUID, failed: Sequence[tuple[Event, str]]) -> dict[str, int]:
        self._note("fail", target, [(e.event_id, error) for e, error in failed])
        return {"failed": len(failed), "dead": 0}

    def block_target(self, target: str, token: UUID, error: str) -> int:
        self._note("block", target, error)
        return 1

    def release_target(self, target: str, token: UUID) -> bool:
        self._note("release", target)
        return True

    def done(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


class FakeSender:
    def __init__(self) -> None:
        self.sent: list[tuple[list[int], bool, float]] = []
        self.result: Delivery | None = None

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        self.sent.append(([e.event_id for e in events], ordered, deadline))
        return self.result or Delivery(delivered=list(events))


class Parts:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeStore(self.clock)
        self.sender = FakeSender()
        self.relay = Relay(
            cast(Store, self.store), self.sender, self.clock, lease_seconds=60, message_timeout=30.0, batch=7
        )


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_what_the_broker_reported_is_confirmed(parts: Parts) -> None:
    parts.store.due[SCHD] = [event(3, SCHD)]
    assert parts.relay.step() == 3
    assert parts.store.done("claim") == [(MSG, 7, 60), (SCHD, 7, 60)]
    assert parts.store.done("confirm") == [(MSG, [1, 2]), (SCHD, [3])]
    assert not parts.store.done("fail") + parts.store.done("block")


def test_only_notices_are_strictly_ordered_and_the_deadline_lies_within_the_lease(parts: Parts) -> None:
    parts.store.due[SCHD] = [event(3, SCHD)]
    parts.relay.step()
    assert parts.sender.sent == [([1, 2], True, 1029.0), ([3], False, 1029.0)]


def test_nothing_due(parts: Parts) -> None:
    parts.store.due[MSG] = []
    assert parts.relay.step() == 0
    assert parts.sender.sent == []


def test_a_claim_that_took_too_long_is_dropped(parts: Parts) -> None:
    parts.store.claim_seconds = 29.0
    assert parts.relay.step() == 0
    assert parts.sender.sent == []
    assert [name for name, *_ in parts.store.calls] == ["claim", "claim"]


def test_a_claim_that_is_only_locally_committed_sends_nothing(parts: Parts) -> None:
    parts.store.due[MSG] = None
    assert parts.relay.step() == 0
    assert parts.sender.sent == []


def test_records_that_were_refused_are_counted_and_the_others_confirmed(parts: Parts) -> None:
    parts.sender.result = Delivery(delivered=[event(1)], failed=[(event(2), "MSG_SIZE_TOO_LARGE")])
    assert parts.relay.step() == 1
    assert parts.store.done("confirm") == [(MSG, [1])]
    assert parts.store.done("fail") == [(MSG, [(2, "MSG_SIZE_TOO_LARGE")])]
    assert parts.store.done("block") == []


def test_records_without_a_report_are_not_touched(parts: Parts) -> None:
    parts.sender.result = Delivery(delivered=[event(1)])
    assert parts.relay.step() == 1
    assert [name for name, target, *_ in parts.store.calls if target == MSG] == ["claim", "confirm"]


def test_an_error_of_the_target_blocks_it_longer_and_longer_and_counts_no_attempt(parts: Parts) -> None:
    parts.sender.result = Delivery(target_error="_ALL_BROKERS_DOWN")
    pauses = []
    for _ in range(8):
        tried = len(parts.sender.sent)
        before = parts.clock.time
        while len(parts.sender.sent) == tried:
            parts.clock.time += 0.5
            assert parts.relay.step() == 0
        pauses.append(parts.clock.time - before)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert len(parts.store.done("block")) == 8
    assert parts.store.done("fail") == []
    # The other target goes on all the time.
    assert len([c for c in parts.store.done("claim") if c[0] == SCHD]) > 100


def test_a_delivery_ends_the_backoff(parts: Parts) -> None:
    parts.sender.result = Delivery(target_error="_TRANSPORT")
    for _ in range(3):
        parts.relay.step()
        parts.clock.time += 60
    parts.sender.result = None
    assert parts.relay.step() == 2
    parts.sender.result = Delivery(target_error="_TRANSPORT")
    parts.relay.step()
    parts.clock.time += 1.0
    tried = len(parts.sender.sent)
    parts.relay.step()
    assert len(parts.sender.sent) == tried + 1


def test_beside_another_relay_it_stands_by(parts: Parts) -> None:
    parts.store.raises["claim"] = Lost()
    assert parts.relay.step() == 0
    assert parts.sender.sent == []
    del parts.store.raises["claim"]
    assert parts.relay.step() == 0
    assert parts.store.done("claim") == []
    parts.clock.time += 1.0
    assert parts.relay.step() == 2


@pytest.mark.parametrize("name", ["confirm", "fail", "block"])
def test_a_result_after_the_lease_went_is_dropped(parts: Parts, name: str) -> None:
    parts.sender.result = Delivery([event(1)], [(event(2), "x")], "y")
    parts.store.raises[name] = Lost()
    assert parts.relay.step() == 0
    order = ["confirm", "fail", "block"]
    noted = [call[0] for call in parts.store.calls if call[0] != "claim"]
    assert noted == order[: order.index(name)]


@pytest.mark.parametrize("name", ["claim", "confirm"])
def test_other_errors_of_the_database_end_the_loop(parts: Parts, name: str) -> None:
    parts.store.raises[name] = Deadlock()
    with pytest.raises(Deadlock):
        parts.relay.step()


def test_release_gives_both_leases_back_whatever_happens(parts: Parts) -> None:
    parts.relay.release()
    assert parts.store.done("release") == [(MSG,), (SCHD,)]
    parts.store.raises["release"] = Deadlock()
    parts.relay.release()


def test_every_relay_has_a_token_of_its_own() -> None:
    assert Parts().relay.token != Parts().relay.token
