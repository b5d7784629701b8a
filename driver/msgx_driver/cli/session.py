"""What every command shares: options, configuration, logs and an open store."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import psycopg

from msgx_driver.clock import SystemClock
from msgx_driver.config import Config, dsn_has_password, load_config
from msgx_driver.embedded import default_home, embedded_server, forget_libpq_variables
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.log import setup_logging
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store, connect

__all__ = ["Session", "common_options", "embedded_home", "print_json"]

log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


def embedded_home() -> Path:
    """The folder of the embedded server: $MSGX_HOME, else the user's data folder."""
    try:
        return Path(os.environ.get("MSGX_HOME") or default_home()).expanduser().absolute()
    except RuntimeError as e:
        raise MsgxError(
            f"no folder for the embedded server: {e}", exit_code=ExitCode.CONFIG, hint="set MSGX_HOME to a folder"
        ) from e


def common_options(function: F) -> F:
    """Add --config, --db, --schema and --log-level."""
    for option in (
        click.option(
            "--log-level",
            type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
            help="Smallest level of the JSON log lines on stderr.",
        ),
        click.option("--schema", help="Schema of the airport (default msgx)."),
        click.option(
            "--db",
            metavar="DSN",
            help="PostgreSQL connection string or URI; without it an embedded server is used.",
        ),
        click.option("--config", "config_file", metavar="FILE", help="Configuration file (default ./msgx.toml)."),
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class Session:
    """Configuration of one command; `store()` opens the database."""

    config: Config

    @classmethod
    def start(
        cls,
        config_file: str | None,
        db: str | None,
        schema: str | None,
        log_level: str | None,
        default_level: str | None = None,
        loops: str | None = None,
    ) -> Session:
        """Load the configuration and set up the logs; `default_level` (WARNING) when nobody chose one."""
        if db == "":
            # A shell variable that is not set must not lead to another database in silence.
            raise click.UsageError("--db is empty; name a database, or leave --db out for the embedded one")
        flags = {"database.dsn": db, "database.schema": schema, "log.level": log_level, "service.loops": loops}
        config = load_config(config_file, flags)
        setup_logging(config.log.level or default_level or "WARNING")
        if db and dsn_has_password(db):
            log.warning("a password on the command line is visible to others; use MSGX_DATABASE__DSN or a passfile")
        return cls(config)

    @property
    def schema(self) -> str:
        """Schema of the airport."""
        return self.config.database.schema

    @contextlib.contextmanager
    def conninfo(self) -> Iterator[str]:
        """The connection string; starts the embedded server where no database is configured."""
        if self.config.database.dsn is not None:
            yield self.config.database.conninfo()
            return
        # A server that is not ours must never be migrated.
        forget_libpq_variables()
        with embedded_server(embedded_home()) as server:
            yield server.dsn

    @contextlib.contextmanager
    def store(self, *roles: str) -> Iterator[Store]:
        """An open store whose schema fits; the embedded one is migrated first, a given one never.

        `roles` says which roles may do what the command does, for the error of one that may not: report when none.
        """
        with self.conninfo() as conninfo, self.open(conninfo) as store:
            try:
                yield store
            except psycopg.errors.InsufficientPrivilege as e:
                raise self._not_permitted(store.conn.info.user, roles or ("report",), e) from e
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedFunction) as e:
                raise MsgxError(
                    f"schema {self.schema} is not whole: {e.diag.message_primary}",
                    exit_code=ExitCode.SCHEMA,
                    hint=f"run: {self.migrate_command('verify')}, then: {self.migrate_command()} --again",
                ) from e

    def _not_permitted(self, user: str, roles: Sequence[str], error: psycopg.Error) -> MsgxError:
        names = [f"{self.schema}_{role}" for role in roles]
        return MsgxError(
            f"role {user} may not do this: {error.diag.message_primary}",
            exit_code=ExitCode.CONFIG,
            hint=f'it takes the role {" or ".join(names)}; as an administrator: grant {names[0]} to "{user}"',
        )

    @contextlib.contextmanager
    def open(self, conninfo: str) -> Iterator[Store]:
        """An open store at a connection string of `conninfo()`, under the rules of `store()`."""
        if self.config.database.dsn is None:
            with connect(conninfo) as conn:
                migrate_up(conn, self.schema, SystemClock())
        with Store.open(conninfo, self.schema) as store:
            store.check_contract(self.migrate_command())
            yield store

    def migrate_command(self, what: str = "up") -> str:
        """The command that installs or upgrades the schema, or another one of its group, without secrets."""
        schema = "" if self.schema == "msgx" else f" --schema {self.schema}"
        db = " --db DSN" if "database.dsn" in self.config.sources else ""
        return f"msgx-driver migrate {what}{db}{schema}"


def print_json(value: object) -> None:
    """Write a value to stdout as one line of JSON; instants as RFC 3339 in UTC."""

    def plain(item: object) -> str:
        if isinstance(item, datetime):
            return item.isoformat().replace("+00:00", "Z")
        if isinstance(item, date):
            return item.isoformat()
        raise TypeError(type(item).__name__)

    click.echo(json.dumps(value, ensure_ascii=False, sort_keys=True, default=plain))
