"""What all tests share: the PostgreSQL server, the counters of the closing lines, and no skipping."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from msgx_driver.embedded import PostgresServer
from tests.services.kafka import KafkaServer, missing_programs
from tests.services.mariadb import MariaDbServer, missing_mariadb

Kind = Literal["pgtap", "scenario", "stream", "golden", "mutation"]
Count = Callable[[Kind, int], None]

DEBIAN_SERVERS = Path("/usr/lib/postgresql")
DEBIAN_EXTENSIONS = Path("/usr/share/postgresql")


class Tally:
    """Counts what ran, and fails a run in which something did not."""

    def __init__(self) -> None:
        self.counted: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
        self.counting_tests: set[str] = set()
        self.passed = 0
        self.not_run: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and report.nodeid not in self.counting_tests:
            self.passed += 1
        self._note_skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note_skip(report)

    def _note_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped or hasattr(report, "wasxfail"):
            self.not_run.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.not_run and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in dict.fromkeys(self.not_run):
            terminalreporter.write_line(f"FAILED because it did not run in full: {name}", red=True)
        if self.counted["stream"]:
            terminalreporter.write_line(f"random streams: {self.counted['stream']}, equal in model and product")
        if self.counted["golden"]:
            terminalreporter.write_line(f"golden kinds: {self.counted['golden']}, as worked out from the documents")
        if self.counted["mutation"]:
            terminalreporter.write_line(f"planted mutations caught: {self.counted['mutation']}")
        terminalreporter.write_line(
            f"pgTAP assertions: {self.counted['pgtap']}  scenarios: {self.counted['scenario']}"
            f"  other tests: {self.passed}"
        )


TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    tally = Tally()
    config.stash[TALLY] = tally
    config.pluginmanager.register(tally, "msgx-tally")


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Count:
    """Return `count(kind, n)`: this test has checked n assertions, scenarios, streams, kinds or mutations."""
    tally = request.config.stash[TALLY]

    def count(kind: Kind, n: int) -> None:
        tally.counted[kind] += n
        tally.counting_tests.add(request.node.nodeid)

    return count


def find_server_programs() -> Path | None:
    """Return the programs of the newest installed PostgreSQL that has pgTAP and plpgsql_check, or None."""
    found = []
    for bindir in DEBIAN_SERVERS.glob("*/bin"):
        version = bindir.parent.name
        extensions = DEBIAN_EXTENSIONS / version / "extension"
        needed = [bindir / "postgres", extensions / "pgtap.control", extensions / "plpgsql_check.control"]
        if version.isdigit() and int(version) >= 15 and all(path.is_file() for path in needed):
            found.append((int(version), bindir))
    return max(found)[1] if found else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """End the run before the first test when a service that some test needs is missing."""
    needed = any("pg_server" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not os.environ.get("MSGX_TEST_PG_DSN") and find_server_programs() is None:
        pytest.exit(
            "PostgreSQL 15 with pgtap and plpgsql_check is missing; run: sh scripts/prerequisites.sh test",
            returncode=3,
        )
    needs_kafka = any({"kafka", "local_kafka"} & set(getattr(item, "fixturenames", ())) for item in session.items)
    if needs_kafka and missing_programs():
        pytest.exit(
            f"{' and '.join(missing_programs())} for Apache Kafka missing; run: sh scripts/prerequisites.sh test",
            returncode=3,
        )
    names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    needs_mariadb = "local_mailbox" in names or ("mailbox" in names and not os.environ.get("MSGX_TEST_MARIADB"))
    if needs_mariadb and missing_mariadb():
        pytest.exit(
            f"{' and '.join(missing_mariadb())} of MariaDB missing; run: sh scripts/prerequisites.sh test",
            returncode=3,
        )


class PgServer:
    """The server of this test run: `dsn` of a superuser, the programs in `bindir`, databases on demand."""

    def __init__(self, dsn: str, bindir: Path) -> None:
        self.dsn = dsn
        self.bindir = bindir
        self._databases: list[str] = []

    def new_database(self) -> str:
        """Create an empty database and return its dsn."""
        name = f"msgx_test_{uuid.uuid4().hex[:12]}"
        self._execute("create database {}", name)
        self._databases.append(name)
        return make_conninfo(self.dsn, dbname=name)

    def drop_databases(self) -> None:
        while self._databases:
            self._execute("drop database if exists {} with (force)", self._databases.pop())

    def _execute(
        self, statement: Literal["create database {}", "drop database if exists {} with (force)"], name: str
    ) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def pg_server() -> Iterator[PgServer]:
    """Yield the server named by MSGX_TEST_PG_DSN, else a private one that lives as long as this run."""
    given = os.environ.get("MSGX_TEST_PG_DSN")
    if given:
        psql = shutil.which("psql")
        assert psql, "psql is missing: sh scripts/prerequisites.sh test"
        external = PgServer(given, Path(psql).resolve().parent)
        yield external
        external.drop_databases()
        return
    bindir = find_server_programs()
    assert bindir is not None
    home = Path(tempfile.mkdtemp(prefix="msgx-pg-"))
    home.chmod(0o711)
    server = PostgresServer(bindir, home)
    try:
        with server:
            yield PgServer(server.dsn, server.bindir)
    finally:
        server.remove()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """Yield the broker named by MSGX_TEST_KAFKA, else a private one that lives as long as this run."""
    with KafkaServer(os.environ.get("MSGX_TEST_KAFKA")) as server:
        yield server


@pytest.fixture(scope="session")
def local_kafka(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """Yield a broker that the tests may stop and kill; whoever does starts it again."""
    if not os.environ.get("MSGX_TEST_KAFKA"):
        yield request.getfixturevalue("kafka")
        return
    with KafkaServer() as server:
        yield server


@pytest.fixture(scope="session")
def mailbox() -> Iterator[MariaDbServer]:
    """Yield the server named by MSGX_TEST_MARIADB, else a private one that lives as long as this run."""
    with MariaDbServer(os.environ.get("MSGX_TEST_MARIADB")) as server:
        yield server


@pytest.fixture(scope="session")
def local_mailbox(request: pytest.FixtureRequest) -> Iterator[MariaDbServer]:
    """Yield a server that the tests may stop and kill; whoever does starts it again."""
    if not os.environ.get("MSGX_TEST_MARIADB"):
        yield request.getfixturevalue("mailbox")
        return
    with MariaDbServer() as server:
        yield server
