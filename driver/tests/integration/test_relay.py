"""The relay against a real PostgreSQL and a real Apache Kafka, seen by a reader of its own (US-07, D39)."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from jsonschema import Draft202012Validator

from msgx_driver import kafka as kafka_adapter
from msgx_driver.clock import Clock, SystemClock, wait_until
from msgx_driver.config import Config, load_config
from msgx_driver.consumer import FlightStates, schemas
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.generate import generate_day, write_day
from msgx_driver.kafka import Delivery, KafkaSender, Sender, producer_settings
from msgx_driver.loops.relay import TARGETS, Relay, open_relay
from msgx_driver.migrate import migrate_up
from msgx_driver.replay import InputMessage, read_inputs, replay
from msgx_driver.store import Event, Store
from msgx_driver.wire.canonical import canonical_json
from tests.services.kafka import KafkaServer, RawRecord

LEASE = 4
MESSAGE_TIMEOUT = 2.0
PATIENCE = 60.0


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Sequence[InputMessage]:
    folder = tmp_path_factory.mktemp("day")
    write_day(generate_day(40, 7), folder)
    return read_inputs([str(folder / "day.jsonl")], io.BytesIO())


@dataclass
class Scene:
    """One airport and its two topics."""

    dsn: str
    broker: KafkaServer
    topics: dict[str, str]
    open: ExitStack
    clock: Clock = field(default_factory=SystemClock)

    def store(self) -> Store:
        return self.open.enter_context(Store.open(self.dsn, "msgx"))

    def config(self) -> Config:
        flags: dict[str, str | None] = {
            "database.dsn": self.dsn,
            "kafka.bootstrap": self.broker.bootstrap,
            "kafka.message_timeout_ms": str(int(MESSAGE_TIMEOUT * 1000)),
            "kafka.topic_schd": self.topics["KAFKA:schd"],
            "kafka.topic_msg": self.topics["KAFKA:msg"],
        }
        return load_config(overrides=flags, environ={})

    def sender(self) -> KafkaSender:
        sender = KafkaSender(producer_settings(self.config()), self.topics, self.clock)
        self.open.callback(sender.close)
        return sender

    def relay(self, sender: Sender | None = None, batch: int = 500) -> Relay:
        return Relay(
            self.store(),
            sender or self.sender(),
            self.clock,
            lease_seconds=LEASE,
            message_timeout=MESSAGE_TIMEOUT,
            batch=batch,
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True, options="-c search_path=msgx") as conn:
            return conn.execute(query.encode()).fetchall()

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True, options="-c search_path=msgx") as conn:
            conn.execute(statement.encode())

    def play(self, messages: Sequence[InputMessage], *, append: bool = False) -> None:
        replay(self.store(), self.clock, messages, append=append)

    def pending(self) -> int:
        return int(self.rows("select count(*) from msg_event where status = 'PENDING'")[0][0])

    def drain(self, relay: Relay) -> None:
        def empty() -> bool:
            relay.step()
            return self.pending() == 0

        wait_until(empty, timeout=PATIENCE, clock=self.clock, what="the outbox to be empty")

    def records(self, target: str) -> list[RawRecord]:
        return self.broker.read([self.topics[target]])

    def folded(self) -> FlightStates:
        states = FlightStates()
        for record in self.records("KAFKA:schd"):
            assert record.key is not None
            states.apply(record.key, record.value, record.headers)
        return states

    def check_all_arrived(self) -> None:
        """The independent reader's view equals the tables, notices in order, nothing lost."""
        projections = {p["FLID"]: p for p in self.store().projections()}
        assert dict(self.folded()) == projections
        notices = self.records("KAFKA:msg")
        wanted = {
            i for (i,) in self.rows("select event_id from msg_event where target = 'KAFKA:msg' and status = 'SENT'")
        }
        assert {event_id(r) for r in notices} == wanted
        for partition in {r.partition for r in notices}:
            first_seen = list(dict.fromkeys(event_id(r) for r in notices if r.partition == partition))
            assert first_seen == sorted(first_seen)
        for target in TARGETS:
            by_key: dict[bytes | None, set[int]] = {}
            for record in self.records(target):
                by_key.setdefault(record.key, set()).add(record.partition)
            assert all(len(partitions) == 1 for partitions in by_key.values())


