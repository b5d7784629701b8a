"""Configuration: flag > `MSGX_<SECTION>__<KEY>` > `msgx.toml` > default (contract §6).

An empty value counts as not set, in every source. A key nobody knows is an error, in every source: a
setting that is misspelt must never be silently without effect. Errors name the key, where it came from,
the rule and the next step; they never repeat a value, which may be a secret. All end with exit code 3.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from msgx_driver.errors import ExitCode, MsgxError

__all__ = ["Config", "Database", "Log", "dsn_has_password", "load_config", "mask_dsn"]

DEFAULT_FILE: Final = "msgx.toml"
ENV_PREFIX: Final = "MSGX_"
ENV_NOT_KEYS: Final = ("MSGX_HOME", "MSGX_CONFIG")
ENV_FOREIGN_PREFIX: Final = "MSGX_TEST_"
MASK: Final = "****"
SCHEMA_PATTERN: Final = re.compile(r"[a-z][a-z0-9_]{0,19}")
SECRET_PARAMETERS: Final = (
    "password",
    "sslpassword",
    "oauth_client_secret",
    "scram_client_key",
    "scram_server_key",
)


# A dotted key, its raw value, and where it came from.
_Entry = tuple[str, object, str]


def _check_dsn(value: object) -> object:
    if isinstance(value, str):
        try:
            conninfo_to_dict(value)
        except psycopg.Error:
            # libpq's own message quotes the text it tripped over, which may be the password.
            raise ValueError("must be a libpq connection string (host=… dbname=…) or a postgresql:// URI") from None
    return value


def _check_schema(value: object) -> object:
    if isinstance(value, str):
        if not SCHEMA_PATTERN.fullmatch(value):
            raise ValueError("must be 1 to 20 of a-z, 0-9 and _, and start with a letter")
        if value.startswith("pg_") or value == "information_schema":
            raise ValueError("must not be a schema that PostgreSQL keeps for itself")
    return value


def _check_passfile(value: object) -> object:
    if isinstance(value, str | Path):
        path = Path(value).expanduser()
        try:
            mode = path.stat().st_mode
        except OSError as e:
            raise ValueError(f"must be a readable file ({e.strerror})") from None
        if not stat.S_ISREG(mode):
            raise ValueError("must be a regular file")
        if mode & 0o077:
            raise ValueError("must be readable by its owner only, else PostgreSQL ignores it: chmod 600")
        return path
    return value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
Environment = Literal["production", "shadow", "development"]

_STRICT: Final = ConfigDict(extra="forbid", hide_input_in_errors=True)


@validated(frozen=True, config=_STRICT)
class Database:
    """Section `database`: where the engine is."""

    dsn: Annotated[str | None, BeforeValidator(_check_dsn)] = field(default=None, repr=False)
    """libpq connection string or URI; None = the embedded server."""
    schema: Annotated[str, BeforeValidator(_check_schema)] = "msgx"
    """Schema of the airport; roles, lock key and NOTIFY channel derive from it."""
    passfile: Annotated[Path | None, BeforeValidator(_check_passfile)] = None
    """File in the format of ~/.pgpass."""

    def conninfo(self, **extra: str) -> str:
        """Return the connection string with the passfile and `extra` parameters in it; needs a dsn."""
        if self.dsn is None:
            raise ValueError("no dsn: the embedded server gives its own")
        if self.passfile is not None:
            extra.setdefault("passfile", str(self.passfile))
        return make_conninfo(self.dsn, **extra)


@validated(frozen=True, config=_STRICT)
class Log:
    """Section `log`."""

    level: Annotated[Level | None, BeforeValidator(_upper)] = None
    """Smallest level written; None = the command decides."""


@validated(frozen=True, config=_STRICT)
class _Values:
    environment: Environment = "development"
    database: Database = field(default_factory=Database)
    log: Log = field(default_factory=Log)


_SECTIONS: Final[dict[str, type[Any]]] = {"database": Database, "log": Log}
_ADAPTER: Final = TypeAdapter(_Values)


def _keys() -> dict[str, object]:
    """Return every key, dotted, with its default, in the order they are shown."""
    defaults = _Values()
    keys: dict[str, object] = {"environment": defaults.environment}
    for section, cls in _SECTIONS.items():
        for name in cls.__dataclass_fields__:
            keys[f"{section}.{name}"] = getattr(getattr(defaults, section), name)
    return keys


_DEFAULTS: Final = _keys()


@dataclass(frozen=True)
class Config:
    """The effective configuration of one run, checked as a whole."""

    environment: Environment
    database: Database
    log: Log
    sources: Mapping[str, str] = field(repr=False)
    """Where each key that is set came from: "command line", "environment variable X" or "file P"."""

    def describe(self) -> list[tuple[str, str, str]]:
        """Return (key, value, source) of every key in a fixed order; secrets masked, not set = ''."""
        rows = []
        for key in _DEFAULTS:
            value: object = self
            for part in key.split("."):
                value = getattr(value, part)
            text = "" if value is None else str(value)
            if key == "database.dsn":
                text = mask_dsn(text)
            rows.append((key, text, self.sources.get(key, "default")))
        return rows


def dsn_has_password(dsn: str) -> bool:
    """Tell whether a connection string or URI carries a password (or another secret) itself."""
    try:
        return any(conninfo_to_dict(dsn).get(name) for name in SECRET_PARAMETERS)
    except psycopg.Error:
        return False


def mask_dsn(dsn: str) -> str:
    """Return the connection string with its secrets as `****`; one without secrets comes back unchanged.

    One with a secret is shown in its key=value form: there, no quoting or escaping can let a secret through.
    """
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:
        return MASK
    secrets = {name: MASK for name in SECRET_PARAMETERS if parameters.get(name)}
    return make_conninfo("", **{**parameters, **secrets}) if secrets else dsn


def load_config(
    config_file: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, str | None] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Read, merge and check the configuration.

    `config_file` is the value of --config; without it $MSGX_CONFIG, then ./msgx.toml if it is there.
    `overrides` are the flags given, by dotted key ("database.dsn"). `environ` defaults to os.environ.
    Raises MsgxError(CONFIG).
    """
    env = os.environ if environ is None else environ
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    layers = (_from_file(config_file, env), _from_environment(env), _from_flags(overrides or {}))
    for key, value, source in (entry for layer in layers for entry in layer):
        if key not in _DEFAULTS:
            raise _unknown(key, source)
        if value is None or value == "":
            continue
        values[key] = value
        sources[key] = source
    return _build(values, sources)


