from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msgx_driver.clock import SystemClock
from msgx_driver.config import load_config
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.kafka import KafkaSender, headers_of, producer_settings, value_of
from msgx_driver.store import Event

TOPICS = {"KAFKA:msg": "t.msg", "KAFKA:schd": "t.schd"}
FORCED = {
    "acks": "all",
    "enable.idempotence": "true",
    "max.in.flight.requests.per.connection": "1",
    "enable.gapless.guarantee": "true",
}
FAR = float("inf")


def event(event_id: int, value: dict[str, Any] | None = None, flid: str = "CA100") -> Event:
    instant = "2026-09-09T00:00:00.000001Z"
    return Event("KAFKA:msg", event_id, "NOTICE", flid, 42, 7, instant, 3, value)


def settings(text: str | None, tmp_path: Path) -> dict[str, Any]:
    flags: dict[str, str | None] = {"kafka.bootstrap": "b1:9092,b2:9092", "kafka.message_timeout_ms": "7000"}
    if text is not None:
        file = tmp_path / "k.properties"
        file.write_text(text, encoding="utf-8")
        flags["kafka.properties"] = str(file)
    return producer_settings(load_config(overrides=flags, environ={}))


def refused(text: str, tmp_path: Path) -> str:
    with pytest.raises(MsgxError) as e:
        settings(text, tmp_path)
    assert e.value.exit_code is ExitCode.CONFIG
    assert e.value.hint
    return str(e.value)


def test_what_delivery_rests_on_is_forced(tmp_path: Path) -> None:
    made = settings(None, tmp_path)
    assert {name: made[name] for name in FORCED} == FORCED
    assert (made["bootstrap.servers"], made["message.timeout.ms"]) == ("b1:9092,b2:9092", 7000)


def test_the_properties_file_passes_through(tmp_path: Path) -> None:
    made = settings(
        "# broker of the airport\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b c\n  compression.type=zstd\n",
        tmp_path,
    )
    assert (made["security.protocol"], made["sasl.password"], made["compression.type"]) == ("SASL_SSL", "a=b c", "zstd")
    assert made["acks"] == "all"


@pytest.mark.parametrize(
    "line",
    [
        "acks=1",
        "acks=all",
        "request.required.acks=0",
        "enable.idempotence=false",
        "max.in.flight.requests.per.connection=5",
        "max.in.flight=5",
        "message.timeout.ms=1",
        "delivery.timeout.ms=1",
        "enable.gapless.guarantee=false",
        "queuing.strategy=lifo",
        "partitioner=random",
        "transactional.id=x",
        "bootstrap.servers=x:1",
        "metadata.broker.list=x:1",
        "stats_cb=1",
        "delivery.report.only.error=true",
        "logger=x",
    ],
)
def test_forced_settings_are_refused(line: str, tmp_path: Path) -> None:
    text = refused(f"client.id=x\n{line}\n", tmp_path)
    assert "kafka.properties" in text
    assert f"line 2: {line.partition('=')[0]} is not yours to set" in text


@pytest.mark.parametrize("line", ["sasl.password", "s3cret", "=s3cret", "Sasl Password=s3cret"])
def test_lines_that_are_none_are_refused_without_repeating_them(line: str, tmp_path: Path) -> None:
    text = refused(line, tmp_path)
    assert "line 1: not name=value" in text
    assert "s3cret" not in text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    config = load_config(overrides={"kafka.properties": str(tmp_path / "none")}, environ={})
    with pytest.raises(MsgxError, match="none cannot be read: No such file"):
        producer_settings(config)


@pytest.mark.parametrize("line", ["nosuch.prop=1", "socket.timeout.ms=1"])
def test_what_the_client_does_not_know_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(MsgxError, match=rf"setting {line.partition('=')[0]}"):
        KafkaSender(settings(line, tmp_path), TOPICS, SystemClock())


def test_what_the_client_refuses_is_named_without_its_value(tmp_path: Path) -> None:
    made = settings("sasl.mechanisms=s3cret\nsecurity.protocol=s3cret\n", tmp_path)
    with pytest.raises(MsgxError) as e:
        KafkaSender(made, TOPICS, SystemClock())
    assert e.value.exit_code is ExitCode.CONFIG
    assert "security.protocol" in str(e.value)
    assert "s3cret" not in str(e.value) + (e.value.hint or "")


