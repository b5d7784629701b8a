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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from msgx_driver.errors import ExitCode, MsgxError

__all__ = [
    "LOOPS",
    "Config",
    "Database",
    "Kafka",
    "Log",
    "Mailbox",
    "Service",
    "dsn_has_password",
    "load_config",
    "mask_dsn",
    "require_adapters",
]

DEFAULT_FILE: Final = "msgx.toml"
ENV_PREFIX: Final = "MSGX_"
ENV_NOT_KEYS: Final = ("MSGX_HOME", "MSGX_CONFIG")
ENV_FOREIGN_PREFIX: Final = "MSGX_TEST_"
MASK: Final = "****"
SCHEMA_PATTERN: Final = re.compile(r"[a-z][a-z0-9_]{0,19}")
IDENTIFIER_PATTERN: Final = re.compile(r"[A-Za-z0-9_$]{1,64}")
SOURCE_PATTERN: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")
TOPIC_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
REPLAY_SOURCE: Final = "replay"
LOOPS: Final = ("poller", "pump", "relay", "backfill")
"""Every loop of the service, in the order messages pass them."""
LEASE_MARGIN: Final = 5
"""Seconds a lease must outlive the last moment in which the broker client may still deliver."""
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


def _check_file(value: object) -> object:
    if isinstance(value, str | Path):
        path = Path(value).expanduser()
        try:
            with path.open("rb"):
                pass
        except OSError as e:
            raise ValueError(f"must be a readable file ({e.strerror})") from None
        return path
    return value


def _check_bootstrap(value: object) -> object:
    if isinstance(value, str):
        for broker in value.split(","):
            host, colon, port = broker.strip().rpartition(":")
            if not re.fullmatch(r"[^\s,]{1,253}", host if colon else port):
                raise ValueError("must be host:port, or several with commas in between")
            if colon and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
                raise ValueError(f"must be host:port with a port of 1 to 65535, not {port[:20]}")
    return value


def _check_source(value: object) -> object:
    if isinstance(value, str):
        if not SOURCE_PATTERN.fullmatch(value):
            raise ValueError("must be 1 to 60 of letters, digits, _, . and -")
        if value == REPLAY_SOURCE:
            raise ValueError(f"must not be {REPLAY_SOURCE}: that is the source of the command replay")
    return value


def _check_identifier(value: object) -> object:
    if isinstance(value, str) and not IDENTIFIER_PATTERN.fullmatch(value):
        raise ValueError("must be 1 to 64 of letters, digits, _ and $")
    return value


def _check_topic(value: object) -> object:
    if isinstance(value, str) and (not TOPIC_PATTERN.fullmatch(value) or value in (".", "..")):
        raise ValueError("must be 1 to 249 of letters, digits, _, . and -")
    return value


def _check_loops(value: object) -> object:
    if isinstance(value, str):
        names = [name.strip() for name in value.split(",")]
        if len(set(names)) < len(names) or not set(names) <= set(LOOPS):
            raise ValueError(f"must be a comma list of {', '.join(LOOPS)}, each once at most")
        return ",".join(name for name in LOOPS if name in names)
    return value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
Environment = Literal["production", "shadow", "development"]

