"""`msgx-driver replay` as its users meet it: outcomes, exit codes, files, bad input."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from .conftest import PROGRAM, Airport, Cli

TIMES = re.compile(rb'"(UPDATED_AT|updated_at)":"[^"]+"')


def meta(seqn: object, type_: str, styp: str, sndr: str = "AODB", dttm: str = "20260909080000") -> str:
    return (
        f"<META><SNDR>{sndr}</SNDR><SEQN>{seqn}</SEQN><DTTM>{dttm}</DTTM><TYPE>{type_}</TYPE><STYP>{styp}</STYP></META>"
    )


def flop(seqn: object, styp: str, flid: str, body: str) -> str:
    return f"<MSG>{meta(seqn, 'FLOP', styp)}<FLOP><FLID>{flid}</FLID>{body}</FLOP></MSG>"


def plan(seqn: object, *flids: str, day: str = "09SEP26", styp: str = "DNLD", recs: int | None = None) -> str:
    records = "".join(f"<FLTR><FLID>{f}</FLID><SODT>{day}0710</SODT></FLTR>" for f in flids)
    count = len(flids) if recs is None else recs
    return f"<MSG>{meta(seqn, 'SCHD', styp)}<SCHD><RECS>{count}</RECS><FDAY>{day}</FDAY>{records}</SCHD></MSG>"


def lines(*messages: str, ids: bool = True) -> bytes:
    rows = [{"id": n, "xml": m} if ids else {"xml": m} for n, m in enumerate(messages, 1)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def summary(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def tables(airport: Airport) -> dict[str, list[Any]]:
    """Everything that a message may change, times aside."""
    names = [str(r[0]) for r in airport.rows("select tablename from pg_tables where schemaname = 'msgx'")]
    skip = {"pipeline_lock", "schema_history", "setting", "proc_state", "message_raw", "message_identity"}
    return {n: airport.rows(f"select * from {n} order by 1, 2") for n in sorted(names) if n not in skip}


DAY = [
    plan(1, "A", "B", "C"),
    flop(2, "GTDT", "A", '<GTDT GTNO="1" GATE="A1"/><GTDT GTNO="2" GATE="B2"/>'),
    flop(3, "ESTT", "B", "<ESTT>09SEP260800</ESTT>"),
    plan(4, "A", "C", "D"),
    flop(5, "SRVT", "C", '<SRVT CODE="W"/><SRVT CODE="P">text</SRVT>'),
    flop(6, "FDEL", "D", "<FDEL/>"),
    f"<MSG>{meta(7, 'LDM', 'X')}</MSG>",
    flop(2, "GTDT", "A", '<GTDT GTNO="1" GATE="A1"/><GTDT GTNO="2" GATE="B2"/>'),
    "<MSG><META>",
    flop(8, "ZZZZ", "A", ""),
]


def test_counts_exit_codes_and_second_run(cli: Cli, airport: Airport) -> None:
    first = cli("replay", "-", "--json", "--db", airport.driver, stdin=lines(*DAY), expect=7)
    counts = summary(first)
    assert first.stderr == b""
    assert counts == {
        "messages": 10, "new": 10, "done": 0, "succeeded": 6, "skipped": 2, "failed": 0, "dead": 2,
        "flights": 2, "deleted": 2, "events": 15, "seconds": counts["seconds"],
    }  # fmt: skip
    before = tables(airport)
    again = summary(cli("replay", "-", "--json", "--db", airport.driver, stdin=lines(*DAY), expect=7))
    assert again == counts | {"new": 0, "done": 10, "seconds": again["seconds"]}
    text = cli("replay", "-", "--db", airport.driver, stdin=lines(*DAY), expect=7).stdout.decode()
    assert "10 messages: 0 new, 10 already done" in text
    assert "message 9: not well-formed XML" in text
    assert "kind FLOP/ZZZZ is unknown or disabled" in text
    assert "EXHAUSTED/UNSUPPORTED" in text
    assert tables(airport) == before


def test_append_changes_neither_state_nor_outbox(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(*DAY), expect=7)
    before = tables(airport)
    appended = cli("replay", "-", "--append", "--json", "--db", airport.driver, stdin=lines(*DAY), expect=7)
    counts = summary(appended)
    assert (counts["new"], counts["succeeded"], counts["skipped"], counts["dead"]) == (10, 0, 9, 1)
    assert counts["events"] == 0
    assert tables(airport) == before
    rows = airport.rows("select message_id, split_part(reason, ':', 1) from proc_state where message_id > 10")
    reasons = {row[0]: row[1] for row in rows}
    assert reasons == {
        11: "duplicate", 12: "duplicate", 13: "duplicate", 14: "duplicate", 15: "duplicate", 16: "duplicate",
        17: "ignored", 18: "duplicate", 19: "message 19", 20: "duplicate-of-dead",
    }  # fmt: skip


def test_other_bytes_are_refused_whole(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A")))
    done = cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A", "B"), plan(2, "C")), expect=2)
    assert b"message 1 is already here with other bytes" in done.stderr
    assert b"--append" in done.stderr
    assert airport.rows("select count(*) from proc_state") == [(1,)]


def test_stop_on_dead_then_go_on(cli: Cli, airport: Airport) -> None:
    messages = [flop(1, "ESTT", "A", "<ESTT>1</ESTT>"), "<x/>", flop(2, "ESTT", "A", "<ESTT>2</ESTT>")]
    args = ("replay", "-", "--json", "--db", airport.driver)
    stopped = summary(cli(*args, "--stop-on-dead", stdin=lines(*messages), expect=7))
    assert (stopped["succeeded"], stopped["dead"], stopped["failed"]) == (1, 1, 1)
    rest = summary(cli(*args, stdin=lines(*messages), expect=7))
    assert (rest["new"], rest["succeeded"], rest["dead"], rest["failed"]) == (0, 2, 1, 0)


def test_expect_decides_the_exit_code(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text('{"messages": 1, "dead": 1}')
    bad = tmp_path / "bad.json"
    bad.write_text('{"messages": 2, "dead": 1}')
    cli("replay", "-", "--db", airport.driver, "--expect", str(good), stdin=lines("<x/>"), expect=0)
    done = cli("replay", "-", "--db", airport.driver, "--expect", str(bad), stdin=lines("<x/>"), expect=6)
    assert b"messages 1 instead of 2" in done.stderr
    bad.write_text('{"mesages": 2}')
    done = cli("replay", "-", "--db", airport.driver, "--expect", str(bad), stdin=lines("<x/>"), expect=2)
    assert b"unknown count mesages" in done.stderr


def fold(path: Path) -> dict[str, Any]:
    """A consumer: replace the whole state per FLID, drop it on a tombstone; newest (epoch, version) wins."""
    states: dict[str, Any] = {}
    order: dict[str, tuple[int, int]] = {}
    for line in path.read_text("utf-8").splitlines():
        event = json.loads(line)
        if not event["topic"].endswith(".schd"):
            continue
        key = (int(event["headers"]["epoch"]), int(event["headers"]["state_version"]))
        flid = event["key"]
        assert key >= order.get(flid, (0, 0))
        order[flid] = key
        if event["headers"]["kind"] == "TOMBSTONE":
            assert event["value"] == {"DELETED": True, "FLID": flid}
            states.pop(flid, None)
        else:
            assert event["headers"]["state_version"] == str(event["value"]["STATE_VERSION"])
            states[flid] = event["value"]
    return states


def test_events_fold_to_the_projection_and_are_reproducible(
    cli: Cli, new_airport: Callable[[], Airport], tmp_path: Path
) -> None:
    files = []
    for n in (1, 2):
        airport = new_airport()
        file = tmp_path / f"events-{n}.jsonl"
        cli("replay", "-", "--json", "--db", airport.driver, "--events", str(file), stdin=lines(*DAY), expect=7)
        projections = json.loads(cli("flights", "--db", airport.driver).stdout)
        assert fold(file) == {p["FLID"]: p for p in projections}
        assert airport.rows("select distinct status from msg_event") == [("PENDING",)]
        files.append(TIMES.sub(rb'"\1":"T"', file.read_bytes()))
    assert files[0] == files[1]
    notices = [json.loads(x) for x in files[0].splitlines() if b'"topic":"msgx.msg"' in x]
    ids = [int(n["headers"]["event_id"]) for n in notices]
    assert ids == sorted(ids)
    assert [n["key"] for n in notices] == ["A", "B", "C", "D"]
    assert list(notices[0]["headers"]) == sorted(notices[0]["headers"])
    state = json.loads(next(x for x in files[0].splitlines() if b'"key":"C"' in x and b"schd" in x))
    assert state["value"]["SRVT"] == [{"CODE": "W"}, {"CODE": "P", "TEXT": "text"}]


def test_files_folders_natural_order_and_encodings(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    (day / "2.xml").write_text(flop(1, "REMC", "F", "<REMC>first</REMC>"), "utf-8")
    gbk = '<?xml version="1.0" encoding="GBK"?>' + flop(2, "REMC", "F", "<REMC>登机口变更</REMC>")
    (day / "10.xml").write_bytes(gbk.encode("gbk"))
    (day / "notes.txt").write_text("not a message")
    counts = summary(cli("replay", str(day), "--json", "--db", airport.driver))
    assert counts["messages"] == 2
    assert airport.rows("select remc from flight_schd") == [("登机口变更",)]
    assert airport.rows("select payload from message_raw where message_id = 2") == [(gbk.encode("gbk"),)]
    assert airport.rows("select encoding from message_raw") == [("bytes",), ("bytes",)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"id": 1}\n', "line 1"),
        (b'{"id": 1, "xml": "<a/>"}\nnot json\n', "line 2"),
        (b'{"id": 0, "xml": ""}\n', "id must be a whole number"),
        (b'{"id": true, "xml": ""}\n', "id must be a whole number"),
        (b'{"xml": "\\ud800"}\n', "line 1"),
        (b'["xml"]\n', "line 1"),
        (b'{"id": 5, "xml": "a"}\n{"id": 5, "xml": "b"}\n', "message 5 stands twice"),
        (b"\xff\xfe{}\n", "line 1"),
    ],
)
def test_bad_json_lines_name_the_line(
    cli: Cli, airport: Airport, tmp_path: Path, content: bytes, complaint: str
) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(content)
    done = cli("replay", str(file), "--db", airport.driver, expect=2)
    assert complaint in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) <= 2
    assert airport.rows("select count(*) from proc_state") == [(0,)]


def test_unusable_paths(cli: Cli, airport: Airport, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.csv").write_text("x")
    for path, complaint in (
        ("missing.xml", "No such file"),
        ("empty", "holds no *.xml"),
        ("other.csv", "neither *.xml nor *.jsonl"),
    ):
        done = cli("replay", str(tmp_path / path), "--db", airport.driver, expect=2)
        assert complaint in done.stderr.decode()
    done = cli("replay", "-", "--events", str(tmp_path / "no" / "x"), "--db", airport.driver, expect=2)
    assert b"cannot write the events file" in done.stderr
    cli("replay", expect=2)


def test_database_troubles_have_their_exit_codes(cli: Cli, airport: Airport, pg_server: Any) -> None:
    done = cli("replay", "-", "--db", "host=/nowhere dbname=x", expect=4)
    assert b"the database does not answer" in done.stderr
    assert cli("status", "--db", "what is this", expect=3).stderr
    empty = pg_server.new_database()
    done = cli("replay", "-", "--db", empty, stdin=lines("<x/>"), expect=5)
    assert b"schema msgx is not in this database" in done.stderr
    assert b"run: msgx-driver migrate up --db DSN" in done.stderr
    airport.execute("do $$ begin create role nobody_yet login; exception when duplicate_object then null; end $$")
    done = cli("status", "--db", airport.driver.replace("pump", "nobody_yet"), expect=3)
    assert b"it is no member of msgx_driver" in done.stderr
    airport.execute("insert into inbox_cursor (source, watermark) values ('mailbox', 7)")
    done = cli("replay", "-", "--db", airport.driver, stdin=lines("<x/>"), expect=3)
    assert b"belongs to mailbox mailbox" in done.stderr
    airport.execute("delete from schema_history where kind = 'versioned'")
    done = cli("status", "--db", airport.driver, expect=5)
    assert b"V0001__initial.sql is not applied" in done.stderr
    airport.execute("create or replace function contract_version() returns integer language sql as 'select 2'")
    done = cli("status", "--db", airport.driver, expect=5)
    assert b"contract version 2" in done.stderr


def test_a_second_writer_ends_with_8(cli: Cli, airport: Airport) -> None:
    with psycopg.connect(airport.admin, autocommit=True, options="-c search_path=msgx") as conn:
        conn.execute("select acquire_writer(null)")
        done = cli("replay", "-", "--db", airport.driver, stdin=lines("<x/>"), expect=8)
        assert f"another writer is active (pid {conn.info.backend_pid}".encode() in done.stderr
        assert airport.rows("select count(*) from proc_state") == [(0,)]
        assert b'"queue"' in cli("status", "--json", "--db", airport.driver).stdout
    cli("replay", "-", "--db", airport.driver, stdin=lines("<x/>"), expect=7)


def test_a_writer_that_lost_its_right_cannot_write(airport: Airport) -> None:
    options = "-c search_path=msgx"
    with (
        psycopg.connect(airport.admin, autocommit=True, options=options) as first,
        psycopg.connect(airport.admin, autocommit=True, options=options) as second,
    ):
        first.execute("select acquire_writer(null)")
        first.execute("select enqueue_messages('t', '{1}', array['x'::bytea], '{text}', null, null)")
        first.execute("select pg_advisory_unlock_all()")
        second.execute("select acquire_writer(null)")
        with pytest.raises(psycopg.Error) as caught:
            first.execute("select process_message(1, '{}', null)")
        assert caught.value.sqlstate == "MX401"
        # An unclean change of writer makes the head the suspect (D35).
        assert second.execute("select attempts, status from proc_state").fetchall() == [(1, "FAILED")]


def test_lost_state_stops_with_6(cli: Cli, airport: Airport) -> None:
    cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A", "B")))
    airport.execute("delete from flight_schd where flid = 'A'")
    done = cli("replay", "-", "--db", airport.driver, stdin=lines(plan(1, "A", "B")), expect=6)
    assert b"state is lost: 1 flights" in done.stderr


def test_killed_and_continued_ends_like_undisturbed(cli: Cli, new_airport: Callable[[], Airport]) -> None:
    messages = [plan(1, *(f"F{n}" for n in range(50)))]
    messages += [flop(n, "ESTT", f"F{n % 50}", f"<ESTT>{n}</ESTT>") for n in range(2, 400)]
    quiet, killed = new_airport(), new_airport()
    cli("replay", "-", "--db", quiet.driver, stdin=lines(*messages))
    with (
        subprocess.Popen(
            [PROGRAM, "replay", "-", "--db", killed.driver], stdin=subprocess.PIPE, env=cli.environment, cwd=cli.cwd
        ) as process,
        psycopg.connect(killed.admin, autocommit=True, options="-c search_path=msgx") as conn,
    ):
        assert process.stdin is not None
        process.stdin.write(lines(*messages))
        process.stdin.close()
        while process.poll() is None:
            row = conn.execute("select count(*) from proc_state where status = 'SUCCEEDED'").fetchone()
            if row and row[0] > 20:
                process.kill()
    left = killed.rows("select count(*) from proc_state where status = 'PENDING'")[0][0]
    assert isinstance(left, int)
    assert left > 0
    cli("replay", "-", "--db", killed.driver, stdin=lines(*messages))

    def content(airport: Airport) -> list[list[Any]]:
        queries = (
            "select message_id, status, attempts, reason, result from proc_state order by 1",
            "select event_id, target, kind, flid, state_version, message_id, payload from msg_event order by 1",
            "select flid, estt, fday, state_version, last_message_id from flight_schd order by 1",
            "select fday, version, last_message_id from schd_gen",
        )
        return [airport.rows(query) for query in queries]

    assert content(killed) == content(quiet)


def test_progress_only_on_a_terminal(cli: Cli, airport: Airport) -> None:
    data = lines(*DAY)
    assert cli("replay", "-", "--db", airport.driver, stdin=data, expect=7).stderr == b""
    for extra, shown in (((), True), (("--no-progress",), False)):
        master, slave = pty.openpty()
        with subprocess.Popen(
            [PROGRAM, "replay", "-", "--append", "--json", "--db", airport.driver, *extra],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave, env=cli.environment | {"TERM": "xterm"},
            cwd=cli.cwd,
        ) as process:  # fmt: skip
            os.close(slave)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(data)
            process.stdin.close()
            seen = b""
            # Reading a terminal whose last writer has gone fails with EIO.
            with contextlib.suppress(OSError):
                while part := os.read(master, 4096):
                    seen += part
            assert json.loads(process.stdout.read())["new"] == 10
        os.close(master)
        assert (b"replay" in seen) is shown, seen


def test_hostile_values_stay_data(cli: Cli, airport: Airport) -> None:
    evil = "x'); drop table msgx.flight_schd; --"
    messages = [
        flop(1, "REMC", "F'1;--", f"<REMC>{evil}\x1b</REMC>".replace("\x1b", "")),
        flop(2, "REMC", "F2", "<REMC>[link=x]a[/link] :smile: \u009b31mred</REMC>"),
        f"<MSG>{meta(3, 'FLOP', 'ESTT', sndr='A|B')}<FLOP><FLID>F2</FLID><ESTT>b</ESTT></FLOP></MSG>",
    ]
    out = cli("replay", "-", "--db", airport.driver, stdin=lines(*messages)).stdout
    assert "\u009b".encode() not in out
    assert b"[link=x]" in out
    assert airport.rows("select remc from flight_schd where flid like '%--'") == [(evil,)]
    keys = [str(r[0]) for r in airport.rows("select identity_key from message_identity order by 1")]
    assert r"A\|B|FLOP|ESTT|3" in keys
