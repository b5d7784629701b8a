"""JSON lines on stderr through the standard `logging` module (engineering "Python", OPS-2).

One record is one line `{"ts":…,"level":…,"logger":…,"msg":…,…}`. Only the extras named in `EXTRA_FIELDS` are
written: whatever else a caller attaches (a payload, a flight) never reaches the log. A thread writes, so
that a full pipe or a vanished terminal neither blocks nor breaks the caller; what could not be queued is
counted and reported by the next record that gets through. At exit `logging` flushes, one second at most.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import queue
import re
import select
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import IO, Any, Final

__all__ = ["EXTRA_FIELDS", "JsonFormatter", "flush_logging", "redact", "setup_logging"]

EXTRA_FIELDS: Final = ("message_id", "flid", "event_id", "outcome", "sqlstate", "attempt", "ms")
QUEUE_RECORDS: Final = 10_000
FLUSH_SECONDS: Final = 1.0

_VALUE: Final = r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\s&,;}'"]+)"""
_SECRETS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"""(?i)(\b\w*(?:passw(?:or)?d|pwd)["']?\s*[=:]\s*){_VALUE}""",
        rf"""(?i)(\b\w*(?:token|secret)["']?\s*=\s*){_VALUE}""",
        rf"""(?i)(["']\w*(?:token|secret)["']\s*:\s*){_VALUE}""",
        r"(?i)(\bbearer\s+)(\S+)",
        r"((?<![\w+.-])[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/?#@]*:)([^\s@/]*)(?=@)",
    )
)


def redact(text: str) -> str:
    """Return `text` with everything that looks like a password or token replaced by `****`."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1****", text)
    return text


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line, secrets masked, ts as RFC 3339 in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without the line end."""
        ts = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        line: dict[str, Any] = {
            "ts": ts.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        for name in EXTRA_FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = value if isinstance(value, int | float) else redact(str(value))
        _, error, frames = record.exc_info or (None, None, None)
        if error is not None:
            # The first line only: the lines after it are where databases quote the values they refused.
            first = next(iter(str(error).splitlines()), "")
            line["error"] = redact(f"{type(error).__name__}: {first}")
            line["traceback"] = redact("".join(traceback.format_tb(frames)))
        return json.dumps(line, ensure_ascii=True, separators=(",", ":"), default=str)


class _Writer:
    """Owns the stream: a bounded queue and one daemon thread that writes from it."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._fd = self._own_fd(stream)
        self._queue: queue.Queue[str | None] = queue.Queue(QUEUE_RECORDS)
        self._lock = threading.Lock()
        self._dropped = 0
        self._idle = threading.Event()
        self._idle.set()
        threading.Thread(target=self._run, name="msgx-log", daemon=True).start()

    @staticmethod
    def _own_fd(stream: IO[str]) -> int | None:
        # Unbuffered and a descriptor of its own: a thread stuck in a write then holds no lock that the
        # interpreter needs to shut down, and nobody can close the number under it.
        try:
            return os.dup(stream.fileno())
        except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
            return None

    def put(self, line: str) -> None:
        with self._lock:
            if self._dropped:
                line = self._note(f"{self._dropped} log records lost") + "\n" + line
            self._idle.clear()
            try:
                self._queue.put_nowait(line)
                self._dropped = 0
            except queue.Full:
                self._dropped += 1

    @staticmethod
    def _note(text: str) -> str:
        return JsonFormatter().format(logging.LogRecord(__name__, logging.WARNING, "", 0, text, None, None))

    def flush(self, seconds: float) -> bool:
        return self._idle.wait(seconds)

    def close(self) -> None:
        # A full queue means a stuck sink: the thread is then left to die with the process.
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            # Nothing can be reported about a broken log sink; the business goes on (OPS-2).
            with contextlib.suppress(Exception):
                self._write(line + "\n")
            with self._lock:
                if self._queue.empty():
                    self._idle.set()
        if self._fd is not None:
            os.close(self._fd)

    def _write(self, text: str) -> None:
        if self._fd is None:
            self._stream.write(text)
            self._stream.flush()
            return
        data = text.encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:  # somebody made the terminal non-blocking
                select.select([], [self._fd], [])


class _JsonHandler(logging.Handler):
    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.writer = _Writer(stream)

    def emit(self, record: logging.LogRecord) -> None:
        # A log line that cannot be formatted is worth less than the work it reports on.
        with contextlib.suppress(Exception):
            self.writer.put(self.format(record))

    def flush(self) -> None:
        self.writer.flush(FLUSH_SECONDS)

    def close(self) -> None:
        self.writer.close()
        super().close()


def setup_logging(level: str = "INFO", stream: IO[str] | None = None) -> None:
    """Send all records of `level` and above to `stream` (default: stderr) as JSON lines.

    `level` is DEBUG, INFO, WARNING or ERROR in any case. Calling it again replaces the earlier set-up.
    """
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _JsonHandler)]:
        root.removeHandler(handler)
        handler.flush()
        handler.close()
    target = sys.stderr if stream is None else stream
    # pythonw and daemons may have no stderr at all.
    root.addHandler(logging.NullHandler() if target is None else _JsonHandler(target))
    root.setLevel(level.upper())
    logging.captureWarnings(True)


def flush_logging(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait until what was logged is written, at most that long; False when a sink is stuck."""
    handlers = [h for h in logging.getLogger().handlers if isinstance(h, _JsonHandler)]
    done = [h.writer.flush(seconds) for h in handlers]
    return all(done)
