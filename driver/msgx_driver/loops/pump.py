"""The pump: head of the queue, decode, one call and one transaction per message (FS-4-4, US-03).

Every rule of order, identity, retry and state lives in the database. The pump only decides what an error
means for itself: record it for the message, or stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from msgx_driver.clock import Clock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.stopping import StopRequest
from msgx_driver.store import Head, Store, stop_error
from msgx_driver.wire.decode import DecodeError, decode_message

__all__ = ["Pump"]

log = logging.getLogger(__name__)

NOT_THE_HEAD: Final = "MX501"
"""A smaller id was enqueued after the head was read: read it again."""

UNCHARGED_TRIES: Final = 8
"""Failures of the database as a whole in a row, on one head, before the pump gives up."""


@dataclass
class Pump:
    """Processes the queue of one schema; the store's connection must hold the write right."""

    store: Store
    clock: Clock
    dead_level: int = logging.INFO
    """Level of the log line of a DEAD message; a replay lists them itself."""
    max_bytes: int | None = None
    """Longest message; None = setting wire.max_bytes as it is now."""
    _uncharged: int = 0

    def __post_init__(self) -> None:
        self._catalogue = self.store.catalogue()
        self._max_bytes = self.max_bytes or int(self.store.setting("wire.max_bytes"))

    def drain(self, on_terminal: Callable[[dict[str, Any]], bool]) -> None:
        """Process until the queue is empty, retrying at once, or until `on_terminal(outcome)` says False.

        Raises MsgxError when the pump has to stop: UNREACHABLE, OTHER_WRITER, INVARIANT, SCHEMA; and
        KeyboardInterrupt after the message at hand when a signal asked to end.
        """
        with StopRequest() as stop:
            while not stop.requested and (head := self.store.next_message()) is not None:
                outcome = self.step(head)
                if outcome["status"] not in ("FAILED", "WAITING") and not on_terminal(outcome):
                    return
            if stop.requested:
                raise KeyboardInterrupt

    def step(self, head: Head) -> dict[str, Any]:
        """Process the head once; returns its outcome: status, reason, result, attempts …"""
        started = self.clock.monotonic()
        outcome = self._try(head)
        state = outcome["status"]
        log.log(
            self.dead_level if state == "DEAD" else logging.INFO,
            outcome.get("reason", "processed"),
            extra={
                "message_id": head.message_id,
                "outcome": state,
                "sqlstate": outcome.get("sqlstate"),
                "attempt": outcome.get("attempts"),
                "ms": round((self.clock.monotonic() - started) * 1000, 3),
            },
        )
        if outcome.get("action") == "stop":
            raise MsgxError(
                f"the pump stops after message {head.message_id}: {outcome.get('reason')}",
                exit_code=ExitCode.INVARIANT,
                hint="the same fault came again and again: find the cause before starting again (docs/operations.md)",
            )
        return outcome

    def _try(self, head: Head) -> dict[str, Any]:
        if head.payload is None or head.encoding is None:
            raise MsgxError(
                f"message {head.message_id} has no bytes in message_raw",
                exit_code=ExitCode.INVARIANT,
                hint="restore its row from a backup, or take the message out of proc_state",
            )
        try:
            command = decode_message(head.payload, head.encoding, self._catalogue, max_bytes=self._max_bytes)
        except DecodeError as e:
            # Nothing of META is known, so no rule of the engine can apply (D40).
            return self._record(head, None, None, "MALFORMED", e.reason)
        except Exception as e:
            log.exception("decoder defect", extra={"message_id": head.message_id})
            return self._record(head, None, None, "CODEC_ERROR", f"decoder defect ({type(e).__name__})")
        try:
            outcome = self.store.process_message(head.message_id, command)
        except psycopg.Error as e:
            if self._must_wait(e):
                return {"message_id": head.message_id, "status": "WAITING", "sqlstate": e.sqlstate}
            state = e.sqlstate or "08000"
            reason = e.diag.message_primary or ""
            if not state.startswith("MX"):
                # The database's own texts may quote values of the message.
                where = f", constraint {e.diag.constraint_name}" if e.diag.constraint_name else ""
                reason = f"message {head.message_id}: database error {state} ({type(e).__name__}{where})"
            return self._record(head, command, state, None, reason) | {"sqlstate": state}
        self._uncharged = 0
        return outcome

    @staticmethod
    def _must_wait(error: psycopg.Error) -> bool:
        """Tell whether the head has to be read again; raises what stops the pump."""
        stop = stop_error(error)
        if stop is not None:
            raise stop from error
        return error.sqlstate == NOT_THE_HEAD

    def _record(
        self,
        head: Head,
        command: dict[str, Any] | None,
        sqlstate: str | None,
        error_class: str | None,
        reason: str,
    ) -> dict[str, Any]:
        if not reason.startswith(("message ", "late-overtaken: message ")):
            reason = f"message {head.message_id}: {reason}"
        try:
            outcome = self.store.record_failure(
                head.message_id, command=command, sqlstate=sqlstate, error_class=error_class, reason=reason
            )
        except psycopg.Error as e:
            if self._must_wait(e):
                return {"message_id": head.message_id, "status": "WAITING", "sqlstate": e.sqlstate}
            return self._uncharged_failure(head, e.sqlstate, reason)
        if outcome["status"] == "FAILED" and not outcome.get("charged"):
            return self._uncharged_failure(head, sqlstate, reason)
        self._uncharged = 0
        return outcome

    def _uncharged_failure(self, head: Head, sqlstate: str | None, reason: str) -> dict[str, Any]:
        self._uncharged += 1
        if self._uncharged >= UNCHARGED_TRIES:
            raise MsgxError(
                f"the database refused {UNCHARGED_TRIES} times in a row (SQLSTATE {sqlstate}): {reason}",
                exit_code=ExitCode.UNREACHABLE,
                hint="look at the server (disk, connections, locks); nothing is lost, the same command continues",
            )
        self.clock.sleep(min(0.05 * 2**self._uncharged, 2.0))
        return {"message_id": head.message_id, "status": "FAILED", "reason": reason, "sqlstate": sqlstate}
