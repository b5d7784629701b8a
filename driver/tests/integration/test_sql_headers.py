"""The header of each routine says what the routine does: ten fields, held against its text and the catalogue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
import pytest

from msgx_driver.resources import sql_dir

FIELDS = ["Purpose", "Params", "Returns", "Errors", "Locks", "Reads", "Writes", "Called by", "Sources", "Oracle"]
PACKAGE = Path(__file__).resolve().parents[3] / "driver" / "msgx_driver"
RULE = "-- " + "=" * 96


@dataclass(frozen=True)
class Routine:
    """One file of sql/procedures: name of the file, fields of the header, text below it without comments."""

    path: Path
    title: str
    fields: dict[str, str]
    keys: list[str]
    text: str

    @property
    def name(self) -> str:
        return self.path.stem


@cache
def routines() -> dict[str, Routine]:
    """All routines by name."""
    return {r.name: r for r in map(parse, sorted((sql_dir() / "procedures").glob("*/*.sql")))}


def parse(path: Path) -> Routine:
    lines = path.read_text().splitlines()
    assert lines[0] == RULE, f"{path.name}: the header starts with a line of {len(RULE)} characters"
    end = lines.index(RULE, 1)
    fields: dict[str, str] = {}
    keys: list[str] = []
    for line in lines[2:end]:
        start = re.fullmatch(r"-- ([A-Z][A-Za-z ]{8}) ?: (.*)", line)
        if start:
            keys.append(start[1].strip())
            fields[keys[-1]] = start[2]
        else:
            more = re.fullmatch(r"--  {12,}(\S.*)", line)
            assert more, f"{path.name}: not a line of a header: {line}"
            assert keys, f"{path.name}: text before the first field: {line}"
            fields[keys[-1]] += " " + more[1]
    text = "\n".join(re.sub(r"--.*", "", line) for line in lines[end + 1 :])
    return Routine(path, lines[1].removeprefix("-- ").strip(), fields, keys, text)


def body(routine: Routine) -> str:
    """Text of the routine alone, without what follows it (comment, rights)."""
    found = re.search(r"as \$\$(.*)\$\$;", routine.text, re.DOTALL)
    assert found, f"{routine.name}: no body"
    return found[1]


def codes(text: str) -> set[str]:
    """SQLSTATEs MXnnn that a header names; MX101-MX104 means all of them."""
    named: set[str] = set()
    for first, last in re.findall(r"MX(\d{3})(?:-MX(\d{3}))?", text):
        named |= {f"MX{n:03}" for n in range(int(first), int(last or first) + 1)}
    return named


def calls(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\s*\(", text) is not None


@cache
def driver_text() -> str:
    """The statements of the driver; they stand in one file."""
    return (PACKAGE / "queries.sql").read_text()


NAMES = sorted(p.stem for p in (sql_dir() / "procedures").glob("*/*.sql"))
by_name = pytest.mark.parametrize("name", NAMES)


@by_name
def test_the_ten_fields_in_order(name: str) -> None:
    routine = routines()[name]
    assert routine.keys == FIELDS
    assert all(value.strip() for value in routine.fields.values())


@by_name
def test_one_routine_per_file_named_as_the_file(name: str) -> None:
    routine = routines()[name]
    assert routine.title == name
    assert re.findall(r"create or replace (?:function|procedure) (\w+)", routine.text) == [name]
    assert re.findall(r"comment on (?:function|procedure) (\w+)", routine.text) == [name]
    assert re.findall(r"revoke all on (?:function|procedure) (\w+)\(.*\) from public;", routine.text) == [name]
    assert set(re.findall(r"grant execute on (?:function|procedure) (\w+)", routine.text)) <= {name}


@by_name
def test_errors_name_every_code_raised(name: str) -> None:
    routine = routines()[name]
    raised = set(re.findall(r"'(MX\d{3})'", body(routine)))
    assert raised <= codes(routine.fields["Errors"])
    if calls(body(routine), "_lock_writer"):
        assert {"MX401"} <= codes(routine.fields["Errors"])


@by_name
def test_params_are_explained(name: str, installed: str) -> None:
    with psycopg.connect(installed) as connection:
        row = connection.execute(
            "select coalesce(proargnames[1:pronargs], '{}'), provolatile, prosecdef from pg_proc"
            " where pronamespace = 'msgx'::regnamespace and proname = %s",
            (name,),
        ).fetchone()
    assert row, f"{name} is not in the catalogue"
    params = routines()[name].fields["Params"]
    assert set(re.findall(r"\bp_\w+", params)) == set(row[0])
    assert bool(row[0]) != (params == "none")
    if row[1] != "v":
        assert routines()[name].fields["Writes"] == "none"
        assert routines()[name].fields["Locks"] == "none"


@by_name
def test_called_by_names_every_caller(name: str) -> None:
    routine = routines()[name]
    named = routine.fields["Called by"]
    callers = {r.name for r in routines().values() if r.name != name and calls(body(r), name)}
    if not named.startswith("every "):
        assert {c for c in callers if not re.search(rf"(?<!\w){c}(?!\w)", named)} == set()
    mentioned = {n for n in NAMES if re.search(rf"(?<!\w){n}(?!\w)", named)}
    assert mentioned <= callers
    assert ("driver" in named) == calls(driver_text(), name)


@by_name
def test_writes_name_every_table_changed(name: str) -> None:
    routine = routines()[name]
    named = routine.fields["Writes"]
    changed = set(re.findall(r"\b(?:insert into|update(?!\s+set\b)|delete from)\s+([a-z_]+)", body(routine)))
    details = {"flight_gate", "flight_checkin", "flight_belt", "flight_stand_plan", "flight_chute"}
    details |= {"flight_delay", "flight_bridge_op", "flight_chock_op", "flight_route_point"}
    if "detail" in named:
        changed -= details
    assert {t for t in changed if not re.search(rf"(?<!\w){t}(?!\w)", named)} == set()


@by_name
def test_locks_name_the_row(name: str) -> None:
    routine = routines()[name]
    text = body(routine)
    if re.search(r"\bfrom delivery_target\b[^;]*\bfor update\b|\b_(take|hold)_target\(", text):
        assert "delivery_target row" in routine.fields["Locks"]
        text = re.sub(r"\bfrom delivery_target\b[^;]*\bfor update\b", "", text)
    if re.search(r"\bfor update\b|\b_lock_(writer|row)\(", text):
        assert "pipeline_lock row FLIGHT_SCHD_WRITER" in routine.fields["Locks"]


def test_files_and_catalogue_are_the_same_routines(installed: str) -> None:
    with psycopg.connect(installed) as connection:
        known = connection.execute("select proname from pg_proc where pronamespace = 'msgx'::regnamespace").fetchall()
    assert sorted(name for (name,) in known) == NAMES


def test_files_and_catalogue_are_the_same_views(installed: str) -> None:
    with psycopg.connect(installed) as connection:
        known = connection.execute("select viewname from pg_views where schemaname = 'msgx'").fetchall()
    assert {name for (name,) in known} == {p.stem for p in (sql_dir() / "views").glob("*.sql")}
    for path in (sql_dir() / "views").glob("*.sql"):
        assert re.findall(r"create view (\w+)", path.read_text()) == [path.stem]
        assert re.findall(r"comment on view (\w+)", path.read_text()) == [path.stem]
        assert path.read_text().startswith("-- ")


def test_every_code_is_classed(installed: str) -> None:
    """A SQLSTATE that a routine raises has a row of its own or of its group in error_class."""
    raised = {code for r in routines().values() for code in re.findall(r"'(MX\d{3})'", body(r))}
    with psycopg.connect(installed) as connection:
        prefixes = connection.execute(
            "select sqlstate_prefix from msgx.error_class where sqlstate_prefix like 'MX%'"
        ).fetchall()
    assert {code for code in raised if not any(code.startswith(p) for (p,) in prefixes)} == set()
