"""Tables for people, on stdout."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Sequence

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["print_table", "printable"]

PIPE_WIDTH = 160
LAST_COLUMN_MIN = 20


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], optional: Sequence[str] = ()
) -> None:
    """Print rows under a title, as wide as the terminal, 160 columns when piped.

    None is blank. Only the last column is folded; `optional` columns are left out, in this order, where the terminal
    is too narrow for all.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    cells = [[printable("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    shown = list(range(len(columns)))
    for name in optional:
        if sum(widths[n] + 3 for n in shown[:-1]) + min(widths[-1], LAST_COLUMN_MIN) <= width:
            break
        shown.remove(list(columns).index(name))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for n in shown:
        table.add_column(Text(columns[n]), overflow="fold", no_wrap=n != shown[-1])
    for row in cells:
        table.add_row(*(Text(row[n]) for n in shown))
    text = io.StringIO()
    Console(file=text, width=width, markup=False, highlight=False, emoji=False).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    click.echo("\n".join([title, *(line for line in lines if line), ""]))


def printable(text: str, keep: str = "") -> str:
    """Show control characters as escapes, but for those in `keep`: a terminal must never obey a message."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)
