"""The ground the rows stand on: the server, its databases, pgbench, the clock."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench import load
from bench.model import Sample, parse_fdatasync, parse_pgbench_tps
from msgx_driver.clock import Clock, wait_until
from msgx_driver.embedded import PostgresServer
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.pump import Pump
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store, connect
from msgx_driver.wire.decode import decode_message

__all__ = ["DETAIL_TABLES", "FLIGHT_TABLES", "SETTINGS", "Airport", "Ground", "find_programs", "query", "SCHEMA"]

DEBIAN_SERVERS: Final = Path("/usr/lib/postgresql")
PROGRAMS: Final = ("postgres", "initdb", "pgbench", "pg_test_fsync")
SCHEMA: Final = "msgx"
PGBENCH: Final = "pgbench"
PGBENCH_SCALE: Final = 20

SETTINGS: Final = {
    "shared_buffers": "1GB",
    "effective_cache_size": "3GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
}
"""What a DBA would set on a small server with a fast disk; product and references run under the same."""

DETAIL_TABLES: Final = (
    "flight_gate",
    "flight_checkin",
    "flight_belt",
    "flight_stand_plan",
    "flight_chute",
    "flight_delay",
    "flight_bridge_op",
    "flight_chock_op",
    "flight_route_point",
)
FLIGHT_TABLES: Final = ("flight_schd", *DETAIL_TABLES)


@cache
def _queries() -> dict[str, bytes]:
    text = Path(__file__).with_name("queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {name: body.encode() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def query(name: str) -> bytes:
    """Text of a statement of bench/queries.sql."""
    return _queries()[name]


def find_programs(servers: Path = DEBIAN_SERVERS) -> Path:
    """The programs of the newest installed PostgreSQL, 15 or newer, with pgbench; MsgxError CONFIG without one."""
    found = [
        (int(bindir.parent.name), bindir)
        for bindir in servers.glob("*/bin")
        if bindir.parent.name.isdigit()
        and int(bindir.parent.name) >= 15
        and all((bindir / program).is_file() for program in PROGRAMS)
    ]
    if not found:
        raise MsgxError(
            "PostgreSQL 15 or newer with pgbench is missing",
            exit_code=ExitCode.CONFIG,
            hint="run: sh scripts/prerequisites.sh test",
        )
    return max(found)[1]


class Airport:
    """One database with the schema, its write right held; messages go in as bytes and are numbered from 1."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.conn = store.conn
        self.clock = clock
        store.acquire_writer()
        self.pump = Pump(store, clock)
        self.catalogue = store.catalogue()

    def next_id(self) -> int:
        """The id the next message gets; also good as its SEQN."""
        return self.store.highest_id() + 1

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The command of a message of any size."""
        return decode_message(payload, "bytes", self.catalogue, max_bytes=1 << 30)

    def enqueue(self, payloads: Iterable[bytes], first_id: int | None = None) -> list[int]:
        """Put the messages into the queue, in chunks of 500, one transaction; returns their ids."""
        messages = list(enumerate(payloads, self.next_id() if first_id is None else first_id))
        with self.conn.transaction():
            for at in range(0, len(messages), 500):
                chunk = [(message_id, payload, "bytes") for message_id, payload in messages[at : at + 500]]
                self.store.enqueue("replay", chunk)
        return [message_id for message_id, _ in messages]

    def enqueue_events(self, count: int, flights: int) -> list[int]:
        """Put `count` events of the mix into the queue."""
        first = self.next_id()
        return self.enqueue(load.events(count, flights, first, seed=first), first)

    def drain(self) -> float:
        """Run the product's own loop until the queue is empty; returns seconds. All have to succeed."""
        outcomes: dict[str, int] = {}

        def seen(outcome: dict[str, Any]) -> bool:
            outcomes[outcome["status"]] = outcomes.get(outcome["status"], 0) + 1
            return True

        started = self.clock.monotonic()
        self.pump.drain(seen)
        seconds = self.clock.monotonic() - started
        if set(outcomes) != {"SUCCEEDED"}:
            raise MsgxError(f"a benchmark message did not succeed: {outcomes}")
        return seconds

    def timed(self, work: Callable[[], object]) -> float:
        """Seconds that `work` takes."""
        started = self.clock.monotonic()
        work()
        return self.clock.monotonic() - started

    def vacuum(self, tables: Sequence[str] = (), *, full: bool = False) -> None:
        """Vacuum and analyze those tables, or all."""
        names = sql.SQL(", ").join(sql.Identifier(t) for t in tables)
        options = sql.SQL("full, analyze" if full else "analyze")
        self.conn.execute(sql.SQL("vacuum ({}) {}").format(options, names))