Identifier = Annotated[str, BeforeValidator(_check_identifier)]
Topic = Annotated[str | None, BeforeValidator(_check_topic)]
StatusValue = Annotated[str, Field(max_length=20)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]

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
class Mailbox:
    """Section `mailbox`: the MySQL or MariaDB database that the airport's messages arrive in (US-01, US-09)."""

    name: Annotated[str, BeforeValidator(_check_source)] = "mailbox"
    """Name of the source in the engine."""
    host: Annotated[str, Field(max_length=253)] | None = None
    """Host name or address."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 3306
    """TCP port."""
    socket: Path | None = None
    """Unix socket; goes before host and port."""
    user: str | None = None
    """Account."""
    password: str | None = field(default=None, repr=False)
    """Password of the account."""
    database: str | None = None
    """Database that holds the table."""
    ssl_ca: Annotated[Path | None, BeforeValidator(_check_file)] = None
    """File of the authority that signed the server's certificate; set = TLS with a verified host name."""
    table: Identifier = "CMINMSGS"
    """Table of incoming messages; its columns follow."""
    id_column: Identifier = "CMINMSGS_ID"
    body_column: Identifier = "CMINMSGS_CLOB_MSG"
    received_column: Identifier = "CMINMSGS_DATE_RECEIVED"
    processed_column: Identifier = "CMINMSGS_DATE_PROCESSED"
    status_column: Identifier = "CMINMSGS_STATUS"
    status_succeeded: StatusValue | None = None
    """Written to the status column with the mark of a SUCCEEDED message; None = the column stays as it is."""
    status_skipped: StatusValue | None = None
    """The same for SKIPPED."""
    status_dead: StatusValue | None = None
    """The same for DEAD."""
    start_at: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    """First id to read, needed at the first start on an empty cursor (D38)."""
    id_step: Annotated[int, Field(ge=1, le=65_535)] = 1
    """Distance of the ids that the mailbox allots (auto_increment_increment)."""
    poll_seconds: Annotated[float, Field(ge=0.01, le=86_400, allow_inf_nan=False)] = 1.0
    """Seconds between two looks at a mailbox that had nothing new."""
    batch_rows: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Rows read at once, at most."""
    batch_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] = 8_388_608
    """Bytes read at once, at most; a single longer row is read alone."""
    rescan_seconds: Seconds = 60.0
    """Seconds between two looks behind the watermark."""


@validated(frozen=True, config=_STRICT)
class Kafka:
    """Section `kafka`: the broker that states and notices go to (US-07)."""

    bootstrap: Annotated[str | None, BeforeValidator(_check_bootstrap)] = None
    """Brokers to ask first: host:port, comma separated."""
    topic_schd: Topic = None
    """Topic of states; None = `<schema>.schd`."""
    topic_msg: Topic = None
    """Topic of notices; None = `<schema>.msg`."""
    properties: Path | None = None
    """File with librdkafka settings, `name=value` a line, for TLS, SASL and the like."""
    message_timeout_ms: Annotated[int, Field(ge=1_000, le=900_000)] = 10_000
    """Milliseconds after which the client gives a record up."""
    lease_seconds: Annotated[int, Field(ge=1, le=3_600)] = 20
    """Seconds a relay owns a topic from each claim on."""
    batch: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Records of one claim, at most."""


