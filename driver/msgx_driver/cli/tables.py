"""Tables for people, on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["console", "print_table"]

PIPE_WIDTH = 160


def console() -> Console:
    """A console on stdout: as wide as the terminal, 160 columns when piped; never interprets markup."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a title; None is blank, long text is folded, control characters are shown."""
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    console().print(table)


def _plain(cell: object) -> str:
    text = "" if cell is None else str(cell)
    # Message values may carry anything; a terminal must never obey them.
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
