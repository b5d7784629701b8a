"""The service killed and cut off in the middle of a day: nothing lost, nothing doubled (US-01, US-03, US-07, US-09).

`MSGX_TEST_SERVICE_KILLS`, `_STOPS` (of PostgreSQL), `_OUTAGES` (of mailbox and broker, each), `_CUTS` (of all
sessions) and `_JUMPS` (of the clock) are the numbers; `make chaos` sets 300, 40, 10, 40 and 40. The mailbox is written
while all this goes on, with lower ids that commit late and ids that never come. A moment is a number of finished, sent
or marked messages, drawn from a fixed seed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from msgx_driver.embedded import embedded_server
from msgx_driver.generate import MIN_FLIGHTS, generate_day
from tests.service.conftest import Running, Services, eventually
from tests.service.world import World, day_bytes

from .conftest import Toll

KILLS = int(os.environ.get("MSGX_TEST_SERVICE_KILLS", "60"))
STOPS = int(os.environ.get("MSGX_TEST_SERVICE_STOPS", "3"))
OUTAGES = int(os.environ.get("MSGX_TEST_SERVICE_OUTAGES", "1"))
JUMPS = int(os.environ.get("MSGX_TEST_SERVICE_JUMPS", "4"))
CUTS = int(os.environ.get("MSGX_TEST_SERVICE_CUTS", "4"))
PER_ROUND = 6
TIMEOUT = 120.0


@pytest.fixture
def world(pg_server: Any, local_mailbox: Any, local_kafka: Any, services: Services) -> Iterator[World]:
    """An installation on the servers of this run, with tables and topics of its own."""
    local_mailbox.reset(binary=True)
    name = uuid.uuid4().hex[:8]
    topics = (f"chaos.{name}.schd", f"chaos.{name}.msg")
    for topic in topics:
        local_kafka.create_topic(topic)
    made = World(pg_server.new_database(), local_mailbox, local_kafka, services, topics)
    made.install()
    yield made
    made.close()


class Feeder:
    """Writes a generated day into the mailbox, a few rows at a time, in ways that a busy mailbox shows."""

    def __init__(self, world: World, rows: int, seed: int, *, late: bool = True) -> None:
        self.world = world
        self.late = late
        self.chance = random.Random(seed)
        flights = max(rows // 14, MIN_FLIGHTS)
        self.messages = day_bytes(generate_day(flights, seed))
        assert all(self.messages)
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.messages) - self.at

    def write(self, count: int) -> None:
        """Write the next rows: in order, or with a lower id that commits late, or with ids that never come."""
        batch = self.messages[self.at : self.at + count]
        self.at += len(batch)
        way = self.chance.random()
        if self.late and way < 0.25 and len(batch) > 1:
            late = self.world.mailbox.connect()
            try:
                late.begin()
                insert(late, batch[:1])
                with self.world.mailbox.connect() as other:
                    insert(other, batch[1:])
                late.commit()
            finally:
                late.close()
            return
        if way < 0.4:
            with self.world.mailbox.connect() as gone:
                gone.begin()
                insert(gone, batch[:1] * self.chance.choice((1, 3)))
                gone.rollback()
        with self.world.mailbox.connect() as conn:
            insert(conn, batch)


def insert(conn: Any, payloads: list[bytes]) -> None:
    with conn.cursor() as cursor:
        for payload in payloads:
            cursor.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (payload,))


def moment(world: World, chance: random.Random) -> None:
    """Wait until a stage has gone on by a few: the pump, the relay or the backfill."""
    stage = chance.choice(("finished", "finished", "finished", "finished", "sent", "marked"))
    goal = world.progress()[stage] + chance.randint(1, PER_ROUND)

    def reached() -> bool:
        done = world.progress()
        # Nothing more will come of this round.
        return done[stage] >= goal or world.settled()

    eventually(reached, f"{goal} {stage}", TIMEOUT)


def test_kills_under_load(world: World, pg_server: Any, tolls: dict[str, Toll]) -> None:
    """kill -9 of the active service; a standby takes over each time, and another one is started in its place."""
    chance = random.Random(11)
    feeder = Feeder(world, KILLS * PER_ROUND, 11)
    toll = tolls["service kills"]
    running = [world.start("--standby"), world.start("--standby")]
    for _ in range(KILLS):
        feeder.write(max(feeder.left // max(KILLS - toll.crashes, 1), 1))
        moment(world, chance)
        active = writer_of(running)
        toll.unfinished += not world.settled()
        active.process.send_signal(signal.SIGKILL)
        active.process.wait(TIMEOUT)
        running.remove(active)
        running.append(world.start("--standby"))
        toll.crashes += 1
    feeder.write(feeder.left)
    world.wait_until_settled(TIMEOUT)
    for service in running:
        assert service.end() == 0
    book(toll, world.account(pg_server.new_database()))


def writer_of(running: list[Running]) -> Running:
    """The service that holds the write right, by what it says."""

    def found() -> Running | None:
        return next((s for s in running if s.said("this session is the writer now") and s.process.poll() is None), None)

    writer: Running = eventually(found, "a writer", TIMEOUT)
    return writer


def book(toll: Toll, counted: dict[str, int]) -> None:
    toll.lost += counted["lost"]
    toll.doubled += counted["doubled"]
    assert (counted["lost"], counted["doubled"]) == (0, 0)


def wait_for_more(world: World, finished: int) -> None:
    eventually(lambda: world.progress()["finished"] > finished, "messages without the broker", TIMEOUT)


def test_outages_of_mailbox_and_broker(world: World, pg_server: Any, tolls: dict[str, Toll]) -> None:
    """The servers at both ends stop and start again: the rest goes on, nothing is exhausted."""
    chance = random.Random(12)
    feeder = Feeder(world, OUTAGES * 40, 12)
    toll = tolls["outages"]
    service = world.start()
    rounds = 2 * OUTAGES
    for number in range(rounds):
        # A share is left for the last outage too.
        feeder.write(max(feeder.left // (rounds - number + 1), 1))
        moment(world, chance)
        toll.unfinished += not world.settled()
        if number % 2:
            world.broker.kill() if chance.random() < 0.5 else world.broker.stop()
            before = world.progress()["finished"]
            feeder.write(min(feeder.left, 3))
            wait_for_more(world, before)
            world.broker.start()
        else:
            world.mailbox.kill() if chance.random() < 0.5 else world.mailbox.stop()
            eventually(
                lambda: world.value("select failures > 0 from inbox_cursor"),
                "the poller to notice",
                TIMEOUT,
            )
            world.mailbox.start()
        toll.crashes += 1
    feeder.write(feeder.left)
    world.wait_until_settled(TIMEOUT)
    assert service.end() == 0
    book(toll, world.account(pg_server.new_database()))
    assert world.value("select count(*) from msg_event where status = 'DEAD'") == 0


def test_immediate_stops_of_the_database(
    local_mailbox: Any, local_kafka: Any, services: Services, pg_server: Any, tolls: dict[str, Toll]
) -> None:
    """What was committed late and taken back had not left; the service waits and goes on by itself."""
    local_mailbox.reset(binary=True)
    name = uuid.uuid4().hex[:8]
    topics = (f"chaos.{name}.schd", f"chaos.{name}.msg")
    for topic in topics:
        local_kafka.create_topic(topic)
    home = Path(tempfile.mkdtemp(prefix="msgx-c-"))
    home.chmod(0o711)
    server = embedded_server(home)
    chance = random.Random(13)
    toll = tolls["database stops"]
    try:
        with server:
            with psycopg.connect(server.dsn, autocommit=True) as conn:
                conn.execute("create database airport")
            world = World(make_conninfo(server.dsn, dbname="airport"), local_mailbox, local_kafka, services, topics)
            world.install()
            feeder = Feeder(world, STOPS * PER_ROUND, 13)
            service = world.start()
            for number in range(STOPS):
                feeder.write(max(feeder.left // (STOPS - number), 1))
                moment(world, chance)
                toll.unfinished += not world.settled()
                world.close()
                server.stop(mode="immediate")
                server.start()
                world.connect()
                toll.crashes += 1
            feeder.write(feeder.left)
            world.wait_until_settled(TIMEOUT)
            assert service.end() == 0
            book(toll, world.account(pg_server.new_database()))
            world.close()
    finally:
        server.remove()


def test_connections_cut_in_the_middle(world: World, pg_server: Any, tolls: dict[str, Toll]) -> None:
    """All sessions of the service end at once, in the middle of whatever they do: it connects again and goes on."""
    chance = random.Random(15)
    feeder = Feeder(world, CUTS * PER_ROUND, 15)
    toll = tolls["connections cut"]
    service = world.start()
    for number in range(CUTS):
        feeder.write(max(feeder.left // (CUTS - number), 1))
        moment(world, chance)
        toll.unfinished += not world.settled()
        world.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'msgx-driver'"
        )
        toll.crashes += 1
    feeder.write(feeder.left)
    world.wait_until_settled(TIMEOUT)
    assert service.end() == 0
    book(toll, world.account(pg_server.new_database()))


# A whole service whose clock is off by the seconds in a file.
JUMPING_CLOCK = """
import sys
from datetime import timedelta
from pathlib import Path
from msgx_driver import clock
offset, honest = Path(sys.argv.pop(1)), clock.SystemClock.now
clock.SystemClock.now = lambda self: honest(self) + timedelta(seconds=float(offset.read_text()))
from msgx_driver.cli import main
main()
"""


def test_clock_jumps(world: World, pg_server: Any, tmp_path: Path, tolls: dict[str, Toll]) -> None:
    """The clock of the driver jumps by up to two hours, both ways: nothing waits for it, nothing is lost.

    No row commits late here: a jump forward may end the wait for it, and that is what D29 is for.
    """
    chance = random.Random(16)
    feeder = Feeder(world, JUMPS * PER_ROUND, 16, late=False)
    toll = tolls["clock jumps"]
    offset, program = tmp_path / "offset", tmp_path / "jumping.py"
    program.write_text(JUMPING_CLOCK, "utf-8")

    def jump(seconds: float) -> None:
        whole = offset.with_suffix(".new")
        whole.write_text(str(seconds), "utf-8")
        whole.replace(offset)

    jump(0)
    world.services.program = (sys.executable, program, offset)
    service = world.start()
    for number in range(JUMPS):
        feeder.write(max(feeder.left // (JUMPS - number), 1))
        moment(world, chance)
        toll.unfinished += not world.settled()
        jump(chance.choice((-7200, -3600, -60, -1, 0, 1, 60, 3600, 7200)))
        toll.crashes += 1
    feeder.write(feeder.left)
    world.wait_until_settled(TIMEOUT)
    assert service.end() == 0
    book(toll, world.account(pg_server.new_database()))


def test_a_relay_paused_past_its_lease(world: World, pg_server: Any) -> None:
    """SIGSTOP until another one has taken the lease, then SIGCONT: it neither confirms nor delivers what it held."""
    feeder = Feeder(world, 100, 14)
    pump = world.start("--loops", "poller,pump,backfill")
    relay = world.start("--loops", "relay")
    feeder.write(feeder.left // 2)
    eventually(lambda: world.progress()["sent"] > 5, "some events", TIMEOUT)
    relay.process.send_signal(signal.SIGSTOP)
    token = "select lease_token from delivery_target where target = 'KAFKA:schd'"
    held = world.value(token)
    feeder.write(feeder.left)
    other = world.start("--loops", "relay")
    eventually(lambda: world.value(token) != held, "the lease to go over", TIMEOUT)
    relay.process.send_signal(signal.SIGCONT)
    world.wait_until_settled(TIMEOUT)
    assert [service.end() for service in (pump, relay, other)] == [0, 0, 0]
    counted = world.account(pg_server.new_database())
    assert (counted["lost"], counted["doubled"]) == (0, 0)
