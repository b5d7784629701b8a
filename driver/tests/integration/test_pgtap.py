"""Runs every file of sql/tests with pg_prove, each in its own transaction on one installed database."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from msgx_driver.resources import sql_dir

VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
FILES = sorted((sql_dir() / "tests").glob("*.sql"))
TIMEOUT = 300


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path, pg_server: Any, installed: str, count: Callable[[str, int], None]) -> None:
    program = shutil.which("pg_prove")
    assert program, "pg_prove is missing; run: sh scripts/prerequisites.sh test"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "HARNESS_"))}
    # pg_prove hands a connection string on in pieces; the variables of libpq stay whole.
    target = {VARIABLES[k]: str(v) for k, v in conninfo_to_dict(installed).items() if k in VARIABLES}
    done = subprocess.run(
        [program, "--verbose", "--psql-bin", pg_server.bindir / "psql", path],
        capture_output=True,
        text=True,
        env=clean | target | {"LC_ALL": "C.UTF-8", "PGOPTIONS": "-c client_min_messages=warning"},
        timeout=TIMEOUT,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    passed = re.findall(r"^ok \d+\b(.*)$", done.stdout, re.MULTILINE)
    plan = re.search(r"^1\.\.(\d+)$", done.stdout, re.MULTILINE)
    assert plan, output
    assert int(plan[1]) == len(passed) > 0, output
    assert not [line for line in passed if re.search(r"#\s*(todo|skip)", line, re.IGNORECASE)], output
    count("pgtap", len(passed))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_leaves_nothing(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert lines[0].startswith("-- "), "the first line says which rule is tested"
    assert lines[1] == "begin;"
    assert lines[-1] == "rollback;"
    body = "\n".join(lines)
    assert not re.search(r"\b(todo|todo_start|skip|no_plan)\s*\(", body)
    assert not re.search(r"^\s*commit\b", body, re.MULTILINE | re.IGNORECASE)


def test_areas_are_covered() -> None:
    """Every area has its files: a file that disappears is noticed."""
    names = {path.stem for path in FILES}
    assert len(names) >= 50
    assert len([name for name in names if name.startswith("catalog_")]) >= 6
    assert len([name for name in names if name.startswith("security_")]) >= 3
