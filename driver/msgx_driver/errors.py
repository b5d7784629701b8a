"""Errors a user can meet, and the exit codes of `msgx-driver` (contract §6)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode", "MsgxError"]


class ExitCode(IntEnum):
    """Exit code of a command; SCHEMA and INVARIANT mean "do not restart"."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    CONFIG = 3  # configuration, or a prerequisite is missing
    UNREACHABLE = 4  # database or broker does not answer
    SCHEMA = 5  # schema or contract mismatch
    INVARIANT = 6  # invariant broken or verification failed
    DEAD = 7  # finished, some messages of this call are DEAD
    OTHER_WRITER = 8  # another writer is active
    NOT_FOUND = 9  # a named message or flight is not there


def _one_line(text: str) -> str:
    return " ".join(text.split())


class MsgxError(Exception):
    """A failure that is explained to the user in one line, without a traceback.

    The CLI prints `msgx-driver: <message>`, then the hint (what to do next) on a line of its own, and
    ends with `exit_code`. Line breaks in either text are folded to blanks.
    """

    def __init__(self, message: str, *, exit_code: ExitCode = ExitCode.UNEXPECTED, hint: str | None = None) -> None:
        self.message = _one_line(message)
        self.exit_code = exit_code
        self.hint = None if hint is None else _one_line(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message
