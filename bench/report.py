"""The table on the screen, results.json, and the history of all runs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from bench.ground import PGBENCH_SCALE, SETTINGS, Ground, query
from bench.model import Figure
from msgx_driver import __version__
from msgx_driver.errors import MsgxError

__all__ = ["append_history", "history_line", "machine_facts", "print_table", "write_results"]


def print_table(console: Console, figures: Sequence[Figure]) -> None:
    """The figures with spread, reference, ratio, bar and judgement."""
    table = Table("row", "median", "min – max", "reference", "ratio", "bar", "", title="msgx benchmark")
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[1:5]:
        column.justify = "right"
    for figure in figures:
        low, high = figure.value.spread
        table.add_row(
            figure.name,
            f"{_number(figure.value.median)} {figure.unit}",
            f"{_number(low)} – {_number(high)}",
            "" if figure.reference is None else _number(figure.reference.median),
            "" if figure.ratio is None else f"{figure.ratio:.2f}",
            "" if figure.bar is None else str(figure.bar),
            {None: "", True: "[green]pass[/]", False: "[red]miss[/]"}[figure.passed],
        )
    console.print(table)
    for figure in figures:
        about = [f"against {figure.reference_name}"] if figure.reference is not None else []
        about += [figure.note] if figure.note else []
        if about:
            console.print(f"{figure.name}: {'; '.join(about)}", highlight=False, markup=False, soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def machine_facts(ground: Ground) -> dict[str, Any]:
    """What the figures depend on: processors, server, disk; neither host names nor paths."""
    with psycopg.connect(ground.server.dsn) as conn:
        cursor = conn.execute(query("server_facts"))
        values = cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
    server = dict(zip(names, values or (), strict=True))
    # Without them a figure would not be one of a durable server.
    for name in ("fsync", "full_page_writes"):
        if server[name] != "on":
            raise MsgxError(f"the server runs with {name} = {server[name]}")
    flushes, microseconds = ground.fdatasync
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "postgresql": server.pop("version"),
        "fdatasync_us": round(microseconds, 1),
        "fdatasync_per_s": round(flushes),
        "pgbench_scale": PGBENCH_SCALE,
        "settings": server | SETTINGS,
    }


def history_line(figures: Sequence[Figure], facts: dict[str, Any], at: datetime, *, quick: bool) -> dict[str, Any]:
    """One whole run for history.jsonl."""
    return {
        "at": at.isoformat(timespec="seconds"),
        "version": __version__,
        "revision": _revision(),
        "quick": quick,
        "machine": facts,
        "rows": [figure.as_dict() for figure in figures],
    }


def _revision() -> str | None:
    """Commit of the checkout, None outside of one."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def write_results(path: Path, figures: Sequence[Figure]) -> None:
    """Replace results.json: one figure a line."""
    lines = ",\n".join(f"  {json.dumps(figure.as_dict(), ensure_ascii=False)}" for figure in figures)
    path.write_text(f"[\n{lines}\n]\n", "utf-8")


def append_history(path: Path, line: dict[str, Any]) -> None:
    """Add one run to history.jsonl."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
