"""The relay: claims events, hands them to the broker, books what the broker reports (US-07, D39, contract §4).

No transaction is open while the broker works. A claim is dropped when its lease could end before the broker client has
given its records up, so that a relay that was paused can neither deliver nor confirm what another one has taken over.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Final

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.config import Config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.kafka import Delivery, KafkaSender, Sender, producer_settings
from msgx_driver.loops.backoff import Backoff
from msgx_driver.store import Event, Store

__all__ = ["TARGETS", "Relay", "open_relay"]

log = logging.getLogger(__name__)

TARGETS: Final = ("KAFKA:msg", "KAFKA:schd")
OTHER_RELAY: Final = "MX503"
STANDBY_SECONDS: Final = 1.0
LEASE_RESERVE: Final = 1.0
"""Seconds of a lease that stay unused, for what passes between two looks at the clock."""


class Relay:
    """Delivers what is due of both targets; one thread uses it, its lease token is its own."""

    def __init__(
        self, store: Store, sender: Sender, clock: Clock, *, lease_seconds: int, message_timeout: float, batch: int
    ) -> None:
        """`message_timeout`: seconds after which the broker client has given a record up; `batch`: rows of a claim."""
        self.store = store
        self.token = uuid.uuid4()
        self._sender = sender
        self._clock = clock
        self._lease = lease_seconds
        self._window = lease_seconds - message_timeout - LEASE_RESERVE
        self._batch = batch
        self._resume_at = dict.fromkeys(TARGETS, clock.monotonic())
        self._backoff = {target: Backoff() for target in TARGETS}
        self._standing_by: set[str] = set()

    def step(self) -> int:
        """Deliver one claim of each target; returns the records delivered, 0 when nothing was due or possible."""
        return sum(self._deliver(target) for target in TARGETS if self._clock.monotonic() >= self._resume_at[target])

    def release(self) -> None:
        """Give the leases back, at a clean end."""
        for target in TARGETS:
            with contextlib.suppress(psycopg.Error, MsgxError):
                self.store.release_target(target, self.token)

    def _deliver(self, target: str) -> int:
        deadline = self._clock.monotonic() + self._window
        events = self._claim(target)
        if not events:
            return 0
        if self._clock.monotonic() >= deadline:
            log.warning("%s: the claim took too long, it is dropped", target)
            return 0
        delivery = self._sender.send_all(events, ordered=target == "KAFKA:msg", deadline=deadline)
        if not self._book(target, delivery):
            return 0
        if delivery.target_error is not None:
            self._back_off(target, delivery.target_error)
        elif delivery.delivered:
            self._backoff[target].reset()
        return len(delivery.delivered)

    def _claim(self, target: str) -> list[Event]:
        try:
            events = self.store.claim_events(target, self.token, limit=self._batch, lease_seconds=self._lease)
        except psycopg.Error as e:
            if e.sqlstate != OTHER_RELAY:
                raise
            if target not in self._standing_by:
                log.info("%s: another relay delivers, standing by", target)
                self._standing_by.add(target)
            self._resume_at[target] = self._clock.monotonic() + STANDBY_SECONDS
            return []
        if target in self._standing_by:
            log.info("%s: taken over", target)
            self._standing_by.discard(target)
        if events is None:
            # Committed on this server perhaps, but not where it counts: a failover could take it back.
            log.warning("%s: the claim is committed on the server alone, nothing is sent", target)
            self._resume_at[target] = self._clock.monotonic() + STANDBY_SECONDS
            return []
        return events

    def _book(self, target: str, delivery: Delivery) -> bool:
        """Book the result; False when the lease went to another relay, which then delivers it all again."""
        steps: list[Callable[[], object]] = []
        if delivery.delivered:
            steps.append(lambda: self.store.confirm_events(target, self.token, delivery.delivered))
        if delivery.failed:
            steps.append(lambda: self._fail(target, delivery.failed))
        if delivery.target_error is not None:
            error = delivery.target_error
            steps.append(lambda: self.store.block_target(target, self.token, error))
        for step in steps:
            try:
                step()
            except psycopg.Error as e:
                if e.sqlstate != OTHER_RELAY:
                    raise
                log.warning("%s: the lease went to another relay, this result is dropped", target)
                return False
        return True

    def _fail(self, target: str, failed: list[tuple[Event, str]]) -> None:
        for event, error in failed:
            log.warning("%s refuses a record: %s", target, error, extra={"event_id": event.event_id})
        booked = self.store.fail_events(target, self.token, failed)
        if booked["dead"]:
            log.error("%s: %d events are DEAD, their attempts are used up", target, booked["dead"])

    def _back_off(self, target: str, error: str) -> None:
        pause = self._backoff[target].failed()
        self._resume_at[target] = self._clock.monotonic() + pause
        log.error("%s is blocked, next try in %g s: %s", target, pause, error)


@contextlib.contextmanager
def open_relay(store: Store, config: Config, clock: Clock) -> Iterator[Relay]:
    """A relay with a producer of its own; raises MsgxError CONFIG (settings), UNREACHABLE (a missing topic).

    A broker that does not answer is no error here: the relay blocks the targets and tries again.
    """
    sender = KafkaSender(producer_settings(config), config.topics, clock)
    try:
        try:
            sender.check()
        except MsgxError as e:
            if e.exit_code != ExitCode.UNREACHABLE:
                # Whoever keeps the broker may make the topic any time: this loop tries again, the others go on.
                raise MsgxError(str(e), exit_code=ExitCode.UNREACHABLE, hint=e.hint) from e
            log.warning("%s", e)
        yield Relay(
            store,
            sender,
            clock,
            lease_seconds=config.kafka.lease_seconds,
            message_timeout=config.kafka.message_timeout_ms / 1000,
            batch=config.kafka.batch,
        )
    finally:
        sender.close()
