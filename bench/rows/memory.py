"""How much memory the driver needs for the largest message it takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import load
from bench.ground import SCHEMA, Ground
from bench.model import Bar, Figure, Sample
from bench.registry import row
from msgx_driver.errors import MsgxError

LIMIT_BYTES = 10 << 20


@row("memory_10mib")
def memory_10mib(ground: Ground) -> list[Figure]:
    """Peak resident memory of `msgx-driver replay` of one plan just under wire.max_bytes."""
    flights = (LIMIT_BYTES - 1000) * 1000 // len(load.plan(1000, 1, version=0))
    payload = load.plan(flights, 1, version=0)
    while len(payload) > LIMIT_BYTES:
        flights -= 5
        payload = load.plan(flights, 1, version=0)
    peaks: list[float] = []
    with tempfile.TemporaryDirectory(prefix="msgx-bench-") as folder:
        file = Path(folder) / "plan.xml"
        file.write_bytes(payload)
        for run in range(ground.pick(3, 1)):
            with ground.empty(f"memory_{run}") as dsn:
                peaks.append(
                    _peak(Path(folder) / "peak", "replay", "--no-progress", "--schema", SCHEMA, "--db", dsn, str(file))
                )
    note = f"one plan of {len(payload) / (1 << 20):.2f} MiB, {flights} flights x {load.DETAIL_ROWS}"
    return [Figure("memory_10mib", Sample(tuple(peaks)), "MB", bar=Bar("<", 300), note=note)]


def _peak(report: Path, *arguments: str) -> float:
    """Run the driver in a process of its own; returns its peak resident memory in MB (10^6 bytes)."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.peak_memory", report, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        env=dict(os.environ),
        check=False,
    )
    if done.returncode != 0:
        raise MsgxError(f"replay of the large plan ended with {done.returncode}: {done.stdout}")
    return int(report.read_text()) / 1e6
