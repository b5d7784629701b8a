"""The command line as its users start it: a subprocess with an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from msgx_driver import embedded

PROGRAM = Path(sys.executable).parent / "msgx-driver"
TIMEOUT = 120


@dataclass(frozen=True)
class Cli:
    """Runs `msgx-driver` with arguments and returns the finished process."""

    environment: dict[str, str]
    cwd: Path

    def __call__(
        self, *arguments: str, stdin: bytes = b"", expect: int | None = 0, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.cwd,
            env=self.environment | environment,
            timeout=TIMEOUT,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        if expect is not None:
            assert done.returncode == expect, (arguments, done.stdout.decode(), done.stderr.decode())
        return done


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """The command line without any configuration of the machine; MSGX_HOME is private to the test."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MSGX_", "PG"))}
    work = tmp_path / "cwd"
    work.mkdir()
    home = tmp_path / "home"
    yield Cli(clean | {"MSGX_HOME": str(home), "LC_ALL": "C.UTF-8"}, work)
    embedded.remove(home)


@dataclass(frozen=True)
class Airport:
    """A database with the schema msgx: `admin` is a superuser, `driver` a login role with msgx_driver only."""

    admin: str
    driver: str

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Rows of a query in schema msgx, as superuser."""
        with psycopg.connect(self.admin, autocommit=True, options="-c search_path=msgx") as conn:
            return conn.execute(query.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Run a statement in schema msgx, as superuser."""
        with psycopg.connect(self.admin, autocommit=True, options="-c search_path=msgx") as conn:
            conn.execute(statement.encode())


@pytest.fixture
def new_airport(cli: Cli, pg_server) -> Callable[[], Airport]:  # type: ignore[no-untyped-def]
    """Make databases migrated by `msgx-driver migrate up`, as the docs say."""

    def make() -> Airport:
        admin = pg_server.new_database()
        cli("migrate", "up", "--db", admin)
        with psycopg.connect(admin, autocommit=True) as conn:
            conn.execute(
                "do $$ begin"
                " if not exists (select 1 from pg_roles where rolname = 'pump') then create role pump login; end if;"
                " end $$"
            )
            conn.execute("grant msgx_driver to pump")
        return Airport(admin, make_conninfo(admin, user="pump"))

    return make


@pytest.fixture
def airport(new_airport: Callable[[], Airport]) -> Airport:
    """One migrated database."""
    return new_airport()
