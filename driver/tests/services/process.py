"""What the servers of the tests share: they end in an orderly way, or at once."""

from __future__ import annotations

import signal
import subprocess
from typing import Final

STOP_SECONDS: Final = 60.0


class OwnProcess:
    """A server whose process is ours; `_process` is None while it is down."""

    _process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End the server in an orderly way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server at once, as a power cut does."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        assert process is not None
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
        self._process = None
