from __future__ import annotations

from msgx_driver.errors import ExitCode, MsgxError


def test_exit_codes_are_those_of_the_contract() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "UNEXPECTED": 1,
        "USAGE": 2,
        "CONFIG": 3,
        "UNREACHABLE": 4,
        "SCHEMA": 5,
        "INVARIANT": 6,
        "DEAD": 7,
        "OTHER_WRITER": 8,
        "NOT_FOUND": 9,
    }


def test_message_and_hint_are_one_line_each() -> None:
    error = MsgxError("no\nserver ", exit_code=ExitCode.UNREACHABLE, hint=" start\r\n it")
    assert (str(error), error.hint, error.exit_code) == ("no server", "start it", ExitCode.UNREACHABLE)


def test_an_error_without_details_is_unexpected() -> None:
    error = MsgxError("x")
    assert (error.exit_code, error.hint) == (ExitCode.UNEXPECTED, None)
