"""`make demo-service`: a small day through mailbox, driver and Kafka, counted at the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_demo_ends_well(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo_service.py", "--flights", "40", "--speed", "100000"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "state equal to a replay, all rows marked" in done.stdout
    assert "lost 0, doubled 0" in done.stdout
    assert re.search(r"p50 \d+\.\d{3} s, p99 \d+\.\d{3} s", done.stdout)
