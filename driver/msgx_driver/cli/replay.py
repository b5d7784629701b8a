"""`msgx-driver replay`: message files through the real pipeline."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from msgx_driver.cli.session import Session, common_options, print_json
from msgx_driver.cli.show import error_text, print_board
from msgx_driver.cli.tables import print_table
from msgx_driver.clock import SystemClock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.replay import Summary, read_inputs, write_events
from msgx_driver.replay import replay as run_replay
from msgx_driver.store import Store

BOARD_ROWS = 12


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--append", is_flag=True, help="Allot new ids after the highest one in the database.")
@click.option("--events", metavar="FILE", help="Write what the relay would deliver now as JSON lines.")
@click.option("--expect", metavar="FILE", help="JSON of expected counts; another result ends with exit code 6.")
@click.option(
    "--keep-going/--stop-on-dead",
    default=True,
    help="Go on after a DEAD message (default), or stop at the first.",
)
@click.option("--no-progress", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@common_options
def replay(
    paths: tuple[str, ...],
    append: bool,
    events: str | None,
    expect: str | None,
    keep_going: bool,
    no_progress: bool,
    as_json: bool,
    **common: str | None,
) -> None:
    """Replay *.xml and *.jsonl files (or folders of them, or - for stdin) into the flight state.

    Ids are those of the JSON lines, else the position. The same id and bytes again are already done.
    """
    session = Session.start(**common)
    expected = None if expect is None else _read_expected(Path(expect))
    target = None if events is None else _check_writable(Path(events))
    messages = read_inputs(paths, sys.stdin.buffer)
    with session.store("driver") as store:
        with _progress(len(messages), no_progress) as on_progress:
            ids, summary = run_replay(
                store,
                SystemClock(),
                messages,
                append=append,
                stop_on_dead=not keep_going,
                on_progress=on_progress,
            )
        if as_json:
            print_json(summary.as_dict())
        else:
            _print_report(store, ids, summary)
        if target is not None:
            write_events(store, target)
    if expected is not None:
        _compare(summary, expected, expect or "", as_json)
    elif summary.failed and keep_going:
        raise MsgxError(
            f"{summary.failed} messages of this input are unfinished although the queue is empty",
            exit_code=ExitCode.INVARIANT,
            hint="select * from consistency_check shows what is wrong",
        )
    elif summary.dead:
        raise SystemExit(int(ExitCode.DEAD))


def _print_report(store: Store, ids: list[int], summary: Summary) -> None:
    refused = store.rows("refused", ids=ids)
    if refused:
        print_table(
            f"Refused messages ({len(refused)})",
            ["id", "status", "class", "reason"],
            [(r["message_id"], r["status"], error_text(r), r["reason"]) for r in refused],
        )
    board = store.rows("board", limit=BOARD_ROWS)
    if board:
        print_board(board, f"Flight board (first {len(board)} of {summary.flights} flights)")
    reasons = ", ".join(f"{row['messages']} {row['reason']}" for row in store.rows("skip_reasons", ids=ids))
    skipped = f"  skipped as: {reasons}\n" if reasons else ""
    click.echo(
        f"{summary.messages} messages: {summary.new} new, {summary.done} already done\n"
        f"  succeeded {summary.succeeded}  skipped {summary.skipped}  "
        f"failed {summary.failed}  dead {summary.dead}\n"
        f"{skipped}"
        f"  flights {summary.flights}  deleted {summary.deleted}  events {summary.events}  "
        f"seconds {summary.seconds:.2f}"
    )


def _read_expected(path: Path) -> dict[str, int]:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("no regular file")
        value = json.loads(path.read_text("utf-8"))
        if not isinstance(value, dict):
            raise ValueError("not an object of whole numbers")
        # What a generated day says of single messages and flights is for people and tests.
        value.pop("details", None)
        if not all(type(v) is int for v in value.values()):
            raise ValueError("not an object of whole numbers")
        unknown = set(value) - set(Summary.__dataclass_fields__)
        if unknown:
            raise ValueError(f"unknown count {min(unknown)}")
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) else e
        raise MsgxError(f"cannot use the expected counts in {path}: {why}", exit_code=ExitCode.USAGE) from e
    return value


def _compare(summary: Summary, expected: dict[str, int], name: str, as_json: bool) -> None:
    found = summary.as_dict()
    wrong = [f"{key} {found[key]} instead of {value}" for key, value in expected.items() if found[key] != value]
    if wrong:
        raise MsgxError(
            f"the result differs from {name}: {', '.join(wrong)}",
            exit_code=ExitCode.INVARIANT,
            hint="other messages in the same database change the counts; use an empty one (make clean)",
        )
    click.echo(f"The result equals {name}.", err=as_json)


def _check_writable(path: Path) -> Path:
    path = path.resolve()
    # The file is replaced as a whole, which would destroy a device or a pipe.
    if path.exists() and not path.is_file():
        raise MsgxError(f"cannot write the events file {path}: it is no regular file", exit_code=ExitCode.USAGE)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise MsgxError(
            f"cannot write the events file {path}: its folder is missing or not writable", exit_code=ExitCode.USAGE
        )
    return path


@contextlib.contextmanager
def _progress(total: int, off: bool) -> Iterator[Callable[[int, int], None] | None]:
    if off or not sys.stderr.isatty():
        yield None
        return
    with Progress(
        TextColumn("replay"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    ) as progress:
        task = progress.add_task("replay", total=total)
        yield lambda finished, expected: progress.update(task, completed=finished, total=expected)