@dataclass
class Ground:
    """What every row gets: server, sizes, clock; makes databases and runs pgbench."""

    server: PostgresServer
    programs: Path
    clock: Clock
    out: Path
    quick: bool
    say: Callable[[str], None]
    fdatasync: tuple[float, float] = (0.0, 0.0)
    """Flushes per second and microseconds of one, by pg_test_fsync on the server's disk."""
    _templates: set[str] = field(default_factory=set)

    def prepare(self) -> None:
        """Set the server's parameters and measure its disk."""
        with psycopg.connect(self.server.dsn, autocommit=True) as conn:
            for name, value in SETTINGS.items():
                conn.execute(sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value)))
        self.server.stop()
        self.server.start()
        self.fdatasync = self._test_fsync()

    def pick(self, full: int, quick: int) -> int:
        """A size: the first in a full run, the second in a quick one."""
        return quick if self.quick else full

    @property
    def runs(self) -> int:
        """How often a row is repeated."""
        return self.pick(5, 3)

    # -- databases -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def database(self, name: str, template: str) -> Iterator[str]:
        """A copy of a database that lives as long as the block; yields its connection string."""
        self._create(name, template)
        try:
            yield self._dsn(name)
        finally:
            with psycopg.connect(self.server.dsn, autocommit=True) as conn:
                conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    @contextlib.contextmanager
    def empty(self, name: str) -> Iterator[str]:
        """A database with an empty schema; yields its connection string."""
        with self.database(name, self._planned(0)) as dsn:
            yield dsn

    @contextlib.contextmanager
    def airport(self, name: str, flights: int) -> Iterator[Airport]:
        """A database of its own with one plan of that many flights and 21 detail rows each already there."""
        template = self._planned(flights)
        with self.database(name, template) as dsn, Store.open(dsn, SCHEMA) as store:
            yield Airport(store, self.clock)

    def _planned(self, flights: int) -> str:
        """Name of the template with that plan, made at its first use."""
        name = f"planned_{flights}"
        if name not in self._templates:
            self._create(name, "template1")
            with connect(self._dsn(name)) as conn:
                migrate_up(conn, SCHEMA, self.clock)
            if flights:
                self._load_plan(name, flights)
            self._templates.add(name)
        return name

    def _load_plan(self, name: str, flights: int) -> None:
        with Store.open(self._dsn(name), SCHEMA) as store:
            airport = Airport(store, self.clock)
            payload = load.plan(flights, 1, version=0)
            # The call takes the command: a plan over wire.max_bytes has no place in the queue as XML.
            airport.enqueue([load.PLACEHOLDER])
            store.process_message(1, airport.decode(payload))
            found = airport.conn.execute(query("detail_rows")).fetchone()
            if found != (flights * load.DETAIL_ROWS,):
                raise MsgxError(f"the plan of {flights} flights left {found} detail rows")
            store.release_writer()
            airport.vacuum()

    def _create(self, name: str, template: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as conn:
            # What a row that broke left half made.
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
            # A copy by files: without it the WAL of the copy would weigh on what is measured next.
            statement = sql.SQL("create database {} template {} strategy file_copy")
            conn.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def _dsn(self, name: str) -> str:
        return make_conninfo(self.server.dsn, dbname=name)

    # -- PostgreSQL's own programs -------------------------------------------------------------------------

    def pgbench(self, label: str, seconds: int, *, synchronous_commit: bool) -> float:
        """Transactions per second of `pgbench -N -c1 -M prepared`; its output goes to <out>/pgbench-<label>.txt."""
        if PGBENCH not in self._templates:
            self.say(f"pgbench -i at scale {PGBENCH_SCALE}")
            self._create(PGBENCH, "template1")
            self._run_pgbench(["-i", "-q", "-s", str(PGBENCH_SCALE)], "on")
            self._templates.add(PGBENCH)
        mode = "on" if synchronous_commit else "off"
        output = self._run_pgbench(["-N", "-c1", "-M", "prepared", "-T", str(seconds)], mode)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / f"pgbench-{label}.txt").write_text(output, "utf-8")
        try:
            return parse_pgbench_tps(output)
        except ValueError as e:
            raise MsgxError(f"pgbench gave no figure: {e}") from e

    def _run_pgbench(self, arguments: Sequence[str], synchronous_commit: str) -> str:
        where = conninfo_to_dict(self.server.dsn)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment = kept | {
            "LC_ALL": "C",
            "PGHOST": str(where["host"]),
            "PGPORT": str(where["port"]),
            "PGUSER": str(where["user"]),
            "PGOPTIONS": f"-c synchronous_commit={synchronous_commit}",
        }
        done = subprocess.run(
            [self.programs / "pgbench", *arguments, PGBENCH],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode != 0:
            raise MsgxError(f"pgbench ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def _test_fsync(self) -> tuple[float, float]:
        """Run pg_test_fsync until it has told fdatasync; the other methods would take half a minute more."""
        output = self.out / "pg_test_fsync.txt"
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("wb") as file:
            target = self.server.folder / "pg_test_fsync.out"
            program = [str(self.programs / "pg_test_fsync"), "-s", "2", "-f", str(target)]
            process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            try:
                found = wait_until(
                    lambda: parse_fdatasync(output.read_text(errors="replace")),
                    timeout=60,
                    clock=self.clock,
                    interval=0.1,
                    what="pg_test_fsync to measure fdatasync",
                )
            finally:
                process.terminate()
                process.wait()
        assert found is not None
        return found

    # -- repeating -----------------------------------------------------------------------------------------

    def interleave(self, *works: Callable[[int], float]) -> list[Sample]:
        """Run all works in turn, `runs` times; each gets the number of the run, from 1, and returns its value."""
        values: list[list[float]] = [[] for _ in works]
        for run in range(1, self.runs + 1):
            for work, found in zip(works, values, strict=True):
                found.append(work(run))
        return [Sample(tuple(found)) for found in values]