def test_headers_are_text_and_values_canonical() -> None:
    one = event(5, {"b": "要客", "a": [1]})
    assert headers_of(one) == [
        ("event_id", b"5"),
        ("message_id", b"42"),
        ("state_version", b"7"),
        ("updated_at", b"2026-09-09T00:00:00.000001Z"),
        ("kind", b"NOTICE"),
        ("epoch", b"3"),
    ]
    assert headers_of(replace(one, redelivered=True)) == [*headers_of(one), ("redelivered", b"true")]
    assert value_of(one) == '{"a":[1],"b":"要客"}'.encode()
    assert value_of(event(5)) is None


def test_without_the_package_the_command_that_installs_it_is_named() -> None:
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from msgx_driver.errors import MsgxError\n"
        "try: import msgx_driver.kafka\n"
        "except MsgxError as e: print(int(e.exit_code), e, e.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 the client of Kafka is not installed")
    assert "pip install 'msgx-driver[service]'" in done.stdout


def log_record(text: str, at: float) -> logging.LogRecord:
    record = logging.LogRecord("x", logging.ERROR, "", 0, text, None, None)
    record.created = at
    return record


def test_the_log_of_the_client_stays_readable() -> None:
    quiet = logging.getLogger("msgx_driver.kafka.client").filters[0]
    assert isinstance(quiet, logging.Filter)
    start = time.time() + 1000
    kept = [at for at in range(0, 130, 10) if quiet.filter(log_record("FAIL [x] Connect refused", start + at))]
    assert kept == [0, 60, 120]
    assert not quiet.filter(log_record("CONFWARN [x] experimental", start))
    fatal = log_record("FATAL [x] Gap-less ordering", start)
    assert quiet.filter(fatal)
    assert fatal.levelno == logging.INFO
    assert quiet.filter(log_record("PARTCNT [x] other", start))


def test_a_refused_login_is_named_as_the_reason(tmp_path: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    made = settings("security.protocol=ssl\n", tmp_path)
    made |= {"bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}"}
    with closing(server), closing(KafkaSender(made, TOPICS, SystemClock())) as sender:
        answering = threading.Thread(target=answer_plainly, args=(server,), daemon=True)
        answering.start()
        result = sender.send_all([event(1)], ordered=True, deadline=FAR)
    assert result.delivered == []
    assert result.target_error is not None
    assert result.target_error.startswith("_SSL: ")


def answer_plainly(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                # An answer that the client finds while it still says hello counts as a lost connection, not as refused.
                connection.recv(1)
                time.sleep(0.1)
                connection.sendall(b"no TLS here\n")


# -- against the cluster that the client library itself pretends


@pytest.fixture
def new_sender(tmp_path: Path) -> Iterator[Callable[..., KafkaSender]]:
    opened: list[KafkaSender] = []

    def make(**more: Any) -> KafkaSender:
        given = {name.replace("_", "."): value for name, value in more.items()}
        made = settings(None, tmp_path) | {"test.mock.num.brokers": 1, "allow.auto.create.topics": True} | given
        opened.append(KafkaSender(made, TOPICS, SystemClock()))
        return opened[-1]

    yield make
    for sender in opened:
        sender.close()


def test_every_report_is_awaited(new_sender: Callable[..., KafkaSender]) -> None:
    result = new_sender().send_all([event(i, {"n": i}) for i in range(200)], ordered=True, deadline=FAR)
    assert [e.event_id for e in result.delivered] == list(range(200))
    assert (result.failed, result.target_error) == ([], None)


def test_a_full_local_queue_is_back_pressure(new_sender: Callable[..., KafkaSender]) -> None:
    sender = new_sender(queue_buffering_max_messages=5)
    result = sender.send_all([event(i, {"n": i}) for i in range(100)], ordered=True, deadline=FAR)
    assert sorted(e.event_id for e in result.delivered) == list(range(100))


def test_nothing_is_handed_over_after_the_deadline(new_sender: Callable[..., KafkaSender]) -> None:
    clock = SystemClock()
    result = new_sender().send_all([event(1)], ordered=True, deadline=clock.monotonic() - 1)
    assert (result.delivered, result.failed, result.target_error) == ([], [], None)


@pytest.mark.parametrize(("ordered", "delivered"), [(True, [0, 1, 2]), (False, [0, 1, 2, 4, 5])])
def test_a_record_too_large_for_the_client(
    new_sender: Callable[..., KafkaSender], ordered: bool, delivered: list[int]
) -> None:
    events = [event(i, {"n": "x" * (5000 if i == 3 else 5)}) for i in range(6)]
    result = new_sender(message_max_bytes=2000).send_all(events, ordered=ordered, deadline=FAR)
    assert [e.event_id for e in result.delivered] == delivered
    assert [(e.event_id, error) for e, error in result.failed] == [(3, "MSG_SIZE_TOO_LARGE")]
    assert result.target_error is None
