"""`msgx-driver republish`: whole states once more, for a consumer that starts or doubts."""

from __future__ import annotations

import getpass
from datetime import datetime

import click
import psycopg

from msgx_driver.cli.session import Session, common_options, print_json
from msgx_driver.errors import ExitCode, MsgxError


@click.command()
@click.option("--all", "everything", is_flag=True, help="All flights.")
@click.option("--fday", type=click.DateTime(["%Y-%m-%d"]), help="Flights of one operating day, YYYY-MM-DD.")
@click.option("--flid", "flids", multiple=True, help="This flight; may be repeated. A deleted one gets its tombstone.")
@click.option("--reason", required=True, help="Why; kept in operator_audit.")
@click.option("--operator", help="Who; default: the user of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def republish(
    everything: bool,
    fday: datetime | None,
    flids: tuple[str, ...],
    reason: str,
    operator: str | None,
    as_json: bool,
    **common: str | None,
) -> None:
    """Put the whole state of flights into the outbox once more, as it is now; versions stay.

    Needs the role <schema>_operator.
    """
    if sum((everything, fday is not None, bool(flids))) != 1:
        raise click.UsageError("name one of --all, --fday and --flid")
    with Session.start(**common).store("operator") as store:
        try:
            added = store.republish_flights(
                list(flids) or None,
                fday.date() if fday else None,
                operator=operator or getpass.getuser(),
                reason=reason,
            )
        except psycopg.Error as e:
            if e.sqlstate != "MX002":
                raise
            raise MsgxError(
                e.diag.message_primary or "no such flight",
                exit_code=ExitCode.NOT_FOUND,
                hint="msgx-driver flights lists all; the table flight_tombstone holds the deleted ones",
            ) from e
    if as_json:
        print_json({"events": added})
    else:
        click.echo(f"{added} events added")
