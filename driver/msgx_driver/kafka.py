"""The broker side of the relay: one idempotent producer with forced settings (US-07, D19, D39, contract §5).

What is handed over here has been claimed and flushed; nothing here opens a transaction. A record counts as delivered
only after the broker's report. Order within a partition is strict: the producer stops for good before it would send a
record behind one that failed (gapless), so nothing overtakes.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from msgx_driver.clock import Clock
from msgx_driver.config import Config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.store import Event
from msgx_driver.wire.canonical import canonical_json

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ImportError as e:
    raise MsgxError(
        "the client of Kafka is not installed",
        exit_code=ExitCode.CONFIG,
        hint="pip install 'msgx-driver[service]'",
    ) from e

__all__ = ["HEADERS", "Delivery", "KafkaSender", "Sender", "headers_of", "producer_settings", "value_of"]

log = logging.getLogger(__name__)


class _Quiet(logging.Filter):
    """Keeps what the client logs readable: one lost connection a minute, no remarks on settings forced here."""

    def __init__(self) -> None:
        super().__init__()
        self._last = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record is written."""
        text = record.getMessage()
        if text.startswith("FAIL "):
            # A client without a broker says so ten times a second; the relay says what follows from it.
            if 0 <= record.created - self._last < QUIET_SECONDS:
                return False
            self._last = record.created
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        elif "Gap-less" in text:
            # The stop that keeps the order; the record that caused it is reported by the relay.
            record.levelno, record.levelname = logging.INFO, "INFO"
        return not text.startswith(("CONFWARN ", "GETPID "))


QUIET_SECONDS: Final = 60.0
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.addFilter(_Quiet())

HEADERS: Final = ("event_id", "message_id", "state_version", "updated_at", "kind", "epoch")
"""Header names of every record, in their order; values are UTF-8 text (D19)."""
FORCED: Final = {
    "acks": "all",
    "enable.idempotence": "true",
    "max.in.flight.requests.per.connection": "1",
    "enable.gapless.guarantee": "true",
}
_NOT_TO_SET: Final = {
    *FORCED,
    "request.required.acks",
    "max.in.flight",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "bootstrap.servers",
    "metadata.broker.list",
    "transactional.id",
    "partitioner",
    "queuing.strategy",
    "delivery.report.only.error",
    "logger",
}
# Errors of this one record; every other one says something about the target.
_RECORD_ERRORS: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_MSG_SIZE,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError._BAD_MSG,
}
_GIVES_UP: Final = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
CHECK_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.1
DOWN_SECONDS: Final = 3.0
"""With all brokers down and no report for so long, the claim is given up; the target is blocked, nothing is lost."""
PURGE_SECONDS: Final = 5.0


@dataclass
class Delivery:
    """What became of the records of one claim; those in neither list were not confirmed and will be sent again."""

    delivered: list[Event] = field(default_factory=list)
    failed: list[tuple[Event, str]] = field(default_factory=list)
    """Errors of single records."""
    target_error: str | None = None
    """Why the target as a whole refuses."""


class Sender(Protocol):
    """What a relay delivers through."""

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        """Deliver in the given order; nothing is handed to the broker client after `deadline` (monotonic seconds).

        `ordered`: a record that failed holds back all that follow it.
        """
        ...


def headers_of(event: Event) -> list[tuple[str, str | bytes | None]]:
    """Headers of a record, UTF-8 (D19)."""
    headers: list[tuple[str, str | bytes | None]] = [(name, str(getattr(event, name)).encode()) for name in HEADERS]
    # Sent again by an operator after it was given up: its place in the order is lost (D39).
    return [*headers, ("redelivered", b"true")] if event.redelivered else headers


def value_of(event: Event) -> bytes | None:
    """Bytes of a record: canonical JSON in UTF-8, or None, the null tombstone (D6, FS-5.5-1)."""
    return None if event.value is None else canonical_json(event.value).encode()


