"""A database installed from sql/install.sql with psql, as a DBA does it, with pgTAP and plpgsql_check."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from msgx_driver.resources import sql_dir

Psql = Callable[..., str]


@pytest.fixture(scope="session")
def psql(pg_server: Any) -> Psql:
    """Return `psql(dsn, *arguments, expect=0)`: runs psql and returns its output; warnings are errors."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PG")}

    def run(dsn: str, *arguments: str, expect: int = 0) -> str:
        done = subprocess.run(
            [pg_server.bindir / "psql", "-X", "-q", "-d", dsn, *arguments],
            capture_output=True,
            text=True,
            env=clean | {"LC_ALL": "C.UTF-8"},
            timeout=120,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        assert expect or not done.stderr, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def installed(pg_server: Any, psql: Psql) -> str:
    """Return the dsn of a database with msgx in schema msgx, pgTAP and the helpers of sql/tests in schema tap."""
    dsn: str = pg_server.new_database()
    psql(dsn, "-f", str(sql_dir() / "install.sql"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create schema tap")
        connection.execute("create extension pgtap schema tap")
        connection.execute("create extension plpgsql_check schema tap")
    for helper in sorted((sql_dir() / "tests" / "helpers").glob("*.sql")):
        psql(dsn, "-v", "ON_ERROR_STOP=1", "-f", str(helper))
    return dsn