def _from_flags(overrides: Mapping[str, str | None]) -> Iterator[_Entry]:
    for key, value in overrides.items():
        yield key, value, "the command line"


def _from_environment(env: Mapping[str, str]) -> Iterator[_Entry]:
    for name in sorted(env):
        if not name.startswith(ENV_PREFIX) or name in ENV_NOT_KEYS or name.startswith(ENV_FOREIGN_PREFIX):
            continue
        key = name[len(ENV_PREFIX) :].lower().replace("__", ".", 1)
        # The one exact spelling per key; Msgx_… or MSGX_DATABASE_DSN would otherwise be half accepted.
        yield key if name == _env_name(key) else name, env[name], f"environment variable {name}"


def _env_name(key: str) -> str:
    return ENV_PREFIX + key.replace(".", "__").upper()


def _from_file(config_file: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Iterator[_Entry]:
    given = os.fspath(config_file) if config_file is not None else ""
    named_by = "--config"
    if not given:
        given, named_by = env.get("MSGX_CONFIG", ""), "MSGX_CONFIG"
    if not given:
        if not os.path.lexists(DEFAULT_FILE):
            return
        given, named_by = DEFAULT_FILE, "the default"
    path = Path(given).expanduser()
    what = f"the configuration file {path}"
    hint = "name an existing TOML file, or leave --config and MSGX_CONFIG out"
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as e:
        raise _error(f"cannot read {what} ({named_by}): {e.strerror}", hint) from None
    except UnicodeDecodeError as e:
        raise _error(f"{what} is not UTF-8 (byte {e.start})", "save it as UTF-8") from None
    except tomllib.TOMLDecodeError as e:
        raise _error(f"{what} is not TOML: {e}", "correct the file at that place") from None
    source = f"file {path}"
    for name, value in document.items():
        if not isinstance(value, dict):
            if name in _SECTIONS:
                raise _error(f"configuration key {name} ({source}): is a section", f"write [{name}] and the keys below")
            yield name, value, source
            continue
        if name not in _SECTIONS:
            raise _unknown(name, source)
        for key, inner in value.items():
            # A path in the file means the same from wherever the command is started.
            if (name, key) == ("database", "passfile") and isinstance(inner, str) and inner:
                inner = str(path.absolute().parent / Path(inner).expanduser())
            yield f"{name}.{key}", inner, source


def _build(values: Mapping[str, object], sources: Mapping[str, str]) -> Config:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    try:
        checked = _ADAPTER.validate_python(tree)
    except ValidationError as e:
        problem = e.errors(include_url=False, include_context=False, include_input=False)[0]
        # Unions and literals add parts of their own behind the key.
        path = [str(part) for part in problem["loc"]]
        key = next((".".join(path[:n]) for n in (2, 1) if ".".join(path[:n]) in _DEFAULTS), ".".join(path))
        rule = problem["msg"].removeprefix("Value error, ")
        default = _DEFAULTS.get(key)
        back = "leave it out" if default is None else f"leave it out for the default {default}"
        source = sources.get(key, "default")
        raise _error(f"configuration key {key} ({source}): {rule}", f"correct it in {source}, or {back}") from None
    if checked.environment == "production" and checked.database.dsn is None:
        raise _error(
            f"configuration key database.dsn (not set): environment = production ({sources['environment']})"
            " refuses the embedded server",
            f"set database.dsn by --db, {_env_name('database.dsn')} or in {DEFAULT_FILE}",
        )
    return Config(checked.environment, checked.database, checked.log, dict(sources))


def _unknown(key: str, source: str) -> MsgxError:
    known = list(_DEFAULTS)
    spelt = key.removeprefix(ENV_PREFIX).lower().replace("_", ".")
    near = difflib.get_close_matches(spelt, [*known, *_SECTIONS], n=1, cutoff=0.5)
    names = [_env_name(k) if source.startswith("environment") else k for k in (near or known)]
    hint = f"did you mean {names[0]}? Else remove it" if near else f"remove it; known are {', '.join(names)}"
    return _error(f"configuration key {key} ({source}): unknown key", hint)


def _error(message: str, hint: str) -> MsgxError:
    return MsgxError(message, exit_code=ExitCode.CONFIG, hint=hint)
