"""The poller: takes the mailbox's rows into the queue, in the order of their ids and each once (US-01, D29, D38)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Final

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.config import Config
from msgx_driver.config import Mailbox as MailboxConfig
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.mailbox import Mailbox
from msgx_driver.store import InboxCursor, Store

__all__ = ["Poller", "open_poller"]

log = logging.getLogger(__name__)

ANOTHER_POLLER: Final = "MX203"
ANOTHER_SOURCE: Final = "MX314"
ASK_SECONDS: Final = 0.4
"""Seconds between two questions for open transactions."""
SCAN_IDS: Final = 10_000
"""Ids looked at in one scan; holes beyond it start to age when the scan gets there."""


class Poller:
    """Reads one mailbox; one thread uses it. All progress is in the database, so it may end at any moment."""

    def __init__(self, store: Store, mailbox: Mailbox, config: MailboxConfig, clock: Clock) -> None:
        """`config`: section mailbox; its name is the source."""
        self.store = store
        self._mailbox = mailbox
        self._config = config
        self._clock = clock
        # At the start the rescan goes first: what stopped the polling then stops it again (D38).
        self._rescan_at = clock.monotonic()
        self._ask_at = clock.monotonic()

    def step(self) -> bool:
        """Look at the mailbox once; True when there is more to do at once.

        Raises MsgxError UNREACHABLE (mailbox, database), CONFIG (no start, schema of another source), psycopg.Error;
        a failure is counted, and nothing is half taken.
        """
        try:
            return self._step()
        except psycopg.Error as e:
            if e.sqlstate == ANOTHER_POLLER:
                log.info("mailbox %s: another poller has moved the watermark", self._config.name)
                return False
            self._note_failure()
            raise
        except MsgxError:
            self._note_failure()
            raise

    def _note_failure(self) -> None:
        with contextlib.suppress(psycopg.Error, MsgxError):
            self.store.note_scan_failure(self._config.name, self._clock.now())

    def _step(self) -> bool:
        cursor = self._cursor()
        more = self._rescan(cursor)
        # The order matters: transactions first, then the ids; see scan_inbox.
        transactions = self._open_transactions()
        ids = self._mailbox.ids_after(cursor.watermark, SCAN_IDS)
        highest = self._mailbox.max_id()
        now = self._clock.now()
        scan = self.store.scan_inbox(
            self._config.name,
            cursor.watermark,
            ids,
            max_id=highest,
            transactions=transactions,
            id_step=self._config.id_step,
            now=now,
        )
        if scan["given_up"]:
            log.warning("mailbox %s: %d missing id ranges are given up", self._config.name, scan["given_up"])
        self._take(cursor.watermark, scan["upto"])
        return more or (len(ids) == SCAN_IDS and scan["upto"] == ids[-1])

    def _open_transactions(self) -> list[str] | None:
        """Ask no more often than the server looks anew; a hole only waits for the next answer."""
        if self._clock.monotonic() < self._ask_at:
            return None
        self._ask_at = self._clock.monotonic() + ASK_SECONDS
        return self._mailbox.open_transactions()

    def _cursor(self) -> InboxCursor:
        cursor = self.store.inbox_cursor(self._config.name)
        if cursor is not None:
            return cursor
        if self._config.start_at is None:
            raise MsgxError(
                f"mailbox {self._config.name} was never read: the first start needs mailbox.start_at",
                exit_code=ExitCode.CONFIG,
                hint="set it to the first id to read; later starts go on by themselves",
            )
        try:
            self.store.start_inbox(self._config.name, self._config.start_at, self._clock.now())
        except psycopg.Error as e:
            if e.sqlstate == ANOTHER_SOURCE:
                raise MsgxError(e.diag.message_primary or str(e), exit_code=ExitCode.CONFIG) from e
            raise
        return self._cursor()

    def _take(self, after: int, upto: int) -> None:
        while after < upto:
            rows, last = self._mailbox.rows(
                after, upto, max_rows=self._config.batch_rows, max_bytes=self._config.batch_bytes
            )
            self.store.enqueue_inbox(self._config.name, after, last, rows, self._clock.now())
            after = last

    def _rescan(self, cursor: InboxCursor) -> bool:
        """Look at one page behind the watermark, when it is time; True when the round has more pages."""
        if cursor.rescan_from is None and self._clock.monotonic() < self._rescan_at:
            return False
        depth = int(self.store.setting("inbox.rescan_depth"))
        first = max(cursor.first_id, cursor.watermark - depth + 1, cursor.rescan_from or 0)
        page = self._mailbox.receive_times(first, cursor.watermark, SCAN_IDS)
        following = page[-1][0] + 1 if len(page) == SCAN_IDS else None
        late = self.store.rescan_inbox(self._config.name, page, following, self._clock.now())
        while late:
            log.warning(
                "mailbox %s: %d rows appeared behind the watermark, the first is %d",
                self._config.name,
                len(late),
                late[0],
            )
            part = late[: self._config.batch_rows]
            rows, count = self._mailbox.rows_of(part, max_bytes=self._config.batch_bytes)
            if rows:
                self.store.enqueue_late(self._config.name, rows, self._clock.now())
            late = late[count:]
        if following is None:
            self._rescan_at = self._clock.monotonic() + self._config.rescan_seconds
        return following is not None


@contextlib.contextmanager
def open_poller(store: Store, config: Config, clock: Clock, *, max_bytes: int) -> Iterator[Poller]:
    """A poller with a mailbox connection of its own, which opens when it is first needed; raises MsgxError CONFIG."""
    mailbox = Mailbox(config.mailbox, max_bytes=max_bytes, read_only=True)
    try:
        yield Poller(store, mailbox, config.mailbox, clock)
    finally:
        mailbox.close()
