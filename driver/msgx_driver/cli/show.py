"""Commands that read: status, flights, dead."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from msgx_driver.cli.session import Session, common_options, print_json
from msgx_driver.cli.tables import print_table, printable
from msgx_driver.clock import SystemClock
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.wire.canonical import canonical_json

SILENT_SECONDS: Final = 60.0
"""A loop that runs says so every few seconds."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--check", is_flag=True, help="End with exit code 6 when a check of health fails.")
@common_options
def status(as_json: bool, check: bool, **common: str | None) -> None:
    """Queue, head, flights and pending work, and the health of the service."""
    with Session.start(**common).store() as store:
        queue = store.rows("queue_status")
        head = next(iter(store.rows("queue_head")), None)
        counts = store.rows("counts")[0]
        health = [with_age(row, SystemClock().now()) for row in store.rows("health")]
    if as_json:
        print_json({"queue": {r["status"]: r["messages"] for r in queue}, "head": head, "health": health, **counts})
    else:
        print_status(queue, head, counts, health)
    if check and any(row["status"] == "fail" for row in health):
        failed = ", ".join(row["check"] for row in health if row["status"] == "fail")
        raise MsgxError(
            f"schema {store.schema}: {failed} failed",
            exit_code=ExitCode.INVARIANT,
            hint="docs/operations.md says what each check means",
        )


def with_age(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """A row of health; a loop that runs and gives no sign of life has failed: its process is dead."""
    silent = (now - row["at"]).total_seconds() if row["check"].startswith("loop ") and row["status"] == "ok" else 0
    if silent < SILENT_SECONDS:
        return row
    return row | {"status": "fail", "detail": f"no sign of life for {silent:.0f} s; {row['detail']}"}


def print_status(
    queue: list[dict[str, Any]], head: dict[str, Any] | None, counts: dict[str, Any], health: list[dict[str, Any]]
) -> None:
    """The tables of `status`."""
    print_table("Queue", ["status", "messages", "first id", "last id", "oldest"], [tuple(r.values()) for r in queue])
    if head is not None:
        print_table("Head", list(head), [tuple(head.values())])
    print_table("Store", list(counts), [tuple(counts.values())])
    print_table("Health", ["check", "status", "detail"], [(r["check"], r["status"], r["detail"]) for r in health])


@click.command()
@click.argument("flids", nargs=-1, metavar="[FLID...]")
@click.option("--board", is_flag=True, help="Print the flight board instead: a table, all flights.")
@common_options
def flights(flids: tuple[str, ...], board: bool, **common: str | None) -> None:
    """Whole states as they go to Kafka: a JSON array, all flights or the named ones."""
    if board and flids:
        raise click.UsageError("--board shows all flights; leave the FLIDs out")
    with Session.start(**common).store() as store:
        if board:
            print_board(store.rows("board", limit=None), "Flight board")
            return
        found = store.projections(flids or None)
    missing = sorted(set(flids) - {str(f["FLID"]) for f in found})
    if missing:
        raise MsgxError(
            f"no flight {', '.join(missing)} in schema {store.schema}",
            exit_code=ExitCode.NOT_FOUND,
            hint="msgx-driver flights lists all",
        )
    click.echo("[" + ",\n".join(canonical_json(f) for f in found) + "]")


@click.group()
def dead() -> None:
    """Refused messages: why, and the bytes as received."""


@dead.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def dead_list(as_json: bool, **common: str | None) -> None:
    """All DEAD messages with their reasons."""
    with Session.start(**common).store() as store:
        rows = store.rows("dead_list")
    if as_json:
        print_json(rows)
        return
    print_table(
        f"DEAD messages ({len(rows)})",
        ["id", "kind", "class", "attempts", "bytes", "reason"],
        [(r["message_id"], _kind(r), error_text(r), r["attempts"], r["bytes"], r["reason"]) for r in rows],
    )


@dead.command("show")
@click.argument("message_id", type=click.IntRange(1, (1 << 63) - 1), metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def dead_show(message_id: int, as_json: bool, **common: str | None) -> None:
    """One DEAD message: META, class, reason and the original bytes."""
    with Session.start(**common).store("driver", "operator") as store:
        rows = store.rows("dead_show", message_id=message_id)
    if not rows:
        raise MsgxError(
            f"schema {store.schema} has no DEAD message {message_id}",
            exit_code=ExitCode.NOT_FOUND,
            hint="msgx-driver dead list shows which are",
        )
    row = rows[0]
    # Bytes that are no UTF-8 are shown escaped, never replaced.
    row["payload"] = (row["payload"] or b"").decode("utf-8", "backslashreplace")
    if as_json:
        print_json(row)
        return
    payload = row.pop("payload")
    for name, value in row.items():
        click.echo(f"{name:<17} {'' if value is None else value}")
    click.echo("payload")
    click.echo(printable(payload, keep="\n\t"))


def print_board(rows: list[dict[str, Any]], title: str) -> None:
    """Print rows of the flight board; a narrow terminal gets fewer columns."""
    columns = ["FLID", "flight", "A/D", "day", "scheduled", "estimated", "actual", "stand", "gates", "counters"]
    optional = ["day", "counters", "belt", "stand", "estimated", "actual", "A/D"]
    print_table(title, [*columns, "belt", "remark"], [tuple(row.values()) for row in rows], optional)


def _kind(row: dict[str, Any]) -> str:
    return f"{row['type'] or '?'}/{row['styp'] or '?'}"


def error_text(row: dict[str, Any]) -> str:
    """Class of a failed message; EXHAUSTED with the class of its last attempt."""
    last = row["last_error_class"]
    return str(row["error_class"]) + (f"/{last}" if last and last != row["error_class"] else "")
