"""`msgx-driver redeliver`: notices that were given up are sent again (D39)."""

from __future__ import annotations

import getpass

import click
import psycopg

from msgx_driver.cli.session import Session, common_options, print_json
from msgx_driver.errors import ExitCode, MsgxError


@click.command()
@click.argument("event_ids", type=click.IntRange(1, (1 << 63) - 1), nargs=-1, metavar="EVENT_ID…")
@click.option("--all", "everything", is_flag=True, help="All DEAD notices.")
@click.option("--reason", required=True, help="Why; kept in operator_audit.")
@click.option("--operator", help="Who; default: the user of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def redeliver(
    event_ids: tuple[int, ...],
    everything: bool,
    reason: str,
    operator: str | None,
    as_json: bool,
    **common: str | None,
) -> None:
    """Send DEAD notices again. They keep their event_id and carry the header redelivered.

    A DEAD state needs no redelivery: the next state of its flight closes it, and republish adds one. Needs the role
    <schema>_operator.
    """
    if everything == bool(event_ids):
        raise click.UsageError("name the EVENT_IDs, or --all")
    with Session.start(**common).store("operator") as store:
        try:
            opened = store.redeliver_events(
                None if everything else event_ids, operator=operator or getpass.getuser(), reason=reason
            )
        except psycopg.Error as e:
            if e.sqlstate != "MX002":
                raise
            raise MsgxError(
                e.diag.message_primary or "no such event",
                exit_code=ExitCode.NOT_FOUND,
                hint="select event_id, flid, last_error from msg_event where status = 'DEAD' lists them",
            ) from e
    if as_json:
        print_json({"events": opened})
    else:
        click.echo(f"{opened} notices are sent again")
