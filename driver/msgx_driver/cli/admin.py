"""Commands that install and configure: migrate, settings, config."""

from __future__ import annotations

import os

import click

from msgx_driver.cli.session import Session, common_options, embedded_home, print_json
from msgx_driver.cli.tables import print_table, printable
from msgx_driver.clock import SystemClock
from msgx_driver.config import require_adapters
from msgx_driver.doctor import examine, examine_folder, examine_outside
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.migrate import migrate_plan, migrate_status, migrate_up, migrate_verify
from msgx_driver.store import connect


@click.group()
def migrate() -> None:
    """Install or upgrade the schema."""


again_option = click.option(
    "--again", is_flag=True, help="Apply all procedures, views and rights anew: puts back what was dropped or changed."
)


@migrate.command("up")
@again_option
@common_options
def migrate_up_command(again: bool, **common: str | None) -> None:
    """Apply what is pending: versioned migrations once, procedures and views when their text changed."""
    session = Session.start(**common)
    with session.conninfo() as conninfo, connect(conninfo) as conn:
        applied = migrate_up(conn, session.schema, SystemClock(), again=again)
    for name in applied:
        click.echo(f"applied {name}")
    click.echo(f"schema {session.schema}: {len(applied)} files applied")


@migrate.command("plan")
@again_option
@common_options
def migrate_plan_command(again: bool, **common: str | None) -> None:
    """Print the SQL that `migrate up` would run; changes nothing."""
    session = Session.start(**common)
    with session.conninfo() as conninfo, connect(conninfo) as conn:
        text = migrate_plan(conn, session.schema, again=again)
    click.echo(text or f"-- schema {session.schema}: nothing to do", nl=not text)


@migrate.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def migrate_verify_command(as_json: bool, **common: str | None) -> None:
    """Compare the installed schema with the shipped files; differences end with exit code 6."""
    session = Session.start(**common)
    with session.conninfo() as conninfo, connect(conninfo) as conn:
        differences = migrate_verify(conn, session.schema)
    if as_json:
        print_json(differences)
    else:
        for line in differences:
            click.echo(printable(line))
    if differences:
        mended = any(line.startswith(("routine ", "view ")) or ": grant " in line for line in differences)
        command = session.migrate_command() + (" --again" if mended else "")
        applied = "puts procedures, views and their rights back" if mended else "applies what is pending"
        raise MsgxError(
            f"schema {session.schema} differs from this version in {len(differences)} places",
            exit_code=ExitCode.INVARIANT,
            hint=f"find out who changed it; {command} {applied}, the rest has to be put back by hand",
        )
    if not as_json:
        click.echo(f"schema {session.schema} is what this version ships")


@migrate.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def migrate_status_command(as_json: bool, **common: str | None) -> None:
    """Show which files are applied, pending or changed."""
    session = Session.start(**common)
    with session.conninfo() as conninfo, connect(conninfo) as conn:
        steps = migrate_status(conn, session.schema)
    if as_json:
        print_json([{"kind": s.kind, "name": s.name, "state": s.state} for s in steps])
        return
    print_table(f"Schema {session.schema}", ["kind", "file", "state"], [(s.kind, s.name, s.state) for s in steps])


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def doctor(as_json: bool, **common: str | None) -> None:
    """Check database, schema, rights, mailbox, Kafka and disk; the worst finding decides the exit code."""
    session = Session.start(**common)
    with session.conninfo() as conninfo:
        findings = list(examine(conninfo, session.schema))
    findings += examine_outside(session.config, SystemClock())
    if session.config.database.dsn is None:
        findings.append(examine_folder(embedded_home()))
    if as_json:
        print_json([{"check": f.check, "status": f.status, "detail": f.detail} for f in findings])
    else:
        print_table("Doctor", ["check", "status", "detail"], [(f.check, f.status, f.detail) for f in findings])
    raise SystemExit(max(int(f.exit_code) for f in findings))


@click.group()
def settings() -> None:
    """Rules that can be chosen (docs/decisions.md)."""


@settings.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def settings_list(as_json: bool, **common: str | None) -> None:
    """All settings with value, default and meaning."""
    with Session.start(**common).store() as store:
        rows = store.settings()
    if as_json:
        print_json(rows)
        return
    for row in rows:
        changed = "" if row["value"] == row["default_value"] else f"  (default {row['default_value']})"
        click.echo(f"{row['name']} = {row['value']}{changed}")
        click.echo(f"    {row['description']}; allowed: {row['pattern']}")


@settings.command("set")
@click.argument("name")
@click.argument("value")
@common_options
def settings_set(name: str, value: str, **common: str | None) -> None:
    """Change one setting; the next message uses it."""
    with Session.start(**common).store("driver", "operator") as store:
        store.set_setting(name, value)
        click.echo(f"{name} = {store.setting(name)}")


@click.group()
def config() -> None:
    """Configuration of this driver."""


@config.command("check")
@common_options
def config_check(**common: str | None) -> None:
    """Check the configuration by the rules of `run`, without connecting to anything; `doctor` connects."""
    checked = Session.start(**common).config
    loops = checked.service.loop_names
    require_adapters(checked, loops)
    if "relay" in loops:
        from msgx_driver.kafka import producer_settings  # its package is an extra

        producer_settings(checked)
    click.echo(f"the configuration fits run: {checked.environment}, loops {', '.join(loops)}")


@config.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def config_show(as_json: bool, **common: str | None) -> None:
    """Effective values and where they come from; secrets are masked."""
    rows = Session.start(**common).config.describe()
    source = "environment variable MSGX_HOME" if os.environ.get("MSGX_HOME") else "default"
    rows.append(("MSGX_HOME", str(embedded_home()), source))
    if as_json:
        print_json([{"key": key, "value": value, "source": source} for key, value, source in rows])
        return
    print_table("Configuration", ["key", "value", "source"], rows)
