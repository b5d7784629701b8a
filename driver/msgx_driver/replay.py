"""Replay of message files through the real pipeline: enqueue, decode, process (contract §6, `replay`)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import psycopg
from natsort import natsorted

from msgx_driver.clock import Clock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.loops.pump import Pump
from msgx_driver.store import Store, stop_error
from msgx_driver.wire.canonical import canonical_json

__all__ = ["InputMessage", "Summary", "read_inputs", "replay", "write_events"]

SOURCE: Final = "replay"
MESSAGE_BYTES: Final = 64 << 20
CHUNK_ROWS: Final = 500
CHUNK_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class InputMessage:
    """One message of the input: its id (None = by position), bytes, `bytes` or `text`, and where it stood."""

    message_id: int | None
    payload: bytes
    encoding: str
    origin: str


@dataclass(frozen=True)
class Summary:
    """What became of the messages of this input; `new` were enqueued by this call, `done` were there before."""

    messages: int
    new: int
    done: int
    succeeded: int
    skipped: int
    failed: int
    dead: int
    flights: int
    deleted: int
    events: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def read_inputs(paths: Iterable[str], stdin: BinaryIO) -> list[InputMessage]:
    """Read `*.xml`, `*.jsonl`, folders of them in natural order, and `-`; MsgxError USAGE says what is wrong."""
    messages: list[InputMessage] = []
    for name in paths:
        if name == "-":
            data = stdin.read()
            if data.lstrip()[:1] == b"{":
                messages += _json_lines(data, "stdin")
            else:
                messages.append(InputMessage(None, data, "bytes", "stdin"))
            continue
        path = Path(name)
        files = [path]
        if path.is_dir():
            found = [p for p in path.rglob("*") if p.suffix.lower() in (".xml", ".jsonl")]
            files = natsorted(found, key=lambda p: p.relative_to(path).as_posix())
            if not files:
                raise _usage(f"folder {name} holds no *.xml and no *.jsonl")
        for file in files:
            messages += _read_file(file)
    return messages


def _read_file(file: Path) -> Iterator[InputMessage]:
    try:
        status = file.stat()
        if file.suffix not in (".xml", ".jsonl"):
            raise _usage(f"{file} is neither *.xml nor *.jsonl")
        if not stat.S_ISREG(status.st_mode):
            raise _usage(f"{file} is no regular file; for a pipe use -")
        if file.suffix == ".xml" and status.st_size > MESSAGE_BYTES:
            raise _usage(f"{file} is larger than {MESSAGE_BYTES >> 20} MiB; no message is")
        data = file.read_bytes()
    except OSError as e:
        raise _usage(f"cannot read {file}: {e.strerror}") from e
    if file.suffix == ".xml":
        yield InputMessage(None, data, "bytes", str(file))
    else:
        yield from _json_lines(data, str(file))


def _json_lines(data: bytes, origin: str) -> Iterator[InputMessage]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{origin} line {number}"
        try:
            row = json.loads(line)
            payload, encoding = _line_payload(row)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
            shape = '{"id": …, "xml": "…"} or {"id": …, "xml_base64": "…"}'
            raise _usage(f"{where} is not {shape} in UTF-8 ({type(e).__name__})") from e
        message_id = row.get("id")
        if message_id is not None and (type(message_id) is not int or not 0 < message_id < 2**63):
            raise _usage(f"{where}: id must be a whole number from 1")
        yield InputMessage(message_id, payload, encoding, where)


def _line_payload(row: dict[str, Any]) -> tuple[bytes, str]:
    """Payload and encoding of a JSON line: "xml" is text that was decoded before, "xml_base64" bytes as received."""
    if "xml_base64" not in row:
        return row["xml"].encode("utf-8"), "text"
    if "xml" in row:
        raise ValueError("xml and xml_base64 side by side")
    return base64.b64decode(row["xml_base64"], validate=True), "bytes"


def _usage(message: str) -> MsgxError:
    return MsgxError(message, exit_code=ExitCode.USAGE, hint="see msgx-driver replay --help")


def replay(
    store: Store,
    clock: Clock,
    messages: Sequence[InputMessage],
    *,
    append: bool = False,
    stop_on_dead: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[int], Summary]:
    """Enqueue the messages, process the queue until it is empty, and report; returns their ids and the summary.

    `on_progress(finished, total)` is called after each terminal message. Raises MsgxError.
    """
    started = clock.monotonic()
    mailbox = store.foreign_cursor(SOURCE)
    if mailbox is not None:
        raise MsgxError(
            f"schema {store.schema} belongs to mailbox {mailbox}; replay would mix its ids",
            exit_code=ExitCode.CONFIG,
            hint="use a schema of its own for replay (--schema)",
        )
    try:
        store.acquire_writer()
    except psycopg.Error as e:
        raise stop_error(e) or e from e
    try:
        rows = _allot_ids(messages, store.highest_id() if append else None)
        new = _enqueue(store, rows)
        ids = sorted(rows)
        done = len(ids) - new
        finished = 0

        def go_on(outcome: dict[str, Any]) -> bool:
            nonlocal finished
            finished += 1
            if on_progress is not None:
                on_progress(finished, max(finished, new))
            return not (stop_on_dead and outcome["status"] == "DEAD")

        Pump(store, clock).drain(go_on)
        counts = store.counts_of(ids)
    finally:
        # A connection that is broken or in the middle of a command gives its right back by ending.
        with contextlib.suppress(psycopg.Error, MsgxError):
            store.release_writer()
    return ids, Summary(
        messages=len(ids),
        new=new,
        done=done,
        succeeded=counts.get("SUCCEEDED", 0),
        skipped=counts.get("SKIPPED", 0),
        failed=counts.get("FAILED", 0) + counts.get("PENDING", 0),
        dead=counts.get("DEAD", 0),
        flights=counts["flights"],
        deleted=counts["deleted"],
        events=counts["events"],
        seconds=round(clock.monotonic() - started, 3),
    )


def _allot_ids(messages: Sequence[InputMessage], after: int | None) -> dict[int, InputMessage]:
    rows: dict[int, InputMessage] = {}
    for position, message in enumerate(messages, 1):
        message_id = after + position if after is not None else message.message_id or position
        if message_id >= 2**63:
            raise _usage("the ids are used up: the highest one in the database is near 2^63")
        other = rows.get(message_id)
        if other is not None and other.payload != message.payload:
            raise _usage(f"message {message_id} stands twice with different bytes: {other.origin} and {message.origin}")
        rows[message_id] = message
    return rows


def _enqueue(store: Store, rows: dict[int, InputMessage]) -> int:
    new = 0
    # One transaction: a refused id leaves nothing of this call behind.
    try:
        with store.conn.transaction():
            for chunk in _chunks(rows):
                new += store.enqueue(SOURCE, chunk)["new"]
    except psycopg.Error as e:
        if e.sqlstate == "MX202":
            raise MsgxError(
                e.diag.message_primary or str(e),
                exit_code=ExitCode.USAGE,
                hint="replay other files with --append, or into another database or schema",
            ) from e
        raise
    return new


def _chunks(rows: dict[int, InputMessage]) -> Iterator[list[tuple[int, bytes, str]]]:
    chunk: list[tuple[int, bytes, str]] = []
    size = 0
    for message_id in sorted(rows):
        message = rows[message_id]
        if chunk and (len(chunk) >= CHUNK_ROWS or size + len(message.payload) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((message_id, message.payload, message.encoding))
        size += len(message.payload)
    if chunk:
        yield chunk


def write_events(store: Store, path: Path) -> int:
    """Write what the relay would deliver now as JSON lines, whole or not at all; returns the number of lines."""
    topics = {"KAFKA:msg": f"{store.schema}.msg", "KAFKA:schd": f"{store.schema}.schd"}
    events = store.preview_events()
    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for event in events:
                headers = {
                    name: str(event[name])
                    for name in ("event_id", "message_id", "state_version", "updated_at", "kind", "epoch")
                }
                line = {
                    "topic": topics[event["target"]],
                    "key": event["flid"],
                    "headers": headers,
                    "value": event["value"],
                }
                file.write(canonical_json(line) + "\n")
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return len(events)
