from __future__ import annotations

from pathlib import Path

import pytest

from msgx_driver.config import LOOPS, Config, dsn_has_password, load_config, mask_dsn, require_adapters
from msgx_driver.errors import ExitCode, MsgxError

KEYS = [
    "environment",
    "database.dsn",
    "database.schema",
    "database.passfile",
    "log.level",
    "mailbox.name",
    "mailbox.host",
    "mailbox.port",
    "mailbox.socket",
    "mailbox.user",
    "mailbox.password",
    "mailbox.database",
    "mailbox.ssl_ca",
    "mailbox.table",
    "mailbox.id_column",
    "mailbox.body_column",
    "mailbox.received_column",
    "mailbox.processed_column",
    "mailbox.status_column",
    "mailbox.status_succeeded",
    "mailbox.status_skipped",
    "mailbox.status_dead",
    "mailbox.start_at",
    "mailbox.id_step",
    "mailbox.poll_seconds",
    "mailbox.batch_rows",
    "mailbox.batch_bytes",
    "mailbox.rescan_seconds",
    "kafka.bootstrap",
    "kafka.topic_schd",
    "kafka.topic_msg",
    "kafka.properties",
    "kafka.message_timeout_ms",
    "kafka.lease_seconds",
    "kafka.batch",
    "service.loops",
    "service.catch_up_depth",
]
MAILBOX = {"MSGX_MAILBOX__HOST": "m", "MSGX_MAILBOX__USER": "u", "MSGX_MAILBOX__DATABASE": "d"}
BROKER = {"MSGX_KAFKA__BOOTSTRAP": "b:9092"}
PRODUCTION = {"MSGX_ENVIRONMENT": "production", "MSGX_DATABASE__DSN": "dbname=d"}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without msgx.toml."""
    monkeypatch.chdir(tmp_path)


def load(
    text: str | None = None, env: dict[str, str] | None = None, flags: dict[str, str | None] | None = None
) -> Config:
    if text is not None:
        Path("msgx.toml").write_text(text, encoding="utf-8")
    return load_config(None, flags, environ=env or {})


def refused(
    text: str | None = None, env: dict[str, str] | None = None, flags: dict[str, str | None] | None = None
) -> MsgxError:
    with pytest.raises(MsgxError) as e:
        load(text, env, flags)
    assert e.value.exit_code is ExitCode.CONFIG
    assert e.value.hint
    return e.value


def test_defaults() -> None:
    config = load()
    assert config.environment == "development"
    assert (config.database.dsn, config.database.schema, config.database.passfile) == (None, "msgx", None)
    assert config.log.level is None
    assert config.describe()[:5] == [
        ("environment", "development", "default"),
        ("database.dsn", "", "default"),
        ("database.schema", "msgx", "default"),
        ("database.passfile", "", "default"),
        ("log.level", "", "default"),
    ]


def test_each_source_wins_over_those_after_it() -> None:
    text = '[database]\nschema = "of_file"\n'
    env = {"MSGX_DATABASE__SCHEMA": "of_env"}
    flags: dict[str, str | None] = {"database.schema": "of_flag"}
    seen = [
        (c.database.schema, {k: s for k, _, s in c.describe()}["database.schema"])
        for c in (load(text, env, flags), load(text, env), load(text))
    ]
    assert seen == [
        ("of_flag", "the command line"),
        ("of_env", "environment variable MSGX_DATABASE__SCHEMA"),
        ("of_file", "file msgx.toml"),
    ]


def test_keys_are_merged_one_by_one() -> None:
    config = load(
        'environment = "shadow"\n[database]\ndsn = "dbname=x"\n[log]\nlevel = "debug"\n',
        {"MSGX_LOG__LEVEL": "error"},
        {"database.schema": "pek"},
    )
    assert (config.environment, config.database.dsn, config.database.schema, config.log.level) == (
        "shadow",
        "dbname=x",
        "pek",
        "ERROR",
    )


def test_empty_is_not_set_in_every_source() -> None:
    config = load(
        '[database]\ndsn = ""\nschema = "of_file"\n',
        {"MSGX_DATABASE__SCHEMA": "", "MSGX_CONFIG": "", "MSGX_LOG__LEVEL": ""},
        {"database.schema": "", "database.dsn": None},
    )
    assert (config.database.dsn, config.database.schema, config.log.level) == (None, "of_file", None)


@pytest.mark.parametrize(
    ("text", "env", "flags", "key", "source", "next_step"),
    [
        ("[database]\ndns = 1\n", {}, {}, "database.dns", "file msgx.toml", "database.dsn"),
        ("[databse]\ndsn = 1\n", {}, {}, "databse", "file msgx.toml", "database"),
        ("enviroment = 'shadow'\n", {}, {}, "enviroment", "file msgx.toml", "environment"),
        (None, {"MSGX_DATABASE__DNS": "x"}, {}, "database.dns", "MSGX_DATABASE__DNS", "MSGX_DATABASE__DSN"),
        (
            None,
            {"MSGX_DATABASE_DSN": "x"},
            {},
            "MSGX_DATABASE_DSN",
            "MSGX_DATABASE_DSN",
            "MSGX_DATABASE__DSN",
        ),
        (None, {"MSGX_QQQQQQQQ": "x"}, {}, "MSGX_QQQQQQQQ", "MSGX_QQQQQQQQ", "MSGX_ENVIRONMENT"),
        (None, {"MSGX_QQQQQQQQ": ""}, {}, "MSGX_QQQQQQQQ", "MSGX_QQQQQQQQ", "MSGX_ENVIRONMENT"),
        (None, {}, {"database.nope": "x"}, "database.nope", "the command line", "remove it"),
    ],
)
def test_an_unknown_key_is_an_error_in_every_source(
    text: str | None, env: dict[str, str], flags: dict[str, str | None], key: str, source: str, next_step: str
) -> None:
    error = refused(text, env, flags)
    assert "unknown key" in str(error)
    assert key.lower() in str(error).lower()
    assert source in str(error)
    assert next_step in (error.hint or "")


def test_variables_that_are_no_keys_are_left_alone() -> None:
    load(env={"MSGX_HOME": "/x", "MSGX_TEST_PG_DSN": "y", "MSGXY": "z", "OTHER": "1", "msgx_foo": "1"})


@pytest.mark.parametrize("value", ["Msgx", "1a", "a-b", "a" * 21, "a b", "msgx\n", 'a"b', "é", "pg_x"])
def test_bad_schema_names(value: str) -> None:
    error = refused(env={"MSGX_DATABASE__SCHEMA": value})
    assert "database.schema" in str(error)
    assert "MSGX_DATABASE__SCHEMA" in str(error)
    assert "msgx" in (error.hint or "")


@pytest.mark.parametrize("value", ["a", "a" * 20, "pek_2", "msgx"])
def test_good_schema_names(value: str) -> None:
    assert load(flags={"database.schema": value}).database.schema == value


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[database]\nschema = 5\n", "database.schema (file msgx.toml)"),
        ("[database.dsn]\nhost = 'h'\n", "database.dsn (file msgx.toml)"),
        ("database = 'x'\n", "database (file msgx.toml): is a section"),
        ("[log]\nlevel = 'loud'\n", "log.level (file msgx.toml)"),
        ("environment = 'prod'\n", "environment (file msgx.toml)"),
        ("[database\n", "is not TOML"),
    ],
)
def test_wrong_values_in_the_file(text: str, part: str) -> None:
    assert part in str(refused(text))


def test_a_level_may_be_written_in_any_case() -> None:
    assert load(flags={"log.level": "Warning"}).log.level == "WARNING"


def test_the_file_is_named_by_flag_then_variable_then_found_here(tmp_path: Path) -> None:
    for name in ("flag", "env"):
        (tmp_path / f"{name}.toml").write_text(f'[database]\nschema = "{name}"\n')
    Path("msgx.toml").write_text('[database]\nschema = "here"\n')
    env = {"MSGX_CONFIG": "env.toml"}
    assert load_config("flag.toml", environ=env).database.schema == "flag"
    assert load_config("", environ=env).database.schema == "env"
    assert load_config(None, environ={}).database.schema == "here"


@pytest.mark.parametrize("named_by", ["--config", "MSGX_CONFIG"])
def test_a_named_file_must_be_there(named_by: str) -> None:
    with pytest.raises(MsgxError, match=r"cannot read .*nope\.toml \(" + named_by) as e:
        load_config("nope.toml" if named_by == "--config" else None, environ={"MSGX_CONFIG": "nope.toml"})
    assert e.value.exit_code is ExitCode.CONFIG


def test_a_default_file_that_cannot_be_read_is_an_error_too() -> None:
    Path("msgx.toml").symlink_to("nowhere")
    assert "cannot read" in str(refused())


def test_a_file_must_be_utf8_and_no_folder() -> None:
    Path("bad.toml").write_bytes(b"environment = '\xff'\n")
    Path("folder").mkdir()
    for name, part in (("bad.toml", "not UTF-8"), ("folder", "cannot read")):
        with pytest.raises(MsgxError, match=part):
            load_config(name, environ={})


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGX_DATABASE__SCHEMA", "of_process")
    assert load_config().database.schema == "of_process"


# -- secrets


SECRET_DSNS = [
    "host=h dbname=d user=u password=s3cret",
    "host=h password='s3cret with \\' quote' dbname=d",
    "postgresql://u:s3cret@h:5432/d",
    "postgres://u:s3cret%2F@h/d?sslmode=require",
    "postgresql://u@h/d?password=s3cret",
    "host=h sslpassword=s3cret",
]


@pytest.mark.parametrize("dsn", SECRET_DSNS)
def test_passwords_are_seen_and_masked(dsn: str) -> None:
    config = load(env={"MSGX_DATABASE__DSN": dsn})
    shown = {k: v for k, v, _ in config.describe()}["database.dsn"]
    assert dsn_has_password(dsn)
    assert "s3cret" not in shown
    assert "quote" not in shown
    assert "****" in shown
    assert "host=h" in shown
    assert config.database.dsn == dsn
    assert "s3cret" not in repr(config)
    assert not dsn_has_password(mask_dsn("host=h user=password"))


@pytest.mark.parametrize("dsn", ["host=h dbname=d", "postgresql://u@h/d", "postgresql:///d?host=/x", ""])
def test_a_dsn_without_password_is_shown_as_it_is(dsn: str) -> None:
    assert not dsn_has_password(dsn)
    assert mask_dsn(dsn) == dsn


@pytest.mark.parametrize("dsn", ["s3cret words", "host=h password='s3cret", "postgresql://u:s3cret@[h/d", "s3cret=1"])
def test_a_bad_dsn_is_refused_without_repeating_it(dsn: str) -> None:
    error = refused(flags={"database.dsn": dsn})
    assert "database.dsn (the command line)" in str(error)
    assert "s3cret" not in str(error) + (error.hint or "")
    assert mask_dsn(dsn) == "****"
    assert dsn_has_password(dsn) is False


def test_production_refuses_the_embedded_server() -> None:
    error = refused(env={"MSGX_ENVIRONMENT": "production"})
    assert "database.dsn" in str(error)
    assert "embedded" in str(error)
    assert "MSGX_DATABASE__DSN" in (error.hint or "")
    assert load(env={"MSGX_ENVIRONMENT": "production", "MSGX_DATABASE__DSN": "dbname=d"}).database.dsn
    assert load(env={"MSGX_ENVIRONMENT": "shadow"}).database.dsn is None


def test_a_passfile_must_be_private_and_is_put_into_the_connection(tmp_path: Path) -> None:
    passfile = tmp_path / "pass"
    passfile.write_text("*:*:*:*:s3cret")
    passfile.chmod(0o640)
    text = '[database]\ndsn = "host=h"\npassfile = "pass"\n'
    assert "chmod 600" in str(refused(text))
    passfile.chmod(0o600)
    config = load(text)
    assert config.database.passfile == passfile
    assert config.database.conninfo(dbname="d") == f"host=h dbname=d passfile={passfile}"
    assert "database.passfile" in str(refused(flags={"database.passfile": "nope"}))
    assert "regular file" in str(refused(flags={"database.passfile": str(tmp_path)}))


def test_a_relative_passfile_is_beside_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "pass").touch(0o600)
    (folder / "msgx.toml").write_text('[database]\npassfile = "pass"\n')
    assert load_config("etc/msgx.toml", environ={}).database.passfile == folder / "pass"


def test_conninfo_needs_a_dsn() -> None:
    with pytest.raises(ValueError, match="no dsn"):
        load().database.conninfo()


def test_every_key_is_described_once() -> None:
    assert [key for key, _, _ in load().describe()] == KEYS


# -- the service


def test_defaults_of_the_service() -> None:
    config = load()
    shown = {key: value for key, value, _ in config.describe()}
    assert config.topics == {"KAFKA:schd": "msgx.schd", "KAFKA:msg": "msgx.msg"}
    assert config.service.loop_names == LOOPS
    assert (shown["mailbox.port"], shown["mailbox.poll_seconds"], shown["mailbox.start_at"]) == ("3306", "1.0", "")
    assert (shown["mailbox.table"], shown["mailbox.id_column"]) == ("CMINMSGS", "CMINMSGS_ID")
    assert (shown["kafka.lease_seconds"], shown["kafka.batch"], shown["service.catch_up_depth"]) == ("20", "500", "200")


def test_topics_follow_the_schema_unless_named() -> None:
    config = load("[kafka]\ntopic_msg = 'other'\n", flags={"database.schema": "pek"})
    assert config.topics == {"KAFKA:schd": "pek.schd", "KAFKA:msg": "other"}
    assert "a topic each" in str(refused("[kafka]\ntopic_msg = 'msgx.schd'\n"))


def test_the_password_of_the_mailbox_is_never_shown() -> None:
    config = load(env={"MSGX_MAILBOX__PASSWORD": "s3cret"})
    assert config.mailbox.password == "s3cret"
    assert "s3cret" not in repr(config) + str(config.describe())
    assert {k: v for k, v, _ in config.describe()}["mailbox.password"] == "****"


def test_numbers_come_from_every_source() -> None:
    config = load("[mailbox]\nport = 3307\npoll_seconds = 2\n", {"MSGX_MAILBOX__START_AT": "0"})
    assert (config.mailbox.port, config.mailbox.poll_seconds, config.mailbox.start_at) == (3307, 2.0, 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mailbox.name", "replay"),
        ("mailbox.name", "a b"),
        ("mailbox.table", "CMINMSGS`"),
        ("mailbox.id_column", "a.b"),
        ("mailbox.body_column", "x" * 65),
        ("mailbox.status_dead", "x" * 21),
        ("mailbox.start_at", "-1"),
        ("mailbox.port", "0"),
        ("mailbox.id_step", "0"),
        ("mailbox.poll_seconds", "0"),
        ("mailbox.poll_seconds", "nan"),
        ("mailbox.batch_rows", "10001"),
        ("kafka.topic_schd", "a/b"),
        ("kafka.topic_msg", ".."),
        ("kafka.message_timeout_ms", "999"),
        ("kafka.batch", "0"),
        ("service.loops", "poller,pumps"),
        ("service.loops", "pump,pump"),
        ("service.loops", ","),
        ("service.catch_up_depth", "-1"),
        ("service.catch_up_depth", str(1 << 63)),
        ("mailbox.start_at", str(1 << 63)),
        ("mailbox.id_step", str(1 << 31)),
        ("mailbox.poll_seconds", "1e-9"),
        ("mailbox.host", "x" * 254),
        ("mailbox.ssl_ca", "/nowhere/ca.pem"),
        ("mailbox.batch_bytes", str(1 << 63)),
        ("kafka.bootstrap", ",,"),
        ("kafka.bootstrap", "host:99999999"),
        ("kafka.bootstrap", "host:x"),
    ],
)
def test_wrong_values_of_the_service(key: str, value: str) -> None:
    assert f"{key} (the command line)" in str(refused(flags={key: value}))


def test_a_lease_outlives_the_client() -> None:
    error = refused("[kafka]\nmessage_timeout_ms = 15000\n")
    assert "kafka.message_timeout_ms (file msgx.toml)" in str(error)
    assert "kafka.lease_seconds (the command line)" in str(refused(flags={"kafka.lease_seconds": "15"}))
    assert load("[kafka]\nmessage_timeout_ms = 14999\n").kafka.lease_seconds == 20


def test_loops_are_kept_in_one_order() -> None:
    assert load(flags={"service.loops": "relay, poller"}).service.loop_names == ("poller", "relay")


def test_paths_of_the_service_are_beside_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "msgx.toml").write_text(
        '[kafka]\nproperties = "k.properties"\n[mailbox]\nssl_ca = "ca.pem"\nsocket = "/run/m.sock"\n'
    )
    (folder / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    config = load_config("etc/msgx.toml", environ={})
    assert config.kafka.properties == folder / "k.properties"
    assert (config.mailbox.ssl_ca, config.mailbox.socket) == (folder / "ca.pem", Path("/run/m.sock"))


def not_runnable(env: dict[str, str], loops: tuple[str, ...] = LOOPS) -> str:
    with pytest.raises(MsgxError) as e:
        require_adapters(load(env=env), loops)
    assert e.value.exit_code is ExitCode.CONFIG
    assert e.value.hint
    return str(e.value)


def test_production_needs_every_loop_and_adapter() -> None:
    full = {**PRODUCTION, **MAILBOX, **BROKER}
    require_adapters(load(env=full), LOOPS)
    for loop in LOOPS:
        text = not_runnable(full, tuple(name for name in LOOPS if name != loop))
        assert "service.loops" in text
        assert f"needs the loop {loop}" in text
    for variable, key in (
        ("MSGX_MAILBOX__HOST", "mailbox.host"),
        ("MSGX_MAILBOX__USER", "mailbox.user"),
        ("MSGX_MAILBOX__DATABASE", "mailbox.database"),
        ("MSGX_KAFKA__BOOTSTRAP", "kafka.bootstrap"),
    ):
        assert f"{key} (not set)" in not_runnable({k: v for k, v in full.items() if k != variable})
    require_adapters(load(env={**full, "MSGX_MAILBOX__HOST": "", "MSGX_MAILBOX__SOCKET": "/s"}), LOOPS)


def test_a_loop_that_runs_needs_its_adapter_everywhere() -> None:
    require_adapters(load(), ("pump",))
    assert "kafka.bootstrap" in not_runnable({}, ("pump", "relay"))
    assert "the loop backfill needs it" in not_runnable({}, ("backfill",))


def test_shadow_touches_neither_the_mailbox_nor_the_topics_of_production() -> None:
    shadow = {"MSGX_ENVIRONMENT": "shadow", "MSGX_DATABASE__SCHEMA": "pek_shadow", **MAILBOX, **BROKER}
    loops = ("poller", "pump", "relay")
    own = {"MSGX_KAFKA__TOPIC_SCHD": "shadow.schd", "MSGX_KAFKA__TOPIC_MSG": "shadow.msg"}
    require_adapters(load(env={**shadow, **own}), loops)
    assert "service.loops" in not_runnable({**shadow, **own})
    assert "kafka.topic_schd (not set)" in not_runnable(shadow, loops)
    assert "kafka.topic_msg" in not_runnable({**shadow, **own, "MSGX_KAFKA__TOPIC_MSG": "other.msg"}, loops)
    assert "database.schema" in not_runnable({**shadow, **own, "MSGX_DATABASE__SCHEMA": "pek"}, loops)
    require_adapters(load(env={"MSGX_ENVIRONMENT": "shadow", "MSGX_DATABASE__SCHEMA": "shadow"}), ("pump",))