def read_properties(path: Path) -> dict[str, str]:
    """Read `name=value` lines; blank lines and lines that begin with # are skipped. Raises MsgxError(CONFIG)."""
    what = f"configuration key kafka.properties: file {path}"
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "not UTF-8"
        raise _config(f"{what} cannot be read: {reason}", "name a readable text file") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not re.fullmatch(r"[a-z0-9._]+", name):
            raise _config(f"{what}, line {number}: not name=value", "write one librdkafka setting a line")
        if name in _NOT_TO_SET or name.endswith("_cb"):
            raise _config(
                f"{what}, line {number}: {name} is not yours to set, delivery without loss rests on it",
                "remove the line; brokers and times are set by the keys of [kafka]",
            )
        found[name] = value
    return found


def producer_settings(config: Config) -> dict[str, Any]:
    """Settings of the producer: the properties file, and over it what is forced. Raises MsgxError(CONFIG)."""
    given = {} if config.kafka.properties is None else read_properties(config.kafka.properties)
    return {
        "client.id": "msgx-driver",
        "linger.ms": "5",
        **given,
        **FORCED,
        "bootstrap.servers": config.kafka.bootstrap,
        "message.timeout.ms": config.kafka.message_timeout_ms,
        "partitioner": "consistent_random",
    }


