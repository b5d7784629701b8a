"""`python -m bench`: run the rows, print the table, write results.json and history.jsonl."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

import bench.rows
from bench.ground import Ground, find_programs
from bench.model import Figure
from bench.registry import ROWS
from bench.report import append_history, history_line, machine_facts, print_table, write_results
from msgx_driver.clock import SystemClock
from msgx_driver.embedded import PostgresServer, forget_libpq_variables
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.log import setup_logging

FOLDER = Path(bench.rows.__file__).resolve().parents[1]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Smaller sizes and fewer runs; under two minutes.")
@click.option("--row", "names", multiple=True, type=click.Choice(list(ROWS)), help="Only this row; may be repeated.")
@click.option("--strict", is_flag=True, help="End with exit code 6 when a bar is missed.")
@click.option("--out", default=FOLDER, type=click.Path(path_type=Path), help="Folder of the results (default bench).")
def cli(quick: bool, names: tuple[str, ...], strict: bool, out: Path) -> None:
    """Measure msgx beside named references on a PostgreSQL server of its own, and judge the ratios.

    Ends with 0 when every row ran, bars missed or not.
    """
    setup_logging("WARNING")
    forget_libpq_variables()
    try:
        missed = run([name for name in ROWS if not names or name in names], quick=quick, out=out)
    except MsgxError as e:
        click.echo(f"bench: {e}" + (f"\n{e.hint}" if e.hint else ""), err=True)
        raise SystemExit(int(e.exit_code)) from e
    if strict and missed:
        click.echo(f"bench: missed: {', '.join(missed)}", err=True)
        raise SystemExit(int(ExitCode.INVARIANT))


def run(names: list[str], *, quick: bool, out: Path) -> list[str]:
    """Run those rows and report; returns the names of figures that miss their bar. MsgxError when a row broke."""
    console = Console()
    if not console.is_terminal:
        # In a log the table keeps its lines whole.
        console = Console(width=120)
    clock = SystemClock()
    programs = find_programs()
    figures: list[Figure] = []
    broken: list[str] = []
    home = Path(tempfile.mkdtemp(prefix="msgx-bench-"))
    # The server may run as another user, who has to pass through.
    home.chmod(0o711)
    server = PostgresServer(programs, home)
    started = clock.monotonic()

    def say(text: str) -> None:
        console.print(f"{clock.monotonic() - started:6.0f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    try:
        with server:
            ground = Ground(server, programs, clock, out / "out", quick, say)
            say("server and disk")
            ground.prepare()
            facts = machine_facts(ground)
            for name in names:
                say(name)
                try:
                    figures += ROWS[name](ground)
                except Exception as e:  # whatever broke one row, the others count
                    broken.append(name)
                    say(f"{name} broke: {type(e).__name__}: {e}")
    finally:
        server.remove()
        shutil.rmtree(home, ignore_errors=True)
    say("done")
    print_table(console, figures)
    out.mkdir(parents=True, exist_ok=True)
    write_results(out / "results.json", figures)
    append_history(out / "history.jsonl", history_line(figures, facts, clock.now(), quick=quick))
    if broken:
        raise MsgxError(f"rows that could not be measured: {', '.join(broken)}")
    return [figure.name for figure in figures if figure.passed is False]


if __name__ == "__main__":
    sys.exit(cli())