def event_id(record: RawRecord) -> int:
    return int(record.headers["event_id"])


@pytest.fixture
def new_scene(pg_server: Any) -> Iterator[Callable[..., Scene]]:
    with ExitStack() as stack:

        def make(broker: KafkaServer, **topic_settings: str) -> Scene:
            dsn = pg_server.new_database()
            with psycopg.connect(dsn, autocommit=True) as conn:
                migrate_up(conn, "msgx")
            name = uuid.uuid4().hex[:12]
            topics = {"KAFKA:schd": f"t{name}.schd", "KAFKA:msg": f"t{name}.msg"}
            for topic in topics.values():
                broker.create_topic(topic, 3, **topic_settings)
            return Scene(dsn, broker, topics, stack)

        yield make


@pytest.fixture
def scene(new_scene: Callable[..., Scene], kafka: KafkaServer) -> Scene:
    return new_scene(kafka)


def test_a_day_arrives_once_in_order_and_complete(scene: Scene, day: Sequence[InputMessage]) -> None:
    scene.play(day)
    with open_relay(scene.store(), scene.config(), scene.clock) as relay:
        scene.drain(relay)
        assert relay.step() == 0
        relay.release()
    assert scene.rows("select distinct status from msg_event") == [("SENT",)]
    assert scene.rows("select count(lease_token), count(blocked_since), sum(failures) from delivery_target") == [
        (0, 0, 0)
    ]
    scene.check_all_arrived()
    notices = [event_id(r) for r in scene.records("KAFKA:msg")]
    assert len(notices) == len(set(notices)) > 400
    check = {name: Draft202012Validator(schema) for name, schema in schemas().items()}
    for record in scene.records("KAFKA:msg") + scene.records("KAFKA:schd"):
        check["headers"].validate({name: value.decode() for name, value in record.headers.items()})
        value = None if record.value is None else json.loads(record.value)
        check[record.headers["kind"].decode().lower()].validate(value)
        assert value is None or record.value == canonical_json(value).encode()
        assert record.key is not None
        assert value is None or value["FLID"] == record.key.decode()


def test_null_tombstones(scene: Scene, day: Sequence[InputMessage]) -> None:
    scene.store().set_setting("kafka.tombstone", "null")
    scene.play(day)
    scene.drain(scene.relay())
    graves = [r for r in scene.records("KAFKA:schd") if r.headers["kind"] == b"TOMBSTONE"]
    assert graves
    assert {r.value for r in graves} == {None}
    scene.check_all_arrived()


class Killed(BaseException):
    """Ends a relay as kill -9 does: nothing after it runs."""


class DiesAfter:
    """Delivers for real; then the process is gone before it can confirm."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        assert self._sender.send_all(events, ordered=ordered, deadline=deadline).delivered
        raise Killed


def test_a_lost_confirmation_is_sent_again_under_the_same_ids(scene: Scene, day: Sequence[InputMessage]) -> None:
    scene.play(day[:200])
    first = scene.relay(DiesAfter(scene.sender()), batch=50)
    with pytest.raises(Killed):
        first.step()
    sent = [event_id(r) for r in scene.records("KAFKA:msg")]
    assert len(sent) == 50
    # The dead one's lease runs out by itself; until then nobody else delivers.
    second = scene.relay()
    second.step()
    assert [event_id(r) for r in scene.records("KAFKA:msg")] == sent
    scene.drain(second)
    again = [event_id(r) for r in scene.records("KAFKA:msg")]
    assert sorted(again) == sorted(sent + sorted(set(again)))
    scene.check_all_arrived()


class Paused:
    """Stands still after its claim until another relay has taken over, and only then goes on."""

    def __init__(self, sender: Sender, meanwhile: Callable[[], object]) -> None:
        self._sender = sender
        self._meanwhile = meanwhile
        self.result: Delivery | None = None

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        self._meanwhile()
        self.result = self._sender.send_all(events, ordered=ordered, deadline=deadline)
        return self.result


def test_a_relay_paused_past_its_lease_neither_delivers_nor_confirms(scene: Scene, day: Sequence[InputMessage]) -> None:
    scene.play(day[:100])
    other = scene.relay()
    paused = Paused(scene.sender(), lambda: scene.drain(other))
    assert scene.relay(paused).step() == 0
    assert paused.result == Delivery()
    notices = [event_id(r) for r in scene.records("KAFKA:msg")]
    assert len(notices) == len(set(notices))
    scene.check_all_arrived()


class Late:
    """Says that all was delivered, after another relay has taken over."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def send_all(self, events: Sequence[Event], *, ordered: bool, deadline: float) -> Delivery:
        self._meanwhile()
        return Delivery(delivered=list(events))


