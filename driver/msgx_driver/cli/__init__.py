"""Command line `msgx-driver`: data on stdout, logs and progress on stderr, exit codes of contract §6."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import select
import signal
import sys
from pathlib import Path
from types import FrameType

import click
import psycopg

from msgx_driver import __version__
from msgx_driver.cli.admin import config, doctor, migrate, settings
from msgx_driver.cli.generate import generate
from msgx_driver.cli.redeliver import redeliver
from msgx_driver.cli.replay import replay
from msgx_driver.cli.republish import republish
from msgx_driver.cli.run import run
from msgx_driver.cli.show import dead, flights, status
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.log import redact
from msgx_driver.store import stop_error, waits

__all__ = ["cli", "main"]

log = logging.getLogger(__name__)

STDERR_SECONDS = 5.0
"""How long a full stderr is waited for."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="msgx-driver")
def cli() -> None:
    """Airport SIS (AODB) messages into the one authoritative flight state.

    Without --db an embedded PostgreSQL server is used; its data lies in $MSGX_HOME.
    """


for command in (run, replay, generate, migrate, status, flights, dead, republish, redeliver, settings, config, doctor):
    cli.add_command(command)


def main() -> None:
    """Entry point; never ends with a traceback."""
    signal.signal(signal.SIGTERM, _terminate)
    _complete_streams()
    sys.exit(_run())


def _run() -> int:
    try:
        cli.main(standalone_mode=False)
        sys.stdout.flush()
    except MsgxError as e:
        return _explain(e)
    except click.ClickException as e:
        said = io.StringIO()
        e.show(file=said)
        _tell(said.getvalue())
        return e.exit_code
    except click.exceptions.Exit as e:
        return e.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _explain(MsgxError("interrupted", hint="nothing is lost; the same command continues"))
    except BrokenPipeError:
        # The reader of stdout has gone; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.UNEXPECTED)
    except psycopg.Error as e:
        return _explain(_database_error(e))
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        return _explain(MsgxError(f"the operating system refuses: {where}{e.strerror or e}"))
    except UnicodeError:
        return _explain(MsgxError("an argument is not valid text", exit_code=ExitCode.USAGE))
    except Exception as e:
        log.debug("unexpected error", exc_info=True)
        return _explain(
            MsgxError(
                f"unexpected error: {type(e).__name__}: {redact(str(e))}",
                hint="run again with --log-level DEBUG for the place in the code, and report it",
            )
        )
    return int(ExitCode.OK)


def _database_error(error: psycopg.Error) -> MsgxError:
    stop = stop_error(error)
    if stop is not None:
        return stop
    text = error.diag.message_primary or str(error)
    if waits(error):
        return MsgxError(
            f"the database refuses at present (SQLSTATE {error.sqlstate}): {text}",
            exit_code=ExitCode.UNREACHABLE,
            hint="look at the server (disk, connections, locks, timeouts); the same command continues",
        )
    if error.sqlstate == "42501":
        return MsgxError(
            f"this role has not the right: {text}",
            exit_code=ExitCode.CONFIG,
            hint="run, replay and settings need the role <schema>_driver, republish needs <schema>_operator,"
            " reading needs <schema>_report, the bytes of a message <schema>_driver or <schema>_operator",
        )
    return MsgxError(f"database error {error.sqlstate}: {text}")


def _explain(error: MsgxError) -> int:
    _tell(f"msgx-driver: {error}\n" + (f"  {error.hint}\n" if error.hint else ""))
    return int(error.exit_code)


def _tell(text: str) -> None:
    """Write to stderr; when nobody reads it, the exit code has to tell (systemd restarts by it)."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
        data = text.encode("utf-8", "backslashreplace")
        while data and select.select([], [sys.stderr], [], STDERR_SECONDS)[1]:
            data = data[os.write(sys.stderr.fileno(), data[: select.PIPE_BUF]) :]


def _complete_streams() -> None:
    """Daemons and cron may start us without standard streams; data on stdout is UTF-8 whatever the locale."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
