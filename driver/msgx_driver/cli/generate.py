"""`msgx-driver generate`: a realistic day of messages with the outcomes to expect."""

from __future__ import annotations

from pathlib import Path

import click

from msgx_driver.cli.session import print_json
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.generate import MAX_FLIGHTS, MIN_FLIGHTS, generate_day, write_day


@click.command()
@click.option(
    "--flights",
    type=click.IntRange(MIN_FLIGHTS, MAX_FLIGHTS),
    default=300,
    show_default=True,
    help="Flights in the plan of the morning.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another seed, another day.")
@click.option("--out", metavar="DIR", required=True, help="Folder for day.jsonl and manifest.json; made if needed.")
@click.option("--json", "as_json", is_flag=True, help="Print the expected counts as JSON.")
def generate(flights: int, seed: int, out: str, as_json: bool) -> None:
    """Write a realistic day of messages for replay, and what must become of each of them.

    The same flights and seed give the same bytes everywhere. No database is used.
    """
    if not out:
        raise click.UsageError("--out is empty: name a folder for the day, . for this one")
    day = generate_day(flights, seed)
    try:
        write_day(day, Path(out))
    except OSError as e:
        raise MsgxError(f"cannot write the day into {out}: {e.strerror}", exit_code=ExitCode.USAGE) from e
    counts = {name: value for name, value in day.manifest.items() if name != "details"}
    if as_json:
        print_json(counts)
    else:
        click.echo(f"{counts['messages']} messages about {flights} flights in {Path(out) / 'day.jsonl'}")