def test_a_result_that_comes_after_the_lease_is_dropped(
    scene: Scene, day: Sequence[InputMessage], caplog: pytest.LogCaptureFixture
) -> None:
    scene.play(day[:100])
    other = scene.relay(batch=1)

    def taken() -> bool:
        other.step()
        return scene.rows(f"select count(*) from delivery_target where lease_token = '{other.token}'") == [(2,)]

    def take_over() -> None:
        wait_until(taken, timeout=PATIENCE, clock=scene.clock, what="the take-over")

    with caplog.at_level(logging.WARNING, logger="msgx_driver"):
        assert scene.relay(Late(take_over)).step() == 0
    assert "the lease went to another relay" in caplog.text
    # What is booked is what the other one delivered, record by record.
    sent = scene.rows("select count(*) from msg_event where target = 'KAFKA:msg' and status = 'SENT'")
    assert sent == [(len(scene.records("KAFKA:msg")),)]


def test_a_second_relay_stands_by_and_takes_over_at_a_release(scene: Scene, day: Sequence[InputMessage]) -> None:
    scene.play(day[:100])
    first, second = scene.relay(batch=5), scene.relay()
    assert first.step() > 0
    assert second.step() == 0
    first.release()
    scene.drain(second)
    assert first.step() == 0
    scene.check_all_arrived()


def test_an_outage_blocks_and_exhausts_nothing(
    new_scene: Callable[..., Scene], local_kafka: KafkaServer, day: Sequence[InputMessage]
) -> None:
    scene = new_scene(local_kafka)
    relay = scene.relay(batch=100)
    scene.play(day[:200])
    assert relay.step() > 0
    local_kafka.stop()
    try:

        def blocked() -> bool:
            relay.step()
            return scene.rows("select 1 from delivery_target where blocked_since is null and target <> 'MAILBOX'") == []

        wait_until(blocked, timeout=PATIENCE, clock=scene.clock, what="both targets to be blocked")
        assert scene.rows(
            "select min(failures) > 0, bool_and(last_error is not null) from delivery_target where target like 'KAFKA%'"
        ) == [(True, True)]
        assert scene.rows("select max(attempts) from msg_event") == [(0,)]
    finally:
        local_kafka.start()
    scene.drain(relay)
    assert scene.rows("select count(blocked_since), sum(failures) from delivery_target") == [(0, 0)]
    assert scene.rows("select distinct status, attempts from msg_event") == [("SENT", 0)]
    scene.check_all_arrived()


def test_a_killed_broker_loses_nothing(
    new_scene: Callable[..., Scene], local_kafka: KafkaServer, day: Sequence[InputMessage]
) -> None:
    scene = new_scene(local_kafka)
    relay = scene.relay(batch=20)
    scene.play(day[:300])
    assert relay.step() > 0
    local_kafka.kill()
    local_kafka.start()
    scene.drain(relay)
    scene.check_all_arrived()