@validated(frozen=True, config=_STRICT)
class Service:
    """Section `service`: the command `run`."""

    loops: Annotated[str, BeforeValidator(_check_loops)] = ",".join(LOOPS)
    """Loops to run, comma separated."""
    catch_up_depth: Annotated[int, Field(ge=0, le=1_000_000_000)] = 200
    """Waiting messages above which commits may be flushed late; 0 = never."""

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Return the loops to run, in the order of `LOOPS`."""
        return tuple(self.loops.split(","))


@validated(frozen=True, config=_STRICT)
class _Values:
    environment: Environment = "development"
    database: Database = field(default_factory=Database)
    log: Log = field(default_factory=Log)
    mailbox: Mailbox = field(default_factory=Mailbox)
    kafka: Kafka = field(default_factory=Kafka)
    service: Service = field(default_factory=Service)


_SECTIONS: Final[dict[str, type[Any]]] = {
    "database": Database,
    "log": Log,
    "mailbox": Mailbox,
    "kafka": Kafka,
    "service": Service,
}
_PATH_KEYS: Final = ("database.passfile", "mailbox.socket", "mailbox.ssl_ca", "kafka.properties")
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
    mailbox: Mailbox
    kafka: Kafka
    service: Service
    sources: Mapping[str, str] = field(repr=False)
    """Where each key that is set came from: "command line", "environment variable X" or "file P"."""

    @property
    def topics(self) -> dict[str, str]:
        """Return the topic of each target: KAFKA:schd and KAFKA:msg."""
        defaults = _default_topics(self.database.schema)
        return {
            "KAFKA:schd": self.kafka.topic_schd or defaults["kafka.topic_schd"],
            "KAFKA:msg": self.kafka.topic_msg or defaults["kafka.topic_msg"],
        }

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
            elif key == "mailbox.password" and text:
                text = MASK
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
            if f"{name}.{key}" in _PATH_KEYS and isinstance(inner, str) and inner:
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
    shortest = checked.kafka.message_timeout_ms / 1000 + LEASE_MARGIN
    if checked.kafka.lease_seconds <= shortest:
        key = "kafka.lease_seconds" if "kafka.lease_seconds" in sources else "kafka.message_timeout_ms"
        raise _error(
            f"configuration key {key} ({sources.get(key, 'default')}): kafka.lease_seconds must be more than"
            f" kafka.message_timeout_ms / 1000 + {LEASE_MARGIN}, else two relays could deliver at the same time",
            f"set kafka.lease_seconds above {shortest:g}, or a shorter kafka.message_timeout_ms",
        )
    config = Config(
        checked.environment,
        checked.database,
        checked.log,
        checked.mailbox,
        checked.kafka,
        checked.service,
        dict(sources),
    )
    if len(set(config.topics.values())) < len(config.topics):
        key = "kafka.topic_msg" if "kafka.topic_msg" in sources else "kafka.topic_schd"
        raise _error(
            f"configuration key {key} ({sources.get(key, 'default')}): states and notices need a topic each",
            "give kafka.topic_schd and kafka.topic_msg different names",
        )
    return config


def _default_topics(schema: str) -> dict[str, str]:
    return {"kafka.topic_schd": f"{schema}.schd", "kafka.topic_msg": f"{schema}.msg"}


def require_adapters(config: Config, loops: Collection[str]) -> None:
    """Refuse to run `loops` when one lacks what it works with, or the environment forbids it (contract §6).

    production needs all of `LOOPS`; shadow neither marks the mailbox nor writes to the topics of production.
    Raises MsgxError(CONFIG) that names the key.
    """
    environment = f"environment = {config.environment}"
    loops_key = f"configuration key service.loops ({_source(config, 'service.loops')})"
    off = [name for name in LOOPS if name not in loops]
    if config.environment == "production" and off:
        raise _error(
            f"{loops_key}: {environment} needs the loop {off[0]}",
            f"leave service.loops and --loops out, or name all of {','.join(LOOPS)}",
        )
    if config.environment == "shadow" and "shadow" not in config.database.schema:
        raise _error(
            f"configuration key database.schema ({_source(config, 'database.schema')}): {environment} never works in"
            " the schema of production, so its schema has shadow in its name",
            f"install one of its own, for instance {config.database.schema[:13]}_shadow, and name it",
        )
    if config.environment == "shadow" and "backfill" in loops:
        raise _error(
            f"{loops_key}: {environment} never marks the mailbox",
            "set service.loops to poller,pump,relay",
        )
    missing: list[tuple[str, str]] = []
    if {"poller", "backfill"} & set(loops):
        box = config.mailbox
        user = next(name for name in ("poller", "backfill") if name in loops)
        if box.host is None and box.socket is None:
            missing.append(("mailbox.host", user))
        missing += [(f"mailbox.{key}", user) for key in ("user", "database") if getattr(box, key) is None]
    if "relay" in loops and config.kafka.bootstrap is None:
        missing.append(("kafka.bootstrap", "relay"))
    for key, loop in missing:
        leave = "" if config.environment == "production" else f", or leave {loop} out of service.loops"
        raise _error(
            f"configuration key {key} (not set): the loop {loop} needs it",
            f"set it by {_env_name(key)} or in {DEFAULT_FILE}{leave}",
        )
    if config.environment == "shadow" and "relay" in loops:
        defaults = _default_topics(config.database.schema)
        for key in defaults:
            topic = getattr(config.kafka, key.partition(".")[2])
            if topic is None or "shadow" not in topic:
                raise _error(
                    f"configuration key {key} ({_source(config, key)}): {environment} never writes to the topics of"
                    " production, so its topics have shadow in their names",
                    f"name a topic of its own, for instance {config.database.schema}.shadow.{key.rpartition('_')[2]}",
                )


def _source(config: Config, key: str) -> str:
    return config.sources.get(key, "not set")


def _unknown(key: str, source: str) -> MsgxError:
    known = list(_DEFAULTS)
    spelt = key.removeprefix(ENV_PREFIX).lower().replace("_", ".")
    near = difflib.get_close_matches(spelt, [*known, *_SECTIONS], n=1, cutoff=0.5)
    names = [_env_name(k) if source.startswith("environment") else k for k in (near or known)]
    hint = f"did you mean {names[0]}? Else remove it" if near else f"remove it; known are {', '.join(names)}"
    return _error(f"configuration key {key} ({source}): unknown key", hint)


def _error(message: str, hint: str) -> MsgxError:
    return MsgxError(message, exit_code=ExitCode.CONFIG, hint=hint)
