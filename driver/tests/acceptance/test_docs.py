"""The documents are true: what they show is run, what they name exists, and what exists is named.

A ```console block is a shell session at the root of the repository: lines after `$ ` are commands, the others lines of
their output, in order, `…` standing for anything; a command ends with 0 unless `$ echo $?` follows. An upgrade by pip
puts the next version first in PATH for the rest of its block. A ```sql block is run by psql, and the ```text block
right below it shows lines of its result.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from bench.__main__ import cli as bench_program
from msgx_driver.cli import cli as program
from msgx_driver.config import load_config
from msgx_driver.errors import ExitCode

from .conftest import Airport, Cli
from .next_version import build_next_version

ROOT = Path(__file__).resolve().parents[3]
DOCS = sorted([ROOT / "README.md", ROOT / "examples" / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@ end of step"


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks of a document."""
    return [(m[1], m[2]) for m in BLOCK.finditer(path.read_text("utf-8"))]


def table(text: str, first_header: str) -> list[list[str]]:
    """Cells of the table whose first column has that header; backquotes and escapes removed."""
    rows = []
    inside = False
    for line in text.splitlines():
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0] == first_header:
            inside = True
        elif not cells:
            inside = False
        elif inside and not set(cells[0]) <= set("-"):
            rows.append(cells)
    return rows


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def plain(line: str) -> str:
    return " ".join(line.split())


def assert_shown(shown: list[str], output: str, where: str) -> None:
    """Each shown line stands in the output, in this order; blanks count once."""
    lines = iter([plain(line) for line in output.splitlines()])
    for line in shown:
        if not line.strip():
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in plain(line).split("…")))
        assert any(pattern.fullmatch(found) for found in lines), f"{where}: not shown: {line}\n{output}"


def make_recipe(target: str) -> str:
    """The commands that `make <target>` runs."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)
    assert found
    commands = " &&".join(found[1].splitlines())
    return commands.replace("$(HOME_DIR)", "$MSGX_HOME").replace("$(DAY)", "build/day").replace("$(BIN)/", "")


class Runner:
    """Runs the blocks of one document against a database of its own."""

    def __init__(self, cli: Cli, bindir: Path, admin: dict[str, Any]) -> None:
        self.database = str(admin["dbname"])
        names = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
        libpq = {variable: str(admin[key]) for variable, key in names.items() if admin.get(key)}
        program_folder = Path(sys.executable).parent
        path = f"{program_folder}:{bindir}:{cli.environment['PATH']}"
        self.environment = cli.environment | libpq | {"PATH": path}
        self.program_folder = program_folder

    def console(self, text: str, where: str) -> None:
        steps: list[tuple[str, list[str]]] = []
        for line in text.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        script = "".join(f'{self._real(command)}\nrc=$?; echo; echo "{MARK} $rc"; (exit $rc)\n' for command, _ in steps)
        done = self._run(["sh"], script)
        for number, (command, shown) in enumerate(steps):
            output, _, rest = done.partition(f"{MARK} ")
            code, _, done = rest.partition("\n")
            assert code.isdigit(), f"{where}: {command}\n{output}"
            asked = number + 1 < len(steps) and steps[number + 1][0] == "echo $?"
            assert asked or code == "0", f"{where}: {command} ended with {code}\n{output}"
            assert "Traceback" not in output, f"{where}: {command}\n{output}"
            assert_shown(shown, output, f"{where}: {command}")

    def sql(self, steps: list[tuple[str, str]], where: str) -> None:
        script = "".join(f"{self._real(statements)}\n\\echo '{MARK}'\n" for statements, _ in steps)
        options = ["-X", "-v", "ON_ERROR_STOP=1", "-P", "pager=off", "-d", self.database]
        done = self._run(["psql", *options], script)
        results = done.split(f"{MARK}\n")
        assert len(results) == len(steps) + 1, f"{where}: {done}"
        for (_, shown), result in zip(steps, results, strict=False):
            assert_shown(shown.splitlines(), result, where)

    def _run(self, command: list[str], script: str) -> str:
        done = subprocess.run(
            command,
            input=script.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=self.environment,
            timeout=300,
            check=False,
        )
        return done.stdout.decode()

    def _real(self, text: str) -> str:
        """What the documents call `airport` is the test's own database; the checkout's folders are the test's."""
        text = re.sub(r"\bairport(?=\b|_)", self.database, text)
        text = re.sub(r"^make (\w+)$", lambda m: make_recipe(m[1]), text)
        if text == "pip install --upgrade msgx-driver":
            programs = build_next_version(Path(self.environment["MSGX_HOME"]).parent / "next").programs
            return f"PATH={programs}:$PATH"
        text = text.replace("$PWD/.msgx", "$MSGX_HOME").replace("$PWD/.venv/bin", str(self.program_folder))
        return text.replace(" build/", " $MSGX_HOME-build/")