def test_a_record_that_is_too_large_ends_dead_and_the_rest_goes_on(
    new_scene: Callable[..., Scene], kafka: KafkaServer, day: Sequence[InputMessage]
) -> None:
    scene = new_scene(kafka, max_message_bytes="20000")
    for name, value in (("delivery.max_attempts", "2"), ("delivery.backoff_base", "1"), ("delivery.backoff_cap", "1")):
        scene.store().set_setting(name, value)
    scene.play(day[:150])
    busiest = "select flid from msg_event where target = 'KAFKA:msg' group by flid order by count(*) desc, flid limit 1"
    notices = scene.rows(f"select event_id from msg_event where target = 'KAFKA:msg' and flid = ({busiest}) order by 1")
    (before,), (guilty,), *_ = notices
    scene.execute(
        "update msg_event set payload = payload || jsonb_build_object('PAD',"
        f" (select string_agg(md5(i::text), '') from generate_series(1, 2000) i)) where event_id = {guilty}"
    )
    flid = scene.rows("select flid from flight_schd order by flid desc limit 1")[0][0]
    scene.execute(
        f"update flight_schd set vipf_text = (select string_agg(md5(i::text), '') from generate_series(1, 900) i)"
        f" where flid = '{flid}'"
    )
    relay = scene.relay()

    def tried_once() -> bool:
        relay.step()
        found = scene.rows(f"select attempts, status, last_error from msg_event where event_id = {guilty}")
        return found == [(1, "PENDING", "MSG_SIZE_TOO_LARGE")]

    wait_until(tried_once, timeout=PATIENCE, clock=scene.clock, what="the first attempt")
    # What follows it in its partition waits for it.
    assert [r for r in scene.records("KAFKA:msg") if event_id(r) == before]
    held = {i for (i,) in notices[1:]}
    assert not [r for r in scene.records("KAFKA:msg") if event_id(r) in held]
    scene.drain(relay)
    assert scene.rows(
        "select distinct target, kind, flid from msg_event where status = 'DEAD' and target = 'KAFKA:schd'"
    ) == [("KAFKA:schd", "STATE", flid)]
    assert scene.rows("select event_id from msg_event where status = 'DEAD' and target = 'KAFKA:msg'") == [(guilty,)]
    assert scene.rows("select count(blocked_since) from delivery_target") == [(0,)]
    assert {event_id(r) for r in scene.records("KAFKA:msg")} >= held - {guilty}
    # A newer state of the flight closes what had been given up.
    scene.execute(f"update flight_schd set vipf_text = null where flid = '{flid}'")
    line = (
        "<MSG><META><SNDR>AODB</SNDR><SEQN>900001</SEQN><DTTM>20260909230000</DTTM><TYPE>FLOP</TYPE><STYP>RENO</STYP>"
        f"</META><FLOP><FLID>{flid}</FLID><RENO>B9999</RENO></FLOP></MSG>"
    )
    scene.play([InputMessage(None, line.encode(), "bytes", "test")], append=True)
    scene.drain(relay)
    assert scene.rows("select count(*) from msg_event where status = 'DEAD' and target = 'KAFKA:schd'") == [(0,)]
    assert dict(scene.folded()) == {p["FLID"]: p for p in scene.store().projections()}
    # A notice is sent again by an operator only, under its id and marked (D39).
    scene.execute(f"update msg_event set payload = payload - 'PAD' where event_id = {guilty}")
    assert scene.store().redeliver_events([guilty], operator="li.wei", reason="it is small enough now") == 1
    scene.drain(relay)
    marked = [event_id(r) for r in scene.records("KAFKA:msg") if r.headers.get("redelivered") == b"true"]
    assert marked == [guilty]
    assert scene.rows(f"select status from msg_event where event_id = {guilty}") == [("SENT",)]


def test_a_missing_topic_is_named_at_the_start(scene: Scene) -> None:
    config = scene.config()
    missing = load_config(
        overrides={"kafka.bootstrap": config.kafka.bootstrap, "kafka.topic_msg": "no.such"}, environ={}
    )
    with (
        pytest.raises(MsgxError, match=r"topic \S+ is not there") as e,
        open_relay(scene.store(), missing, scene.clock),
    ):
        pass
    # Somebody may make it any time: the loop tries again, and does not end the service.
    assert e.value.exit_code is ExitCode.UNREACHABLE
    assert "--create --topic msgx.schd --config cleanup.policy=compact" in (e.value.hint or "")


