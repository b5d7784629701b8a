"""Runs the whole service on this machine: an AODB simulator, a mailbox, the driver, PostgreSQL and Kafka, all private.

Usage: python scripts/demo_service.py [--flights N] [--speed X] [--keep]. Needs what scripts/prerequisites.sh service
checks. At the end the state is compared with a replay of the mailbox, and the broker's records are counted. Exit code
6: they differ; 1: the demo itself failed. Then the logs are kept, and their folder is named; after a good end nothing
is left.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
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
from msgx_driver.embedded import PostgresServer, embedded_server  # noqa: E402
from msgx_driver.errors import ExitCode  # noqa: E402
from msgx_driver.generate import Day, generate_day  # noqa: E402
from tests.chaos.tables import contents, differences  # noqa: E402
from tests.service.conftest import PROGRAM, Running, Services  # noqa: E402
from tests.service.world import SETTINGS, World, comparable, day_bytes  # noqa: E402
from tests.services.kafka import KafkaServer  # noqa: E402
from tests.services.mariadb import MariaDbServer  # noqa: E402

TOPICS = ("msgx.schd", "msgx.msg")
SEED = 20260909
SENT = re.compile(rb"<DTTM>(\d{14})</DTTM>")
SETTLE_SECONDS = 600.0
REPORT_SECONDS = 30.0
CHANGED_BY_HAND = (
    "Commands that change the installation while the demo runs (settings set, republish, redeliver, SQL) make it"
    " differ: the replay knows nothing of them."
)


class DifferentError(Exception):
    """The service did not leave what a replay leaves; the text says where."""


def sent_at(payload: bytes) -> datetime | None:
    """Local time of the airport in DTTM, if it can be read."""
    found = SENT.search(payload)
    return datetime.strptime(found[1].decode(), "%Y%m%d%H%M%S") if found else None  # noqa: DTZ007


def day_seconds(payloads: list[bytes]) -> float:
    """How long the day lasts by its messages; one that goes back in time takes none."""
    instants = [at for at in map(sent_at, payloads) if at is not None]
    return (max(instants) - instants[0]).total_seconds() if instants else 0.0


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
                    sent = sent_at(payload) or before
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


def hints(world: World, service: Running, speed: float, payloads: list[bytes]) -> list[str]:
    """What runs where, how to look at it, and how long it takes."""
    mailbox = world.mailbox
    lowered = ", ".join(
        f"{name} = {value}" for name, value in re.findall(r"set_setting\('([\w.]+)', '(\w+)'", SETTINGS)
    )
    minutes = day_seconds(payloads) / speed / 60
    query = "select CMINMSGS_ID, CMINMSGS_DATE_PROCESSED from CMINMSGS order by CMINMSGS_ID desc limit 5"
    return [
        f"PostgreSQL  {world.dsn}",
        f"mailbox     127.0.0.1:{mailbox.port}, database {mailbox.database}",
        f"Kafka       {world.broker.bootstrap}, topics {', '.join(world.topics)}",
        f"log         {service.log}",
        f"settings    {lowered}: lower than a site has them, so that bad messages cost no time",
        f"duration    about {minutes:.0f} minutes" if minutes >= 1 else "duration    about a minute",
        "Type in a second shell, for instance:",
        f"  export MSGX_DATABASE__DSN={shlex.quote(world.dsn)}",
        f"  {PROGRAM} status",
        f"  {PROGRAM} flights --board",
        f"  {PROGRAM} dead list",
        f"  mariadb --no-defaults -h 127.0.0.1 -P {mailbox.port} -u root {mailbox.database} -e '{query}'",
    ]


def line(world: World, simulator: Simulator, total: int, seconds: float) -> str:
    """The same as `view`, for an output that is no terminal."""
    done = world.progress()
    events = world.value("select count(*) from msg_event")
    return (
        f"{seconds:.0f} s: {len(simulator.written)} of {total} messages written, {done['finished']} processed,"
        f" {done['sent']} of {events} events delivered, {done['marked']} marked"
    )


def watch(console: Console, world: World, service: Running, simulator: Simulator, payloads: list[bytes]) -> float:
    """Wait until all is delivered and marked, and show how far it is; returns the seconds that it took."""
    clock = SystemClock()
    started = clock.monotonic()
    total = len(payloads)
    live = Live(console=console, refresh_per_second=2) if console.is_terminal else None
    reported = started

    def over() -> bool:
        nonlocal reported
        if simulator.error is not None:
            raise simulator.error
        if service.process.poll() is not None:
            raise click.ClickException(f"the service ended with {service.process.returncode}")
        now = clock.monotonic()
        if live is not None:
            live.update(view(world, simulator, total, now - started))
        elif now - reported >= REPORT_SECONDS:
            reported = now
            console.print(line(world, simulator, total, now - started), soft_wrap=True)
        return not simulator.is_alive() and world.settled()

    longest = SETTLE_SECONDS + 24 * 3600 / simulator.speed
    with live or contextlib.nullcontext():
        wait_until(over, timeout=longest, clock=clock, interval=0.5, what="everything to be delivered and marked")
    return clock.monotonic() - started


def account(world: World, manifest: dict[str, Any], fresh_dsn: str) -> dict[str, int]:
    """Compare state, mailbox and broker with what must be true; returns the counts. Raises DifferentError."""
    outcome = dict(world.conn.execute("select lower(status), count(*) from proc_state group by 1").fetchall())
    expected = {name: manifest[name] for name in ("succeeded", "skipped", "dead")}
    if outcome != expected:
        raise DifferentError(f"messages by status: {outcome} instead of {expected}")
    try:
        counted = world.account(fresh_dsn)
    except AssertionError as e:
        rows = differences(*(comparable(contents(dsn, "msgx")) for dsn in (world.dsn, fresh_dsn)))
        tables = sorted({row.partition(",")[0] for row in rows})
        if tables:
            found = "\n".join(f"  {row[:300]}" for row in rows)
            raise DifferentError(f"tables that differ from a replay: {', '.join(tables)}\n{found}") from e
        failed = traceback.extract_tb(e.__traceback__)[-1]
        raise DifferentError(f"mailbox or broker: {e or 'not so'}: {failed.line}") from e
    if counted["lost"] or counted["doubled"]:
        raise DifferentError(
            f"broker: lost {counted['lost']}, doubled {counted['doubled']} of {counted['records']} records"
        )
    return counted


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """What child processes print goes to the file: Maven writes terminal codes even into a pipe."""
    before = {number: os.dup(number) for number in (1, 2)}
    with path.open("wb") as file:
        for number in before:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, kept in before.items():
            os.dup2(kept, number)
            os.close(kept)


def keep_logs(folder: Path, mailbox: MariaDbServer, broker: KafkaServer, server: PostgresServer) -> None:
    """Copy the servers' logs beside the driver's, before their folders go."""
    logs = {
        "mariadb.log": mailbox.home / "out.log",
        "kafka-out.log": broker.home / "out.log",
        "kafka.log": broker.home / "kafka.log",
        "postgres.log": server.log,
    }
    for name, log in logs.items():
        with contextlib.suppress(OSError):
            shutil.copyfile(log, folder / name)


def run_day(console: Console, world: World, day: Day, speed: float, fresh_dsn: str, keep: bool) -> None:
    """Run the day through the service, count, and end the service."""
    payloads = day_bytes(day)
    world.install()
    service = world.start()
    for text in hints(world, service, speed, payloads):
        console.print(text, soft_wrap=True)
    simulator = Simulator(world, payloads, speed)
    simulator.start()
    seconds = watch(console, world, service, simulator, payloads)
    counted = account(world, day.manifest, fresh_dsn)
    delays = latencies(world, simulator)
    console.print(
        f"{len(payloads)} messages in {seconds:.1f} s; state equal to a replay, all rows marked\n"
        f"broker: {counted['records']} records, {counted['again']} of them again,"
        f" lost {counted['lost']}, doubled {counted['doubled']}\n"
        f"mailbox commit to Kafka report: p50 {quantile(delays, 0.5):.3f} s, p99 {quantile(delays, 0.99):.3f} s",
        soft_wrap=True,
    )
    if keep:
        console.print("running; Ctrl-C ends it")
        service.process.wait()
    elif service.end() != 0:
        raise click.ClickException(f"the service ended with {service.process.returncode}")


@click.command()
@click.option("--flights", default=300, show_default=True, help="Flights of the morning plan.")
@click.option(
    "--speed",
    default=20.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Times real time; the day has about 20 hours.",
)
@click.option("--keep", is_flag=True, help="Leave everything running at the end, until Ctrl-C.")
def main(flights: int, speed: float, keep: bool) -> None:
    """Run a day through the service and count what became of it."""
    console = Console(force_terminal=sys.stdout.isatty(), highlight=False, markup=False)
    day = generate_day(flights, SEED)
    folder = Path(tempfile.mkdtemp(prefix="msgx-demo-"))
    folder.chmod(0o711)
    server = embedded_server(folder / "postgres")
    services = Services(folder, [])
    good = False
    console.print(
        f"{len(day.messages)} messages, {flights} flights; starting MariaDB, PostgreSQL and Kafka, which is downloaded"
        " the first time …",
        soft_wrap=True,
    )
    try:
        with output_to(folder / "kafka-download.log"):
            kafka = KafkaServer()
        with server, MariaDbServer() as mailbox, kafka as broker:
            try:
                mailbox.reset(binary=True)
                for topic in TOPICS:
                    broker.create_topic(topic)
                with psycopg.connect(server.dsn, autocommit=True) as conn:
                    conn.execute("create database airport")
                    conn.execute("create database replayed")
                world = World(make_conninfo(server.dsn, dbname="airport"), mailbox, broker, services, TOPICS, 200)
                run_day(console, world, day, speed, make_conninfo(server.dsn, dbname="replayed"), keep)
            except Exception:
                keep_logs(folder, mailbox, broker, server)
                raise
        good = True
    except KeyboardInterrupt:
        good = True
        console.print("ended")
    except DifferentError as e:
        click.echo(f"demo: {e}\n{CHANGED_BY_HAND}", err=True)
        raise SystemExit(ExitCode.INVARIANT) from None
    finally:
        for running in services.started:
            running.process.kill()
            running.process.wait()
        server.remove()
        if good:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            click.echo(f"demo: the logs of the driver and the servers are in {folder}", err=True)


def quantile(values: list[float], part: float) -> float:
    """The value below which that part of the sorted values lies."""
    return values[min(int(len(values) * part), len(values) - 1)] if values else 0.0


if __name__ == "__main__":
    main()
