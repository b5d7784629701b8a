"""The service end to end: relay beside a bare producer, latency from mailbox to Kafka, and who keeps up with whom."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from confluent_kafka import Producer

from bench import load
from bench.ground import Ground, query
from bench.model import Bar, Figure, Sample
from bench.registry import row
from msgx_driver.clock import wait_until
from msgx_driver.config import load_config
from msgx_driver.kafka import KafkaSender, headers_of, producer_settings, value_of
from msgx_driver.loops.relay import Relay
from msgx_driver.store import Event
from msgx_driver.wire.canonical import canonical_json
from tests.service.conftest import Services
from tests.service.world import World
from tests.services.kafka import KafkaServer
from tests.services.mariadb import MariaDbServer

BATCH = 500
LONGEST = 50_000_000
SETTLE_SECONDS = 300.0
PLANS = (1500, 10_000)


@row("relay_10000")
def relay_10000(ground: Ground) -> list[Figure]:
    """A STATE of each flight through claim, broker and confirmation, beside reading and producing the same bytes."""
    flights = ground.pick(10_000, 2_000)
    with ground.airport("relay", flights) as airport, KafkaServer() as broker:
        topics = {"KAFKA:schd": "bench.schd", "KAFKA:msg": "bench.msg"}
        for topic in topics.values():
            broker.create_topic(topic)
        settings = producer_settings(load_config(environ={"MSGX_KAFKA__BOOTSTRAP": broker.bootstrap}))
        sender = KafkaSender(settings, topics, ground.clock)
        relay = Relay(airport.store, sender, ground.clock, lease_seconds=60, message_timeout=30, batch=BATCH)
        token = uuid.UUID(int=2)
        events: list[Event] = []

        def again() -> None:
            airport.conn.execute(query("nothing_sent"))
            airport.vacuum(["msg_event", "delivery_target"])

        def product(run: int) -> float:
            again()
            started = ground.clock.monotonic()
            sent = 0
            while done := relay.step():
                sent += done
            seconds = ground.clock.monotonic() - started
            assert sent == flights, sent
            return seconds

        def reference(run: int) -> float:
            producer = Producer(settings)
            producer.list_topics(topics["KAFKA:schd"], timeout=10)
            started = ground.clock.monotonic()
            values = [canonical_json(state).encode() for state in airport.store.projections()]
            for event, value in zip(events, values, strict=True):
                producer.produce(topics["KAFKA:schd"], key=event.flid, value=value, headers=headers_of(event))
                producer.poll(0)
            assert producer.flush(60) == 0
            return ground.clock.monotonic() - started

        again()
        events = airport.store.claim_events("KAFKA:schd", token, limit=10_000, lease_seconds=60) or []
        events.sort(key=lambda event: event.flid)
        assert len(events) == flights
        size = sum(len(value_of(event) or b"") for event in events)
        airport.store.release_target("KAFKA:schd", token)
        product(0)
        reference(0)
        seconds, floor = ground.interleave(product, reference)
        sender.close()
    return [
        Figure(
            "relay_10000",
            seconds,
            "s",
            floor,
            "the projection query plus a bare producer sending the same bytes, one after the other",
            Bar("<=", 1.5),
            f"{flights} STATE events, {size / 1e6:.0f} MB, Apache Kafka on this machine",
        )
    ]


@contextlib.contextmanager
def _service(ground: Ground, name: str) -> Iterator[World]:
    """A running service on a database of its own, with its mailbox and its broker."""
    with (
        ground.empty(name) as dsn,
        MariaDbServer() as mailbox,
        KafkaServer() as broker,
        tempfile.TemporaryDirectory(prefix="msgx-bench-") as folder,
    ):
        mailbox.reset(binary=True)
        topics = ("bench.schd", "bench.msg")
        for topic in topics:
            broker.create_topic(topic)
        services = Services(Path(folder), [])
        world = World(dsn, mailbox, broker, services, topics, catch_up_depth=200)
        world.connect()
        # A plan of 10 000 flights is longer than either side takes by default.
        world.value(f"select set_setting('wire.max_bytes', '{LONGEST}', null)")
        with mailbox.connect_admin() as admin, admin.cursor() as cursor:
            cursor.execute("set global max_allowed_packet = %s", (2 * LONGEST,))
        service = world.start()
        try:
            service.wait_for("this session is the writer now")
            yield world
            assert service.end() == 0
        finally:
            service.process.kill()
            service.process.wait()
            world.close()


def _put(world: World, payloads: Iterable[bytes]) -> None:
    with world.mailbox.connect() as conn, conn.cursor() as cursor:
        # One transaction: else the flushes of the mailbox would set the pace.
        conn.begin()
        for payload in payloads:
            cursor.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (payload,))
        conn.commit()


def _settle(ground: Ground, world: World) -> float:
    """Seconds until everything is delivered and marked."""
    started = ground.clock.monotonic()
    wait_until(world.settled, timeout=SETTLE_SECONDS, clock=ground.clock, interval=0.02, what="the service to settle")
    return ground.clock.monotonic() - started


@row("service_latency")
def service_latency(ground: Ground) -> list[Figure]:
    """Seconds from the commit in the mailbox to the broker's report: idle, and behind a plan that came just before."""
    flights, singles = 1500, ground.pick(200, 50)
    behind = []
    with _service(ground, "service_latency") as world:
        _put(world, [load.plan(flights, 1, version=0)])
        _settle(ground, world)
        number = 2
        idle = []
        for payload in load.events(singles, flights, number, seed=number):
            idle.append(_one(ground, world, number, payload))
            number += 1
        for size in PLANS[: ground.pick(2, 1)]:
            found = []
            for run in range(ground.runs):
                plan = load.plan(size, number, version=run + 1)
                (event,) = load.events(1, flights, number + 1, seed=number)
                _put(world, [plan])
                found.append(_one(ground, world, number + 1, event))
                number += 2
                _settle(ground, world)
            behind.append((size, len(plan), Sample(tuple(found))))
    idle.sort()
    figures = [
        Figure("service_latency_p50", Sample((idle[len(idle) // 2],)), "s", note=f"idle, {singles} messages"),
        Figure("service_latency_p99", Sample((idle[min(len(idle) * 99 // 100, len(idle) - 1)],)), "s", note="idle"),
    ]
    for size, length, sample in behind:
        figures.append(
            Figure(
                f"service_behind_{size}", sample, "s", note=f"behind a plan of {size} flights, {length / 1e6:.1f} MB"
            )
        )
    return figures


def _one(ground: Ground, world: World, message_id: int, payload: bytes) -> float:
    """Put one message into the mailbox; seconds from its commit until its notice is confirmed."""
    _put(world, [payload])
    started = ground.clock.now()
    sent = f"select max(sent_at) from msg_event where message_id = {message_id} and target = 'KAFKA:msg'"
    wait_until(
        lambda: world.value(sent),
        timeout=SETTLE_SECONDS,
        clock=ground.clock,
        interval=0.002,
        what="the notice to be sent",
    )
    return float((world.value(sent) - started).total_seconds())


@row("service_sustained")
def service_sustained(ground: Ground) -> list[Figure]:
    """A backlog in the mailbox through all loops at once: relay and backfill end with the pump, or later."""
    count, flights = ground.pick(20_000, 3_000), 1500
    with _service(ground, "service_sustained") as world:
        _put(world, [load.plan(flights, 1, version=0)])
        _settle(ground, world)
        first = world.value("select max(event_id) + 1 from msg_event")
        _put(world, load.events(count, flights, 2, seed=2))
        _settle(ground, world)
        pump, relay, backfill = (
            float(world.value(f"select extract(epoch from max({column}) - min({begin})) from {table} where {which}"))
            for column, begin, table, which in (
                ("processed_at", "processed_at", "proc_state", "message_id > 1"),
                ("sent_at", "created_at", "msg_event", f"event_id >= {first}"),
                ("backfilled_at", "processed_at", "proc_state", "message_id > 1"),
            )
        )
    pumped = Sample((count / pump,))
    return [
        Figure("service_pump", pumped, "messages/s", note=f"{count} messages from the mailbox, all loops at once"),
        Figure(
            "service_relay", Sample((count / relay,)), "messages/s", pumped, "the pump in the same run", Bar(">=", 0.98)
        ),
        Figure(
            "service_backfill",
            Sample((count / backfill,)),
            "messages/s",
            pumped,
            "the pump in the same run",
            Bar(">=", 0.98),
        ),
    ]
