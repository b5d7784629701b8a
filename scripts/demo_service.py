"""Runs the whole service on this machine: an AODB simulator, a mailbox, the driver, PostgreSQL and Kafka, all private.

Usage: python scripts/demo_service.py [--flights N] [--speed X] [--keep]. Needs what scripts/prerequisites.sh service
checks. At the end the state is compared with a replay of the mailbox, and the broker's records are counted.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import psycopg
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.live import Live
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "driver"))

from msgx_driver.clock import SystemClock, wait_until  # noqa: E402
from msgx_driver.embedded import embedded_server  # noqa: E402
from msgx_driver.generate import generate_day  # noqa: E402
from tests.service.conftest import Services  # noqa: E402
from tests.service.world import World, day_bytes  # noqa: E402
from tests.services.kafka import KafkaServer  # noqa: E402
from tests.services.mariadb import MariaDbServer  # noqa: E402

TOPICS = ("msgx.schd", "msgx.msg")
SEED = 20260909
SENT = re.compile(rb"<DTTM>(\d{14})</DTTM>")
SETTLE_SECONDS = 600.0


class Simulator(threading.Thread):
    """Writes the messages of a day into CMINMSGS at the pace of their DTTM, `speed` times as fast."""

    def __init__(self, world: World, payloads: list[bytes], speed: float) -> None:
        super().__init__(name="simulator", daemon=True)
        self.world = world
        self.payloads = payloads
        self.speed = speed
        self.clock = SystemClock()
        self.written: dict[int, datetime] = {}
        self.error: Exception | None = None

    def run(self) -> None:
        """Thread body."""
        try:
            with self.world.mailbox.connect() as conn, conn.cursor() as cursor:
                before = None
                for payload in self.payloads:
                    found = SENT.search(payload)
                    sent = datetime.strptime(found[1].decode(), "%Y%m%d%H%M%S") if found else before  # noqa: DTZ007
                    if before is not None and sent is not None and sent > before:
                        self.clock.sleep((sent - before).total_seconds() / self.speed)
                    before = sent if before is None or (sent is not None and sent > before) else before
                    cursor.execute("insert into CMINMSGS (CMINMSGS_CLOB_MSG) values (%s)", (payload,))
                    self.written[cursor.lastrowid] = self.clock.now()
        except Exception as e:
            self.error = e


def view(world: World, simulator: Simulator, total: int, seconds: float) -> Table:
    """What the service is doing now."""
    done = world.progress()
    table = Table(title=f"msgx demo service, {simulator.speed:g} × real time, {seconds:.0f} s")
    for name in ("stage", "done", "waiting", "lag"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    lag = world.value(
        "select extract(epoch from clock_timestamp() - min(enqueued_at)) from proc_state where processed_at is null"
    )
    late = world.value(
        "select extract(epoch from clock_timestamp() - min(created_at)) from msg_event where status = 'PENDING'"
    )
    events = world.value("select count(*) from msg_event")
    written = len(simulator.written)
    table.add_row("written to the mailbox", str(written), str(total - written), "")
    table.add_row("taken into the queue", str(done["enqueued"]), str(written - done["enqueued"]), "")
    table.add_row("processed", str(done["finished"]), str(done["enqueued"] - done["finished"]), age(lag))
    table.add_row("events delivered", str(done["sent"]), str(events - done["sent"]), age(late))
    table.add_row("marked in the mailbox", str(done["marked"]), str(done["finished"] - done["marked"]), "")
    table.add_row("flights", str(world.value("select count(*) from flight_schd")), "", "")
    return table


def age(seconds: Any) -> str:
    """Seconds as text."""
    return "" if seconds is None else f"{float(seconds):.2f} s"


def latencies(world: World, simulator: Simulator) -> list[float]:
    """Seconds from the commit in the mailbox to the broker's report, of the first event of each message."""
    rows = world.conn.execute(
        "select s.mailbox_id, min(e.sent_at) from proc_state s join msg_event e on e.message_id = s.message_id"
        " where e.target = 'KAFKA:msg' group by 1"
    ).fetchall()
    return sorted((sent - simulator.written[i]).total_seconds() for i, sent in rows if i in simulator.written)


