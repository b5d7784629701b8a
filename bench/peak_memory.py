"""`python -m bench.peak_memory FILE ARGUMENT…`: run msgx-driver and write its peak resident memory in bytes to FILE."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

from msgx_driver.cli import main

STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """Peak resident memory of this process since it was started."""
    if STATUS.exists():
        # Unlike ru_maxrss it does not count what the parent used before this program began.
        found = re.search(r"^VmHWM:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    report = Path(sys.argv.pop(1))
    try:
        main()
    finally:
        report.write_text(str(peak_bytes()), "utf-8")
