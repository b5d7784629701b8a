"""The backfill: marks finished messages in the mailbox, behind the commit, at its own pace (US-09, D17)."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.config import Config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.backoff import Backoff
from msgx_driver.mailbox import Mailbox, Mark, MarkRefusedError
from msgx_driver.store import BackfillItem, Store

__all__ = ["Backfill", "open_backfill"]

log = logging.getLogger(__name__)

TARGET: Final = "MAILBOX"
OTHER_WORKER: Final = "MX503"
LEASE_SECONDS: Final = 10
"""Two workers at once would do no harm, a mark is idempotent: the lease only spares double work."""
STANDBY_SECONDS: Final = 1.0
BATCH: Final = 500


class Backfill:
    """Marks what is due; one thread uses it, its lease token is its own."""

    def __init__(
        self,
        store: Store,
        mailbox: Mailbox,
        clock: Clock,
        *,
        source: str,
        statuses: Mapping[str, str | None],
        batch: int = BATCH,
    ) -> None:
        """`statuses`: value of the mailbox's status column by status of the message; None leaves the column alone."""
        self.store = store
        self.token = uuid.uuid4()
        self._mailbox = mailbox
        self._clock = clock
        self._source = source
        self._statuses = statuses
        self._batch = batch
        self._resume_at = clock.monotonic()
        self._backoff = Backoff()

    def step(self) -> int:
        """Mark one batch; returns the messages that are done, 0 when nothing was due or possible."""
        started = self._clock.monotonic()
        if started < self._resume_at:
            return 0
        try:
            items = self.store.claim_backfill(
                self._source, self.token, limit=self._batch, lease_seconds=LEASE_SECONDS, now=self._clock.now()
            )
            if items is None:
                # Committed on this server perhaps, but not where it counts: a failover could take it back.
                log.warning("the claim is committed on the server alone, nothing is marked")
                self._resume_at = started + STANDBY_SECONDS
            if not items:
                return 0
            if self._clock.monotonic() - started >= LEASE_SECONDS / 2:
                log.warning("the claim took too long, it is dropped")
                return 0
            return self._mark(items)
        except psycopg.Error as e:
            if e.sqlstate != OTHER_WORKER:
                raise
            self._resume_at = self._clock.monotonic() + STANDBY_SECONDS
            return 0

    def release(self) -> None:
        """Give the lease back, at a clean end."""
        with contextlib.suppress(psycopg.Error, MsgxError):
            self.store.release_target(TARGET, self.token)

    def _mark(self, items: Sequence[BackfillItem]) -> int:
        try:
            refused = self._write([item for item in items if not item.gone])
        except MsgxError as e:
            if e.exit_code != ExitCode.UNREACHABLE:
                raise
            pause = self._backoff.failed()
            self._resume_at = self._clock.monotonic() + pause
            log.error("the mailbox cannot be marked, next try in %g s: %s", pause, e)
            self.store.block_target(TARGET, self.token, str(e), self._clock.now())
            return 0
        self._backoff.reset()
        done = [item for item in items if item.message_id not in refused]
        if done:
            self.store.confirm_backfill(self.token, done, self._clock.now())
        for item in items:
            if item.message_id in refused:
                reason = refused[item.message_id]
                log.warning("the mailbox refuses a mark: %s", reason, extra={"message_id": item.message_id})
                self.store.fail_backfill(self.token, [item], reason, self._clock.now())
        return len(done)

    def _write(self, items: Sequence[BackfillItem]) -> dict[int, str]:
        """Write the marks; returns the messages whose mark was refused, with what the server said."""
        marks = [Mark(i.mailbox_id, i.completed_at, self._statuses.get(i.status)) for i in items]
        if not marks:
            return {}
        try:
            self._mailbox.mark(marks)
            return {}
        except MarkRefusedError as e:
            if len(marks) == 1:
                return {items[0].message_id: str(e)}
        # One that is refused must not hold back the others.
        refused: dict[int, str] = {}
        for item in items:
            refused |= self._write([item])
        return refused


@contextlib.contextmanager
def open_backfill(store: Store, config: Config, clock: Clock) -> Iterator[Backfill]:
    """A worker with a mailbox connection of its own, which opens when it is first needed; raises MsgxError CONFIG."""
    mailbox = Mailbox(
        config.mailbox,
        max_bytes=int(store.setting("wire.max_bytes")),
        read_only=config.environment == "shadow",
    )
    statuses = {
        "SUCCEEDED": config.mailbox.status_succeeded,
        "SKIPPED": config.mailbox.status_skipped,
        "DEAD": config.mailbox.status_dead,
    }
    try:
        yield Backfill(store, mailbox, clock, source=config.mailbox.name, statuses=statuses)
    finally:
        mailbox.close()
