"""A generated day through the command line: every message ends as the generator said before there was a database."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from msgx_driver.errors import ExitCode

from .conftest import Airport, Cli


def make_day(cli: Cli, folder: Path, flights: int, seed: int) -> dict[str, Any]:
    done = cli("generate", "--flights", str(flights), "--seed", str(seed), "--out", str(folder), "--json")
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert json.loads(done.stdout) == {name: value for name, value in manifest.items() if name != "details"}
    return manifest


def outcomes(airport: Airport) -> dict[str, dict[str, Any]]:
    """Status, kind of reason and events of every message, in the words of the manifest."""
    rows = airport.rows(
        "select message_id, status,"
        " case status when 'DEAD' then coalesce(last_error_class, error_class)"
        " when 'SKIPPED' then case when reason like 'ignored:%' then reason else split_part(reason, ':', 1) end"
        " else coalesce(result -> 'not_applied' -> 0 ->> 'reason', case when result ? 'equal' then 'equal' end) end,"
        " (select count(*) from msg_event e where e.message_id = s.message_id)"
        " from proc_state s order by 1"
    )
    return {str(n): {"status": status, "reason": reason, "events": events} for n, status, reason, events in rows}


@pytest.mark.parametrize("seed", [3, 20260909])
def test_every_message_ends_as_booked(cli: Cli, airport: Airport, tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "day"
    manifest = make_day(cli, folder, 40, seed)
    details = manifest["details"]
    booked = {
        n: {name: value for name, value in row.items() if name != "kind"}
        for n, row in details["messages_by_id"].items()
    }
    for new in (manifest["messages"], 0):
        arguments = ("replay", str(folder), "--db", airport.driver, "--json")
        done = cli(*arguments, "--expect", str(folder / "manifest.json"))
        assert json.loads(done.stdout)["new"] == new
        assert outcomes(airport) == booked
        alive = airport.rows("select flid, fday::text, state_version from flight_schd")
        assert {flid: [day, version] for flid, day, version in alive} == details["flights_by_id"]
        gone = airport.rows(
            "select flid, state_version from flight_tombstone t"
            " where not exists (select from flight_schd f where f.flid = t.flid)"
        )
        assert dict(gone) == details["deleted_by_id"]  # type: ignore[arg-type]
        assert airport.rows("select * from consistency_check") == []


def test_a_missing_message_is_noticed(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    manifest = make_day(cli, tmp_path, 40, 3)
    lines = (tmp_path / "day.jsonl").read_bytes().splitlines(keepends=True)
    booked = manifest["details"]["messages_by_id"]
    gone = next(n for n in range(200, len(lines)) if booked[str(n)]["events"] == 2)
    (tmp_path / "day.jsonl").write_bytes(b"".join(lines[: gone - 1] + lines[gone:]))
    arguments = ("replay", str(tmp_path), "--db", airport.driver, "--expect", str(tmp_path / "manifest.json"))
    done = cli(*arguments, expect=ExitCode.INVARIANT)
    counts = f"messages {len(lines) - 1} instead of {len(lines)}"
    assert counts in done.stderr.decode()
    assert f"events {manifest['events'] - 2} instead of {manifest['events']}" in done.stderr.decode()


def test_bad_arguments(cli: Cli, tmp_path: Path) -> None:
    assert b"--out" in cli("generate", expect=ExitCode.USAGE).stderr
    assert b"--out is empty: name a folder" in cli("generate", "--out", "", expect=ExitCode.USAGE).stderr
    assert not list(cli.cwd.iterdir())
    assert b"--flights" in cli("generate", "--flights", "39", "--out", str(tmp_path), expect=ExitCode.USAGE).stderr
    (tmp_path / "file").write_text("")
    done = cli("generate", "--flights", "40", "--out", str(tmp_path / "file"), expect=ExitCode.USAGE)
    assert done.stderr.decode().startswith(f"msgx-driver: cannot write the day into {tmp_path / 'file'}: ")


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": 1, "xml_base64": "PE1T*"}',
        b'{"id": 1, "xml_base64": "PE1TRy8+", "xml": "<MSG/>"}',
        b'{"id": 1, "xml_base64": 7}',
        b'{"id": 1}',
    ],
)
def test_bad_lines(cli: Cli, airport: Airport, line: bytes) -> None:
    done = cli("replay", "-", "--db", airport.driver, stdin=line + b"\n", expect=ExitCode.USAGE)
    assert "stdin line 1 is not" in done.stderr.decode()


def test_bytes_and_text_of_a_line(cli: Cli, airport: Airport) -> None:
    """The declaration counts for bytes and not for text (contract 1)."""
    declaration = '<?xml version="1.0" encoding="GBK"?>'
    meta = "<META><SNDR>A</SNDR><SEQN>{0}</SEQN><TYPE>FLOP</TYPE><STYP>REMC</STYP></META>"
    xml = declaration + f"<MSG>{meta}<FLOP><FLID>{{0}}</FLID><REMC>备降</REMC></FLOP></MSG>"
    lines = [
        {"id": 1, "xml": xml.format(1)},
        {"id": 2, "xml_base64": base64.b64encode(xml.format(2).encode("gbk")).decode()},
    ]
    cli("replay", "-", "--db", airport.driver, stdin="\n".join(map(json.dumps, lines)).encode())
    assert airport.rows("select flid, remc from flight_schd order by 1") == [("1", "备降"), ("2", "备降")]
    assert airport.rows("select encoding from message_raw order by message_id") == [("text",), ("bytes",)]
