from __future__ import annotations

from pathlib import Path

import pytest

from msgx_driver.config import Config, dsn_has_password, load_config, mask_dsn
from msgx_driver.errors import ExitCode, MsgxError

KEYS = ["environment", "database.dsn", "database.schema", "database.passfile", "log.level"]


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
    assert config.describe() == [
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
