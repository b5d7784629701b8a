"""The closing lines of the chaos tests: what was done to the product, and what it lost."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.service.conftest import services as services


@dataclass
class Toll:
    """Crashes of one kind and what they cost."""

    crashes: int = 0
    lost: int = 0
    doubled: int = 0
    unfinished: int = 0


NAMES = ("kills", "server stops", "service kills", "database stops", "outages", "connections cut", "clock jumps")
TOLLS = pytest.StashKey[dict[str, Toll]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TOLLS] = {name: Toll() for name in NAMES}


@pytest.fixture
def tolls(request: pytest.FixtureRequest) -> dict[str, Toll]:
    """Counted by the tests, shown at the end of the run."""
    return request.config.stash[TOLLS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, toll in config.stash.get(TOLLS, {}).items():
        if toll.crashes:
            terminalreporter.write_line(
                f"{name}: {toll.crashes}  lost {toll.lost}  doubled {toll.doubled}"
                f"  with unfinished work: {toll.unfinished}"
            )
