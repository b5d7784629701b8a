"""MSGX_TEST_FUZZ: how many random inputs the property tests of the decoder get in total; `make chaos` sets 200000."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

FUZZ = int(os.environ.get("MSGX_TEST_FUZZ", "0"))
FUZZED = ("test_wire_decode.py", "test_wire_encodings.py")
# Percent of the inputs; trees cost five times as much as bytes. The sum leaves a margin over 100.
SHARES = {
    "test_arbitrary_bytes_raise_nothing_but_decode_error": 30,
    "test_a_damaged_message_raises_nothing_but_decode_error": 30,
    "test_arbitrary_bytes_decode_or_are_refused": 20,
    "test_every_encoding_gives_the_same_command": 10,
    "test_a_text_that_looks_like_json_is_json": 5,
    "test_any_tree_gives_an_answer_and_never_loses_meta": 4,
    "test_the_size_of_the_pieces_makes_no_difference": 2,
    "test_attributes_and_elements_say_the_same": 2,
    "test_reasons_never_show_values": 2,
}
INPUTS = pytest.StashKey[list[int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[INPUTS] = [0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count what hypothesis really feeds to the decoder, not what it was asked for."""
    total = config.stash[INPUTS]

    def counted(test: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(test)
        def run(*args: Any, **named: Any) -> Any:
            total[0] += 1
            return test(*args, **named)

        return run

    for item in items:
        hypothesis = getattr(getattr(item, "obj", None), "hypothesis", None)
        if hypothesis is None or item.path.name not in FUZZED:
            continue
        hypothesis.inner_test = counted(hypothesis.inner_test)
        if FUZZ and item.name in SHARES:
            # No database of examples: writing it takes longer than decoding.
            checks = list(HealthCheck)
            examples = max(FUZZ * SHARES[item.name] // 100, 100)
            settings(max_examples=examples, deadline=None, suppress_health_check=checks, database=None)(item.obj)  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK and session.config.stash.get(INPUTS, [0])[0] < FUZZ:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    inputs = config.stash.get(INPUTS, [0])[0]
    if inputs < FUZZ:
        terminalreporter.write_line(f"FAILED: {FUZZ} fuzz inputs were asked for", red=True)
    if inputs:
        terminalreporter.write_line(f"fuzz inputs of the decoder: {inputs}")
