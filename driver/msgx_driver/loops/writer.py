"""The pump as a loop of the service: the one writer, woken by NOTIFY, flushing late while the queue is deep (OPS-1)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Final

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.pump import Pump
from msgx_driver.store import Store, stop_error

__all__ = ["Writer", "take_over"]

log = logging.getLogger(__name__)

DEPTH_STEPS: Final = 100
"""Messages between two looks at the depth of the queue."""
TAKE_OVER_SECONDS: Final = 0.5


def take_over(store: Store, clock: Clock, *, patience: Callable[[], bool]) -> None:
    """Become the one writer; while another one is active, ask again as long as `patience()` says True.

    Raises MsgxError OTHER_WRITER, INVARIANT (state lost), UNREACHABLE.
    """
    waiting = False
    while True:
        try:
            found = store.acquire_writer()
        except psycopg.Error as e:
            error = stop_error(e)
            if error is None:
                raise
            if error.exit_code != ExitCode.OTHER_WRITER or not patience():
                raise error from e
            if not waiting:
                log.info("standing by: %s", error)
                waiting = True
            clock.sleep(TAKE_OVER_SECONDS)
            continue
        if found.get("unclean"):
            log.warning("the last writer ended without releasing its right")
        log.info("this session is the writer now")
        return


class Writer:
    """Processes the head when it is due. The store's connection holds the write right and is the one that writes."""

    def __init__(
        self, store: Store, clock: Clock, *, catch_up_depth: int, max_bytes: int, on_work: Callable[[], None]
    ) -> None:
        """`max_bytes` is setting wire.max_bytes, as the poller uses it.

        `on_work` is called when effects wait: after each message that ended, in larger steps while catching up.
        `catch_up_depth` 0 = always flush.
        """
        self.store = store
        self._pump = Pump(store, clock, dead_level=logging.WARNING, max_bytes=max_bytes)
        self._clock = clock
        self._depth = catch_up_depth
        self._on_work = on_work
        self._since_look = DEPTH_STEPS
        self._behind = False
        store.listen()

    def step(self) -> bool:
        """One message, if its backoff is over; True when another may be due at once."""
        head = self.store.next_message()
        if head is None:
            self._flush_late(False)
            return False
        if not head.due:
            return False
        self._since_look += 1
        if self._since_look >= DEPTH_STEPS:
            self._since_look = 0
            self._flush_late(self._depth > 0 and self.store.queue_is_deeper_than(self._depth, head.message_id))
        outcome = self._pump.step(head)
        if outcome["status"] not in ("FAILED", "WAITING") and (not self._behind or self._since_look == 0):
            # One flight written ten times is delivered once: while catching up the other loops take larger bites.
            self._on_work()
        return True

    def _flush_late(self, behind: bool) -> None:
        """Effects wait for the flush of their claim, so a commit may be late without losing anything (contract 4)."""
        if behind != self._behind:
            self.store.flush_late(behind)
            self._behind = behind
            self._on_work()
            log.info("catching up, commits flush late" if behind else "caught up, every commit flushes")

    def wait(self, seconds: float) -> None:
        """Wait for a NOTIFY of enqueue_messages, at most `seconds`."""
        self.store.wait_for_notice(seconds)

    def close(self) -> None:
        """Give the write right back: a clean end."""
        self._flush_late(False)
        with contextlib.suppress(psycopg.Error, MsgxError):
            self.store.release_writer()
