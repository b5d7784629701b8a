"""The list of rows. A new row is one decorated function in a module of bench/rows, named in its `__init__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from bench.model import Figure

if TYPE_CHECKING:
    from bench.ground import Ground

__all__ = ["ROWS", "Row", "row"]

Row: TypeAlias = "Callable[[Ground], list[Figure]]"

ROWS: dict[str, Row] = {}
"""Rows by name, in the order of the table."""


def row(name: str) -> Callable[[Row], Row]:
    """Register a function that measures one row and returns its figures."""

    def register(function: Row) -> Row:
        if name in ROWS:
            raise ValueError(f"two rows are called {name}")
        ROWS[name] = function
        return function

    return register