class KafkaSender:
    """Delivers to the two topics. One thread uses it."""

    def __init__(self, settings: Mapping[str, Any], topics: Mapping[str, str], clock: Clock) -> None:
        """`topics` by target; `settings` as `producer_settings` returns them. Raises MsgxError(CONFIG)."""
        self._settings = dict(settings)
        self._topics = dict(topics)
        self._clock = clock
        self._wait = float(self._settings["message.timeout.ms"]) / 1000
        self._down: tuple[float, str] | None = None
        self._producer: Producer | None = self._build()

    def check(self) -> None:
        """Ask the broker for the topics: MsgxError UNREACHABLE, or CONFIG when one is not there."""
        servers = self._settings["bootstrap.servers"]
        try:
            known = self._get().list_topics(timeout=CHECK_SECONDS).topics
        except KafkaException as e:
            raise MsgxError(
                f"the broker {servers} does not answer: {_name(e.args[0])}",
                exit_code=ExitCode.UNREACHABLE,
                hint="check kafka.bootstrap, kafka.properties and that the broker runs",
            ) from None
        for target, topic in self._topics.items():
            if topic not in known or known[topic].error is not None:
                policy = "compact" if target == "KAFKA:schd" else "delete"
                raise _config(
                    f"topic {topic} is not there, or this account may not see it",
                    f"create it: kafka-topics.sh --bootstrap-server {servers} --create --topic {topic}"
                    f" --config cleanup.policy={policy}; docs/consumers.md says more of partitions and replicas",
                )

    def close(self) -> None:
        """Give up what is still queued, and the connections."""
        self._drop()

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        """Deliver and wait for every report; see `Sender`. A record refused beside others is tried again alone."""
        result = Delivery()
        whole = self._send(events, ordered, deadline)
        result.delivered += whole.delivered
        result.target_error = whole.target_error
        if not whole.failed:
            return result
        # A batch is refused as a whole, and the producer stops for good: alone, the guilty one shows.
        done = {event.event_id for event in whole.delivered}
        guilty = {
            event.event_id: error for event, error in whole.failed if len(events) == 1 or error.startswith("local:")
        }
        for event in events:
            if event.event_id in done:
                continue
            error = guilty.get(event.event_id)
            if error is None:
                alone = self._send([event], ordered, deadline)
                result.delivered += alone.delivered
                result.target_error = alone.target_error
                error = alone.failed[0][1] if alone.failed else None
            if error is not None:
                result.failed.append((event, error.removeprefix("local:")))
            if result.target_error is not None or (ordered and error is not None):
                break
            if self._clock.monotonic() >= deadline:
                break
        return result

    def _send(self, events: Sequence[Event], ordered: bool, deadline: float) -> Delivery:
        result = Delivery()
        reports: dict[int, KafkaError | None] = {}
        by_id = {event.event_id: event for event in events}
        handed: list[Event] = []
        broken = False

        def on_report(event_id: int) -> Any:
            def report(error: KafkaError | None, _message: object) -> None:
                reports[event_id] = error

            return report

        try:
            producer = self._get()
        except MsgxError as e:
            result.target_error = str(e)
            return result
        self._down = None
        for event in events:
            while not broken:
                if self._clock.monotonic() >= deadline:
                    broken = True
                    break
                try:
                    producer.produce(
                        self._topics[event.target],
                        key=event.flid.encode(),
                        value=value_of(event),
                        headers=headers_of(event),
                        on_delivery=on_report(event.event_id),
                    )
                    handed.append(event)
                    break
                except BufferError:
                    # The local queue is full: back-pressure, the reports make room.
                    self._poll(producer, POLL_SECONDS)
                except KafkaException as e:
                    error = e.args[0]
                    if _is_record_error(error):
                        result.failed.append((event, f"local:{_name(error)}"))
                        broken = ordered
                    else:
                        result.target_error = _name(error)
                        broken = True
                    break
            if broken:
                break
            self._poll(producer, 0)
            if any(error is not None for error in reports.values()):
                break
        if self._clock.monotonic() >= deadline:
            # Whoever was paused here must not let go what somebody else may have delivered since.
            self._purge(producer, queued_only=True)
        self._await(producer, handed, reports, result)
        for event_id, error in reports.items():
            if error is None:
                result.delivered.append(by_id[event_id])
            elif _is_record_error(error):
                result.failed.append((by_id[event_id], _name(error)))
            elif result.target_error is None and not _is_purge(error):
                result.target_error = _name(error)
        if any(error is not None for error in reports.values()) or len(reports) < len(handed):
            # After any failure the sequence of this producer is in doubt; a new one starts clean.
            self._drop()
        if result.failed:
            result.target_error = None
        return result

    def _await(
        self, producer: Producer, handed: Sequence[Event], reports: Mapping[int, KafkaError | None], result: Delivery
    ) -> None:
        """Wait for the reports; when they do not come or one fails, take back what has not been sent."""
        # Before the client's own timeout: it would give up one record and still send the next.
        until = self._clock.monotonic() + self._wait * 0.9
        while len(reports) < len(handed):
            self._poll(producer, POLL_SECONDS)
            now = self._clock.monotonic()
            failed = any(error is not None for error in reports.values())
            down = self._down is not None and now - self._down[0] >= DOWN_SECONDS
            if failed or down or now >= until:
                if not failed and result.target_error is None:
                    reason = "no report in time" if self._down is None else self._down[1]
                    result.target_error = f"{reason}; {len(handed) - len(reports)} records without a report"
                self._purge(producer)
                break

    def _purge(self, producer: Producer, *, queued_only: bool = False) -> None:
        with contextlib.suppress(KafkaException):
            producer.purge(in_queue=True, in_flight=not queued_only, blocking=True)
        if not queued_only:
            end = self._clock.monotonic() + PURGE_SECONDS
            while len(producer) and self._clock.monotonic() < end:
                self._poll(producer, POLL_SECONDS)

    def _poll(self, producer: Producer, seconds: float) -> None:
        try:
            producer.poll(seconds)
        except KafkaException as e:
            # A producer that has stopped for good says so here; what became of the records, their reports say.
            self._down = self._down or (self._clock.monotonic() - DOWN_SECONDS, _name(e.args[0]))

    def _get(self) -> Producer:
        if self._producer is None:
            self._producer = self._build()
        return self._producer

    def _build(self) -> Producer:
        try:
            return Producer({**self._settings, "error_cb": self._on_error}, logger=_client_log)
        except KafkaException as e:
            # The client's own text may quote the value, which may be a secret.
            named = re.search(r'property:? "([\w.]+)"', str(e))
            about = f" (setting {named[1]})" if named else ""
            raise _config(
                f"the client of Kafka refuses its settings{about}: {_name(e.args[0])}",
                "correct the file in kafka.properties, or kafka.bootstrap",
            ) from None

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            self._purge(producer)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() not in _GIVES_UP:
            return
        since, known = self._down or (self._clock.monotonic(), "")
        # That all brokers are down follows from the others, which say why.
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            known = known or _name(error)
        elif known in ("", "_ALL_BROKERS_DOWN"):
            known = f"{_name(error)}: {error.str()}"[:300]
        self._down = (since, known)


def _is_record_error(error: KafkaError) -> bool:
    return error.code() in _RECORD_ERRORS


def _is_purge(error: KafkaError) -> bool:
    return error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


def _name(error: KafkaError) -> str:
    return str(error.name())


def _config(message: str, hint: str) -> MsgxError:
    return MsgxError(message, exit_code=ExitCode.CONFIG, hint=hint)
