from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from msgx_driver import log
from msgx_driver.log import flush_logging, redact, setup_logging

logger = logging.getLogger("msgx.test")


@pytest.fixture(autouse=True)
def own_root() -> Iterator[None]:
    """Give the test a root logger without handlers, and put back what was there."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers.clear()
    yield
    flush_logging()
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    assert flush_logging()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_line_with_the_named_extras_and_no_others() -> None:
    stream = io.StringIO()
    setup_logging("INFO", stream)
    extra = {
        "message_id": 42, "flid": "CA100", "event_id": 7, "outcome": "DEAD", "sqlstate": "MX1", "attempt": 2,
        "ms": 1.5, "payload": "<MSG>secret</MSG>",
    }  # fmt: skip
    logger.info("processed\nmessage %s", "é中", extra=extra)
    (line,) = lines(stream)
    ts = line.pop("ts")
    assert line == {
        "level": "INFO", "logger": "msgx.test", "msg": "processed\nmessage é中", "message_id": 42,
        "flid": "CA100", "event_id": 7, "outcome": "DEAD", "sqlstate": "MX1", "attempt": 2, "ms": 1.5,
    }  # fmt: skip
    assert ts.endswith("Z")
    assert abs((datetime.fromisoformat(ts) - datetime.now(UTC)).total_seconds()) < 60
    assert list(json.loads(stream.getvalue()))[:3] == ["ts", "level", "logger"]


def test_absent_extras_are_left_out_and_zero_is_not_absent() -> None:
    stream = io.StringIO()
    setup_logging("INFO", stream)
    logger.info("x", extra={"ms": 0, "flid": None})
    (line,) = lines(stream)
    assert set(line) == {"ts", "level", "logger", "msg", "ms"}


@pytest.mark.parametrize("level", ["warning", "WARNING"])
def test_levels_below_are_not_written(level: str) -> None:
    stream = io.StringIO()
    setup_logging(level, stream)
    logger.info("no")
    logger.warning("yes")
    assert [line["msg"] for line in lines(stream)] == ["yes"]


def test_setting_up_again_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    setup_logging("INFO", first)
    logger.info("one")
    setup_logging("INFO", second)
    logger.info("two")
    assert [line["msg"] for line in lines(second)] == ["two"]
    assert [json.loads(line)["msg"] for line in first.getvalue().splitlines()] == ["one"]


def test_an_exception_shows_its_kind_and_place_but_not_the_values_in_its_detail() -> None:
    detail = "DETAIL: Key (flno)=(CA1501) exists"
    stream = io.StringIO()
    setup_logging("INFO", stream)
    try:
        raise ValueError("bad value\n" + detail)
    except ValueError:
        logger.exception("failed")
    (line,) = lines(stream)
    assert line["error"] == "ValueError: bad value"
    assert "test_log.py" in line["traceback"]
    assert "CA1501" not in json.dumps(line)


def test_warnings_become_records() -> None:
    stream = io.StringIO()
    setup_logging("INFO", stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old thing", stacklevel=1)
    (line,) = lines(stream)
    assert line["level"] == "WARNING"
    assert "old thing" in line["msg"]


@pytest.mark.parametrize(
    ("text", "hidden", "kept"),
    [
        ("connect host=h password=s3cret user=u", "s3cret", "user=u"),
        ("password='s3 cr\\'et' user=u", "cr", "user=u"),
        ("sslpassword = s3cret", "s3cret", "sslpassword"),
        ("postgresql://u:s3cret@h:5432/db", "s3cret", "@h:5432/db"),
        ("postgresql://u:s3cret@h/db?password=other&x=1", "other", "x=1"),
        ('{"password": "s3cret", "a": 1}', "s3cret", '"a": 1'),
        ("Authorization: Bearer abc.def", "abc.def", "Authorization"),
        ("lease_token=12345", "12345", "lease_token"),
        ("PGPASSWORD=s3cret", "s3cret", "PGPASSWORD"),
    ],
)
def test_secrets_are_masked(text: str, hidden: str, kept: str) -> None:
    assert hidden not in redact(text)
    assert kept in redact(text)
    assert "****" in redact(text)


@pytest.mark.parametrize(
    "text", ["not well-formed (invalid token): line 1", "http://h:8080/x", "09:10@gate", "a::b user@host"]
)
def test_harmless_text_is_kept(text: str) -> None:
    assert redact(text) == text


def test_redacting_long_text_is_fast() -> None:
    start = time.perf_counter()
    redact("a" * 100_000)
    redact("postgresql" * 10_000)
    assert time.perf_counter() - start < 5


def test_secrets_in_messages_and_errors_are_masked() -> None:
    stream = io.StringIO()
    setup_logging("INFO", stream)
    try:
        raise ValueError("cannot connect with password=s3cret")
    except ValueError:
        logger.exception("dsn postgresql://u:s3cret@h/db", extra={"outcome": "password=s3cret"})
    lines(stream)
    assert "s3cret" not in stream.getvalue()


def test_a_record_that_cannot_be_formatted_does_not_raise() -> None:
    # Not for the handlers of the test runner: those do raise.
    logging.getLogger().handlers.clear()
    stream = io.StringIO()
    setup_logging("INFO", stream)
    logger.info("%d", "text")
    logger.info("after", extra={"outcome": object()})
    assert [line["msg"] for line in lines(stream)] == ["after"]


def test_a_closed_stream_does_not_raise() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        setup_logging("INFO", stream)
        os.close(read)
        logger.info("nobody reads")
        assert flush_logging()
    logger.info("the stream itself is closed")
    assert flush_logging()


def test_a_stuck_reader_blocks_nobody_and_losses_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "QUEUE_RECORDS", 50)
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream, os.fdopen(read, "rb") as reader:
        setup_logging("INFO", stream)
        for n in range(200):
            logger.info("%d %s", n, "x" * 5000)
        assert not flush_logging(0.01)
        os.set_blocking(read, False)
        data = bytearray()
        deadline = time.monotonic() + 30
        while not flush_logging(0.01) and time.monotonic() < deadline:
            data += reader.read() or b""
        logger.info("the end")
        while b"the end" not in data and time.monotonic() < deadline:
            data += reader.read() or b""
    got = [json.loads(line)["msg"] for line in data.decode().splitlines()]
    # The writer may get a record out while others are lost: each gap is counted where it is.
    passed = lost = 0
    for text in got[:-1]:
        number, word = text.split()[:2]
        if word == "log":
            lost += int(number)
        else:
            assert int(number) == passed + lost
            passed += 1
    assert got[-1] == "the end"
    assert passed + lost == 200
    assert 50 <= passed < 200


SCRIPT = """
import logging
from msgx_driver.log import setup_logging
setup_logging("INFO")
for n in range(5000):
    logging.info("%d %s", n, "x" * 100)
print("done", flush=True)
"""


def test_a_process_ends_although_nobody_reads_its_stderr() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"done\n"
        assert process.wait(timeout=30) == 0


def test_a_process_writes_everything_it_logged_before_its_end() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=True)
    assert [int(json.loads(line)["msg"].split()[0]) for line in done.stderr.splitlines()] == list(range(5000))