@click.command()
@click.option("--flights", default=300, show_default=True, help="Flights of the morning plan.")
@click.option("--speed", default=20.0, show_default=True, help="Times real time; the day has about 20 hours.")
@click.option("--keep", is_flag=True, help="Leave everything running at the end, until Ctrl-C.")
def main(flights: int, speed: float, keep: bool) -> None:
    """Run a day through the service and count what became of it."""
    console = Console()
    clock = SystemClock()
    day = generate_day(flights, SEED)
    payloads = day_bytes(day)
    folder = Path(tempfile.mkdtemp(prefix="msgx-demo-"))
    folder.chmod(0o711)
    server = embedded_server(folder / "postgres")
    services = Services(folder, [])
    console.print(f"{len(payloads)} messages, {flights} flights; starting MariaDB, Kafka and PostgreSQL …")
    try:
        with server, MariaDbServer() as mailbox, KafkaServer() as broker:
            mailbox.reset(binary=True)
            for topic in TOPICS:
                broker.create_topic(topic)
            with psycopg.connect(server.dsn, autocommit=True) as conn:
                conn.execute("create database airport")
                conn.execute("create database replayed")
            world = World(make_conninfo(server.dsn, dbname="airport"), mailbox, broker, services, TOPICS, 200)
            world.install()
            service = world.start()
            console.print(f"PostgreSQL  {world.dsn}", soft_wrap=True)
            console.print(f"mailbox     127.0.0.1:{mailbox.port}, database {mailbox.database}, user {mailbox.user}")
            console.print(f"Kafka       {broker.bootstrap}, topics {', '.join(TOPICS)}")
            console.print(f"log         {service.log}", soft_wrap=True)
            simulator = Simulator(world, payloads, speed)
            started = clock.monotonic()
            simulator.start()
            with Live(console=console, refresh_per_second=2) as live:

                def over() -> bool:
                    if simulator.error is not None:
                        raise simulator.error
                    if service.process.poll() is not None:
                        raise SystemExit(f"the service ended with {service.process.returncode}, see {service.log}")
                    live.update(view(world, simulator, len(payloads), clock.monotonic() - started))
                    return not simulator.is_alive() and world.settled()

                longest = SETTLE_SECONDS + 24 * 3600 / speed
                wait_until(
                    over, timeout=longest, clock=clock, interval=0.5, what="everything to be delivered and marked"
                )
            seconds = clock.monotonic() - started
            if not console.is_terminal:
                console.print()
            outcome = dict(world.conn.execute("select lower(status), count(*) from proc_state group by 1").fetchall())
            expected = {name: day.manifest[name] for name in ("succeeded", "skipped", "dead")}
            if outcome != expected:
                raise SystemExit(f"{outcome} messages by status instead of {expected}")
            counted = world.account(make_conninfo(server.dsn, dbname="replayed"))
            delays = latencies(world, simulator)
            console.print(
                f"{len(payloads)} messages in {seconds:.1f} s; state equal to a replay, all rows marked\n"
                f"broker: {counted['records']} records, {counted['again']} of them again,"
                f" lost {counted['lost']}, doubled {counted['doubled']}\n"
                f"mailbox commit to Kafka report: p50 {quantile(delays, 0.5):.3f} s, p99 {quantile(delays, 0.99):.3f} s"
            )
            if keep:
                console.print("running; Ctrl-C ends it")
                service.process.wait()
            elif service.end() != 0:
                raise SystemExit(f"the service ended badly, see {service.log}")
    except KeyboardInterrupt:
        console.print("ended")
    finally:
        for running in services.started:
            running.process.kill()
            running.process.wait()
        server.remove()


def quantile(values: list[float], part: float) -> float:
    """The value below which that part of the sorted values lies."""
    return values[min(int(len(values) * part), len(values) - 1)] if values else 0.0


if __name__ == "__main__":
    main()