RUNNABLE = [p for p in DOCS if any(language in ("console", "sql") for language, _ in blocks(p))]


@pytest.fixture
def new_name(pg_server: Any) -> Iterator[str]:
    """The dsn of a database that does not exist yet; afterwards what the documents made beside it is removed."""
    dsn = pg_server.new_database()
    name = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(pg_server.dsn, autocommit=True) as conn:
        conn.execute(f'drop database "{name}"'.encode())
        yield dsn
        for (role,) in conn.execute("select rolname from pg_roles where rolname like %s", (f"{name}\\_%",)).fetchall():
            conn.execute(f'drop role "{role}"'.encode())


@pytest.mark.parametrize("path", RUNNABLE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_examples_run(path: Path, cli: Cli, pg_server: Any, new_name: str, airport: Airport) -> None:
    where = path.relative_to(ROOT).as_posix()
    found = blocks(path)
    makes_its_own = any(language == "console" and "createdb" in text for language, text in found)
    runner = Runner(cli, pg_server.bindir, conninfo_to_dict(new_name if makes_its_own else airport.admin))
    for language, text in found:
        if language == "console":
            runner.console(text, where)
    steps = []
    for number, (language, text) in enumerate(found):
        if language == "sql":
            below = found[number + 1] if number + 1 < len(found) else ("", "")
            steps.append((text, below[1] if below[0] == "text" else ""))
    if steps:
        runner.sql(steps, where)


def anchors(path: Path) -> set[str]:
    found = set()
    for title in re.findall(r"^#+ (.*)$", BLOCK.sub("", path.read_text("utf-8")), re.MULTILINE):
        found.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", BLOCK.sub("", path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert ROOT in [file, *file.parents], target
        assert not anchor or anchor in anchors(file), target


def test_every_document_can_be_reached() -> None:
    linked = {
        (path.parent / name).resolve()
        for path in DOCS
        for name in re.findall(r"\]\(([^)#]+\.md)", path.read_text("utf-8"))
    }
    assert set(DOCS) - linked == {ROOT / "README.md"}


def test_settings_are_documented(cli: Cli, airport: Airport) -> None:
    rows = table(read("docs/reference/settings.md"), "name")
    documented = {codes(row[0])[0]: row for row in rows}
    settings = {s["name"]: s for s in json.loads(cli("settings", "list", "--json", "--db", airport.driver).stdout)}
    assert documented.keys() == settings.keys()
    for name, (_, default, values, meaning) in documented.items():
        setting = settings[name]
        assert codes(default) == [setting["default_value"]], name
        pattern = f"(?:{setting['pattern']})"
        for value in codes(values):
            assert value == "HH:MM" or re.fullmatch(pattern, value), (name, value)
        if re.fullmatch(r"[\w|]+", setting["pattern"]):
            assert codes(values) == setting["pattern"].split("|"), name
        for decision in re.findall(r"\bD\d+", setting["description"]):
            assert re.search(rf"\b{decision}\b", meaning), (name, decision)


def test_settings_named_anywhere_exist(airport: Airport) -> None:
    known = {str(row[0]) for row in airport.rows("select name from setting")}
    sections = {name.partition(".")[0] for name in known}
    configuration = {key for key, _, _ in load_config(environ={}).describe()}
    reserved = set(codes(read("docs/reference/contract.md").partition("## Reserved names")[2]))
    for path in DOCS:
        for name in codes(BLOCK.sub("", path.read_text("utf-8"))):
            if re.fullmatch(r"[a-z]+\.[a-z_]+", name) and name.partition(".")[0] in sections:
                assert name in known | configuration | reserved or name.endswith(".md"), f"{path.name}: {name}"
    assert not reserved & known


def sql_files() -> str:
    files = [ROOT / "sql" / "bootstrap.sql", *sorted((ROOT / "sql").glob("[pv]*/**/*.sql"))]
    return "\n".join(p.read_text("utf-8") for p in files)


def test_errors_are_documented(airport: Airport) -> None:
    text = read("docs/reference/errors.md")
    raised = set(re.findall(r"'(MX\d{3})'", sql_files()))
    titles = re.findall(r"^## (mx\d{3})$", text, re.MULTILINE)
    assert titles == sorted(code.lower() for code in raised)
    for code, section in zip(titles, re.split(r"^## mx\d{3}$", text, flags=re.MULTILINE)[1:], strict=True):
        words = ["Cause:", "The message:", "Next:"]
        assert [w for w in words if w in section] == words, code
    for path in DOCS:
        for code in re.findall(r"\bMX\d{3}\b", path.read_text("utf-8")):
            assert code in raised, f"{path.name}: {code}"
    documented = {
        (codes(state)[0] if codes(state) else "", name, treatment)
        for state, name, treatment, _ in table(text, "SQLSTATE")
    }
    rows = airport.rows("select sqlstate_prefix, error_class, treatment from error_class")
    assert documented == set(rows)


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def options(command: click.Command) -> set[str]:
    names = set()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            names |= {*parameter.opts, *parameter.secondary_opts}
    return names


def test_command_line_is_documented() -> None:
    text = read("docs/reference/cli.md")
    existing = dict(commands(program))
    rows = {" ".join(re.findall(r"^[a-z ]+[a-z]", codes(row[0])[0])) for row in table(text, "command")}
    assert rows == existing.keys()
    # What every command has is listed once, but generate needs no database; --json stands in a sentence.
    listed = {option for row in table(text, "option") for option in re.findall(r"--[a-z-]+", " ".join(codes(row[0])))}
    everywhere = set.intersection(*(options(command) for name, command in existing.items() if name != "generate"))
    assert not everywhere & options(existing["generate"])
    with_table = (
        "run",
        "replay",
        "generate",
        "flights",
        "status",
        "republish",
        "redeliver",
        "migrate up",
        "migrate plan",
    )
    own = set().union(*(options(existing[name]) for name in with_table))
    assert listed == everywhere | own
    for name, command in existing.items():
        assert options(command) <= listed, name
    sentence = re.search(r"`--json` is an option of (.*?) too\.", text, re.DOTALL)
    assert sentence
    with_json = {name for name, command in existing.items() if "--json" in options(command)}
    assert set(codes(sentence[1])) | {"replay"} == with_json


def test_commands_named_anywhere_exist() -> None:
    existing = dict(commands(program))
    names = {"--help", "--version"}.union(*(options(command) for command in existing.values()))
    groups = {name.partition(" ")[0] for name in existing}
    reserved = read("docs/reference/contract.md").partition("## Reserved names")[2]
    for path in DOCS:
        text = path.read_text("utf-8").replace(reserved, "")
        for words in re.findall(r"msgx-driver ([a-z][a-z ]*)", text):
            first, second = [*words.split(), ""][:2]
            assert first in groups, f"{path.name}: msgx-driver {words}"
            assert first in existing or f"{first} {second}" in existing, f"{path.name}: msgx-driver {words}"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", BLOCK.sub("", text)):
            assert option in (names | options(bench_program) if path.name == "performance.md" else names), (
                f"{path.name}: {option}"
            )


def test_configuration_is_documented() -> None:
    rows = table(read("docs/reference/cli.md"), "key")
    keys = [key for key, _, _ in load_config(environ={}).describe()]
    assert [codes(row[0])[0] for row in rows] == keys
    for key, environment, *_ in rows:
        expected = "MSGX_" + codes(key)[0].replace(".", "__").upper()
        assert codes(environment) == [expected]


def test_exit_codes_are_documented() -> None:
    rows = table(read("docs/operations.md"), "code")
    assert [(int(code), name) for code, name, *_ in rows] == [(int(code), code.name) for code in ExitCode]


def test_contract_names_what_exists(airport: Airport) -> None:
    text, _, reserved = read("docs/reference/contract.md").partition("## Reserved names")
    relations = {
        str(name): kind
        for name, kind in airport.rows(
            "select relname, relkind from pg_class where relnamespace = 'msgx'::regnamespace and relkind in ('r', 'v')"
        )
    }
    for header, kind in (("table", "r"), ("view", "v")):
        named = {name for row in table(text, header) for name in codes(row[0])}
        assert named == {name for name, found in relations.items() if found == kind}, header
    routines = airport.rows(
        "select proname, coalesce(array_to_string(proargnames[1:pronargs], ', '), '') from pg_proc"
        " where pronamespace = 'msgx'::regnamespace and proname !~ '^_'"
    )
    named = {codes(row[0])[0] for row in table(text, "routine")}
    assert named == {f"{name}({arguments})" for name, arguments in routines}
    for row in table(text, "routine"):
        routine = codes(row[0])[0].partition("(")[0]
        allowed = airport.rows(
            "select r from unnest(array['driver', 'operator', 'report']) as r"
            f" where has_function_privilege('msgx_' || r, to_regproc('{routine}'), 'execute')"
        )
        roles = {str(role[0]) for role in allowed}
        assert roles == ({"driver", "operator", "report"} if row[1] == "all" else set(row[1].split(", "))), routine
    existing = {*relations, *(str(name) for name, _ in routines), *dict(commands(program))}
    assert not existing & set(codes(reserved))


def test_numbers_cited_are_listed() -> None:
    requirements = read("docs/requirements.md")
    lines = set(re.findall(r"^- (\S+) \(", requirements, re.MULTILINE))
    chapters = set(re.findall(r"^#+ ((?:FS|US|OPS|HTTP)[\w.-]*)", requirements, re.MULTILINE))
    decisions = {row[0] for row in table(read("docs/decisions.md"), "#")}
    files = [*ROOT.glob("sql/**/*.sql"), *ROOT.glob("driver/**/*.py"), *DOCS]
    for file in files:
        text = file.read_text("utf-8")
        for number in re.findall(r"\bD\d{1,2}\b", text):
            assert number in decisions, f"{file.name}: {number}"
        for cited in re.findall(r"\b(?:FS-\d[\d.]*(?:-\d+)?|US-\d\d(?:/\d+)?|OPS-\d)\b", text):
            assert cited in lines | chapters, f"{file.name}: {cited}"


def test_the_example_day_is_what_its_table_says(cli: Cli, airport: Airport) -> None:
    rows = table(read("examples/README.md"), "#")
    expected = json.loads(read("examples/expected.json"))
    files = sorted((ROOT / "examples" / "day").glob("*.xml"))
    assert [int(row[0]) for row in rows] == [int(file.name.partition("-")[0]) for file in files]
    arguments = ("replay", "--db", airport.driver, str(ROOT / "examples" / "day"))
    for _ in range(2):
        cli(*arguments, "--expect", str(ROOT / "examples" / "expected.json"))
    outcome = airport.rows(
        "select message_id, status, (select count(*) from msg_event e where e.message_id = s.message_id)"
        " from proc_state s order by 1"
    )
    assert outcome == [(int(row[0]), row[2], int(row[3])) for row in rows]
    states = [row[2].lower() for row in rows]
    counts = {name: states.count(name) for name in ("succeeded", "skipped", "failed", "dead")}
    assert expected == expected | counts | {
        "messages": len(rows),
        "events": sum(int(row[3]) for row in rows),
        "flights": int([row[4] for row in rows if row[4]][-1]),
    }
    before = cli("flights", "--db", airport.driver).stdout
    again = json.loads(cli(*arguments, "--append", "--json", expect=ExitCode.DEAD).stdout)
    assert {name: again[name] for name in ("succeeded", "skipped", "failed", "dead", "events")} == {
        "succeeded": 0,
        "skipped": 56,
        "failed": 0,
        "dead": 4,
        "events": 0,
    }
    assert cli("flights", "--db", airport.driver).stdout == before
