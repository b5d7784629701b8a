"""`msgx-driver run`: the service."""

from __future__ import annotations

import click

from msgx_driver.cli.session import Session, common_options
from msgx_driver.clock import SystemClock
from msgx_driver.service import Service


@click.command()
@click.option(
    "--loops", metavar="LIST", help="Loops to run here: poller, pump, relay, backfill (default: service.loops)."
)
@click.option("--standby", is_flag=True, help="Wait while another instance is the writer, and take over when it ends.")
@common_options
def run(loops: str | None, standby: bool, **common: str | None) -> None:
    """Run the service: mailbox in, Kafka out, mailbox marked.

    SIGTERM ends it after the message at hand, with exit code 0; a second signal ends it at once. Without --standby it
    ends with 8 when another instance is the writer.
    """
    session = Session.start(**common, default_level="INFO", loops=loops)
    with session.conninfo() as conninfo:
        # What a restart cannot mend ends here, before a loop starts: role, schema, contract.
        with session.open(conninfo):
            pass
        Service(session.config, conninfo, SystemClock(), standby=standby).run()
