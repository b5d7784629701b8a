"""How long a loop waits after failures in a row: 1, 2, 4 … 60 seconds."""

from __future__ import annotations

from typing import Final

__all__ = ["BACKOFF_LAST", "Backoff"]

BACKOFF_FIRST: Final = 1.0
BACKOFF_LAST: Final = 60.0
_DOUBLINGS: Final = 10


class Backoff:
    """Counts failures in a row."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self) -> float:
        """Count a failure; returns the seconds to wait for it."""
        pause = min(BACKOFF_FIRST * 2.0**self._failures, BACKOFF_LAST)
        self._failures = min(self._failures + 1, _DOUBLINGS)
        return pause

    def reset(self) -> None:
        """It works: the next failure is the first again."""
        self._failures = 0
