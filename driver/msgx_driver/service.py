"""The service `msgx-driver run`: poller, pump, relay and backfill, each a supervised loop (US-01, US-03, US-07, US-09).

Only the pump can end the service by itself: state lost, schema mismatch, another writer. Every other loop that fails
is tried again with a backoff, shows in `status`, and leaves the others alone (OPS-1).
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from msgx_driver.clock import Clock
from msgx_driver.config import Config, require_adapters
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.supervised import Bell, Step, SteppingWorker, SupervisedLoop, Worker
from msgx_driver.loops.writer import Writer, take_over
from msgx_driver.store import Store, waits

__all__ = ["Service"]

log = logging.getLogger(__name__)

SECOND_SIGNAL: Final = 130
# A half-open session must not keep a writer that nobody hears: both sides notice within half a minute.
KEEPALIVE: Final = {
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
RECONNECT_SECONDS: Final = 60.0
"""How long the server may take to notice that our own lost session is gone, before we call it another writer."""
IDLE_SECONDS: Final = 1.0
JOIN_SECONDS: Final = 90.0
"""For all loops together, below TimeoutStopSec of the unit; what still waits for a server then is left alone."""
STOPS_ALL: Final = {
    "pump": (ExitCode.CONFIG, ExitCode.SCHEMA, ExitCode.INVARIANT, ExitCode.OTHER_WRITER, ExitCode.USAGE),
}
"""What ends the service, by loop; for the loops that are not named: a configuration that cannot work."""


class Service:
    """One process that runs the chosen loops until a signal; `run()` returns at a clean end."""

    def __init__(self, config: Config, conninfo: str, clock: Clock, *, standby: bool) -> None:
        self._config = config
        self._conninfo = make_conninfo(conninfo, **KEEPALIVE)
        self._clock = clock
        self._loops = config.service.loop_names
        self._standby = standby
        self._stop = threading.Event()
        self._bells = {name: Bell(self._stop) for name in self._loops}
        self._was_writer = False
        self._limit: int | None = None
        self._error: MsgxError | None = None

    def run(self) -> None:
        """Run until SIGTERM or SIGINT; raises the MsgxError that ended the service. A second signal exits at once."""
        require_adapters(self._config, self._loops)
        openers: dict[str, Step] = {
            "poller": self._open_poller,
            "pump": self._open_pump,
            "relay": self._open_relay,
            "backfill": self._open_backfill,
        }
        idle = {"poller": self._config.mailbox.poll_seconds}
        threads = [
            SupervisedLoop(
                name,
                openers[name],
                self._clock,
                self._stop,
                self._bells[name],
                idle_seconds=idle.get(name, IDLE_SECONDS),
                fatal=lambda error, name=name: error.exit_code in STOPS_ALL.get(name, (ExitCode.CONFIG,)),  # type: ignore[misc]
                ended=self._on_end,
            )
            for name in self._loops
        ]
        with self._signals():
            for thread in threads:
                thread.start()
            log.info("running: %s", ", ".join(self._loops))
            while not self._stop.wait(1.0):
                pass
            for bell in self._bells.values():
                bell.ring()
            deadline = self._clock.monotonic() + JOIN_SECONDS
            for thread in threads:
                thread.join(max(deadline - self._clock.monotonic(), 0))
        if self._error is not None:
            raise self._error
        log.info("stopped")

    def _on_end(self, name: str, error: MsgxError | None) -> None:
        if error is not None:
            log.error("loop %s ends the service: %s", name, error)
            self._error = self._error or error
            self._stop.set()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def handle(_number: int, _frame: FrameType | None) -> None:
            if self._stop.is_set():
                os._exit(SECOND_SIGNAL)
            self._stop.set()

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def _store(self) -> Iterator[Store]:
        with Store.open(self._conninfo, self._config.database.schema) as store:
            store.check_contract("msgx-driver migrate up")
            store.guard_session()
            yield store

    @contextlib.contextmanager
    def _open_pump(self) -> Iterator[Worker]:
        with self._store() as store:
            deadline = self._clock.monotonic() + RECONNECT_SECONDS

            def patience() -> bool:
                if self._stop.is_set():
                    return False
                # Our own lost session may still be there; another instance is somebody else's.
                return self._standby or (self._was_writer and self._clock.monotonic() < deadline)

            try:
                take_over(store, self._clock, patience=patience)
            except MsgxError:
                if self._stop.is_set():
                    yield SteppingWorker(store, lambda: False, self._bells["pump"])
                    return
                raise
            self._was_writer = True
            try:
                yield Writer(
                    store,
                    self._clock,
                    catch_up_depth=self._config.service.catch_up_depth,
                    max_bytes=self._max_bytes(store),
                    on_work=self._ring_outside,
                )
            except (MsgxError, psycopg.Error) as e:
                # Who gives up on the database gives the right back: the head must not be charged for it (D14).
                if isinstance(e, MsgxError) or waits(e):
                    with contextlib.suppress(psycopg.Error, MsgxError):
                        store.release_writer()
                raise

    def _max_bytes(self, store: Store) -> int:
        # Read once: what the poller stores whole, the pump must not find too long.
        if self._limit is None:
            self._limit = int(store.setting("wire.max_bytes"))
        return self._limit

    def _ring_outside(self) -> None:
        for name in ("relay", "backfill"):
            if name in self._bells:
                self._bells[name].ring()

    @contextlib.contextmanager
    def _open_poller(self) -> Iterator[Worker]:
        from msgx_driver.loops.poller import open_poller  # its package is an extra

        with (
            self._store() as store,
            open_poller(store, self._config, self._clock, max_bytes=self._max_bytes(store)) as poller,
        ):
            yield SteppingWorker(store, poller.step, self._bells["poller"])

    @contextlib.contextmanager
    def _open_relay(self) -> Iterator[Worker]:
        from msgx_driver.loops.relay import open_relay  # its package is an extra

        with self._store() as store, open_relay(store, self._config, self._clock) as relay:
            yield SteppingWorker(store, relay.step, self._bells["relay"], relay.release)

    @contextlib.contextmanager
    def _open_backfill(self) -> Iterator[Worker]:
        from msgx_driver.loops.backfill import open_backfill  # its package is an extra

        with self._store() as store, open_backfill(store, self._config, self._clock) as backfill:
            yield SteppingWorker(store, backfill.step, self._bells["backfill"], backfill.release)