def test_an_unreachable_broker_is_no_reason_not_to_start(
    scene: Scene, day: Sequence[InputMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_adapter, "CHECK_SECONDS", 1.0)
    scene.play(day[:30])
    nowhere = load_config(overrides={"kafka.bootstrap": "127.0.0.1:1", "kafka.message_timeout_ms": "2000"}, environ={})
    with open_relay(scene.store(), nowhere, scene.clock) as relay:
        assert relay.step() == 0
        relay.release()
    assert scene.rows("select count(blocked_since) from delivery_target") == [(2,)]
    assert scene.rows("select max(attempts) from msg_event") == [(0,)]
    scene.drain(scene.relay())
    scene.check_all_arrived()


def test_the_schema_of_states_names_every_tag(scene: Scene) -> None:
    known = set(schemas()["state"]["properties"])
    for tag, field_spec in scene.store().catalogue().items():
        if field_spec.kind == "scalar":
            continue
        assert tag in known
        if field_spec.attrs:
            schema = schemas()["state"]["properties"][tag]
            assert set(schema.get("items", schema)["properties"]) == set(field_spec.attrs)


def test_every_golden_and_scenario_event_fits_its_schema(scene: Scene) -> None:
    tests = Path(__file__).resolve().parents[1]
    golden = [json.loads(p.read_text("utf-8")) for p in sorted((tests / "golden").glob("*.json"))]
    scenarios = [json.loads(p.read_text("utf-8"))["steps"] for p in sorted((tests / "scenarios").glob("*.json"))]
    texts = [[*sample["given"], *(case["send"] for case in sample["cases"])] for sample in golden]
    texts += [[step["message"] for step in steps if "message" in step] for steps in scenarios]
    check = {name: Draft202012Validator(schema) for name, schema in schemas().items()}
    store = scene.store()
    kinds: dict[str, int] = {}
    for group in texts:
        # Samples use the same numbers and flights: identities are forgotten between them, flights go on.
        scene.execute("truncate message_identity")
        replay(store, scene.clock, [InputMessage(None, t.encode(), "bytes", "test") for t in group], append=True)
        events = store.preview_events()
        scene.execute("update msg_event set status = 'SENT'")
        for event in events:
            check[event["kind"].lower()].validate(event["value"])
            kinds[event["kind"]] = kinds.get(event["kind"], 0) + 1
    assert set(kinds) == {"NOTICE", "STATE", "TOMBSTONE"}


def test_the_example_of_the_documents_runs(scene: Scene, day: Sequence[InputMessage], tmp_path: Path) -> None:
    document = Path(__file__).resolve().parents[3] / "docs" / "consumers.md"
    found = re.search(r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    program = tmp_path / "board.py"
    program.write_text(found[1], encoding="utf-8")
    scene.play(day)
    scene.drain(scene.relay())
    arguments = [sys.executable, str(program), scene.broker.bootstrap, scene.topics["KAFKA:schd"]]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == f"{len(scene.store().projections())} flights"


PRODUCER = """
import sys
from msgx_driver.clock import SystemClock
from msgx_driver.kafka import KafkaSender, producer_settings
from msgx_driver.config import load_config
from msgx_driver.store import Event

bootstrap, topic = sys.argv[1:]
flags = {"kafka.bootstrap": bootstrap, "kafka.message_timeout_ms": "3000"}
sender = KafkaSender(producer_settings(load_config(overrides=flags, environ={})), {"KAFKA:msg": topic}, SystemClock())
sender.check()
wait_for_reports = sender._await

def all_handed_over(*arguments):
    print("queued", flush=True)
    wait_for_reports(*arguments)

sender._await = all_handed_over
print("ready", flush=True)
sys.stdin.readline()
events = [Event("KAFKA:msg", i, "NOTICE", f"F{i}", 1, 1, "2026-09-09T00:00:00.000000Z", 1, {}) for i in range(1, 51)]
result = sender.send_all(events, ordered=True, deadline=float("inf"))
print(len(result.delivered), result.target_error, flush=True)
"""


def test_what_a_paused_process_still_holds_is_not_let_go(
    new_scene: Callable[..., Scene], local_kafka: KafkaServer
) -> None:
    scene = new_scene(local_kafka)
    arguments = [sys.executable, "-c", PRODUCER, local_kafka.bootstrap, scene.topics["KAFKA:msg"]]
    child = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        local_kafka.kill()
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "queued\n"
        # Handed over to the client library, which finds no broker; then the whole process stands still.
        child.send_signal(signal.SIGSTOP)
        stopped = scene.clock.monotonic()
        local_kafka.start()
        wait_until(
            lambda: scene.clock.monotonic() > stopped + 3.5, timeout=PATIENCE, clock=scene.clock, what="the timeout"
        )
        child.send_signal(signal.SIGCONT)
        delivered, _, error = child.stdout.readline().strip().partition(" ")
        assert delivered == "0"
        assert error != "None"
        child.wait(PATIENCE)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
    assert scene.records("KAFKA:msg") == []
