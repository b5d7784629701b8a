"""What an operator asks before and while the service runs: doctor about mailbox and Kafka, config check, status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from msgx_driver.cli import cli
from msgx_driver.cli.show import with_age
from msgx_driver.clock import SystemClock
from msgx_driver.config import load_config
from msgx_driver.doctor import Finding, examine_outside

from .conftest import Database


def look(mailbox: Any, kafka: Any, **keys: str) -> dict[str, Finding]:
    settings = {
        "mailbox.host": "127.0.0.1",
        "mailbox.port": str(mailbox.port),
        "mailbox.user": mailbox.user,
        "mailbox.password": mailbox.password,
        "mailbox.database": mailbox.database,
        "kafka.bootstrap": kafka.bootstrap,
    }
    config = load_config(overrides=settings | {k.replace("__", "."): v for k, v in keys.items()}, environ={})
    return {f.check: f for f in examine_outside(config, SystemClock())}


def test_doctor_looks_at_mailbox_and_kafka(mailbox: Any, kafka: Any) -> None:
    mailbox.reset(binary=True)
    for topic in ("doctor.schd", "doctor.msg"):
        kafka.create_topic(topic)
    topics = {"kafka__topic_schd": "doctor.schd", "kafka__topic_msg": "doctor.msg"}
    found = look(mailbox, kafka, **topics)
    assert found["kafka"].status == "ok"
    assert found["mailbox"].status in ("ok", "warning")
    assert not [f for f in found.values() if f.exit_code]
    found = look(mailbox, kafka, mailbox__password="wrong", kafka__topic_schd="no.such", kafka__topic_msg="doctor.msg")
    assert (found["mailbox"].exit_code, found["kafka"].exit_code) == (4, 3)
    assert "the mailbox refuses: 1045" in found["mailbox"].detail
    assert "mailbox.*" in found["mailbox"].detail
    assert "--create --topic no.such --config cleanup.policy=compact" in found["kafka"].detail
    found = look(mailbox, kafka, mailbox__processed_column="NOPE", **topics)
    assert "NOPE" in found["mailbox"].detail
    assert look(mailbox, kafka, mailbox__table="NOPE", **topics)["mailbox"].exit_code == 4


def test_nothing_configured_is_nothing_to_look_at() -> None:
    assert list(examine_outside(load_config(overrides={}, environ={}), SystemClock())) == []


def test_config_check_applies_the_rules_of_run(tmp_path: Path) -> None:
    file = tmp_path / "msgx.toml"

    def check(text: str) -> Any:
        file.write_text(text, "utf-8")
        return CliRunner(env={"MSGX_HOME": str(tmp_path)}).invoke(cli, ["config", "check", "--config", str(file)])

    whole = (
        'environment = "production"\n[database]\ndsn = "dbname=x"\n[mailbox]\nhost = "h"\nuser = "u"\ndatabase = "d"\n'
        '[kafka]\nbootstrap = "b:9092"\n'
    )
    good = check(whole)
    assert good.output == "the configuration fits run: production, loops poller, pump, relay, backfill\n"
    assert "mailbox.host (not set)" in str(check(whole.replace('host = "h"\n', "")).exception)
    assert "kafka.properties" in str(check(f'{whole}properties = "{tmp_path}/none"\n').exception)


def test_a_loop_without_a_sign_of_life_has_failed() -> None:
    now = datetime(2026, 9, 9, 12, tzinfo=UTC)
    alive = {"check": "loop pump", "status": "ok", "detail": "RUNNING", "at": now - timedelta(seconds=59)}
    assert with_age(alive, now) == alive
    dead = with_age(alive | {"at": now - timedelta(seconds=61)}, now)
    assert (dead["status"], dead["detail"]) == ("fail", "no sign of life for 61 s; RUNNING")
    stopped = alive | {"status": "warn", "at": now - timedelta(days=1)}
    assert with_age(stopped, now) == stopped
    waiting = {"check": "queue", "status": "ok", "detail": "…", "at": now - timedelta(days=1)}
    assert with_age(waiting, now) == waiting


def test_status_check_ends_with_6_when_a_check_fails(database: Database) -> None:
    def status() -> Any:
        return CliRunner().invoke(cli, ["status", "--check", "--db", database.dsn], standalone_mode=False)

    assert status().exception is None
    database.value("select report_loop('pump', 'RUNNING', null, null)")
    assert status().exception is None
    # Killed two minutes ago.
    database.value("select report_loop('pump', 'RUNNING', null, now() - interval '2 minutes')")
    failed = status()
    assert failed.exception.exit_code == 6
    assert "loop pump failed" in str(failed.exception)


def test_an_empty_db_is_refused() -> None:
    done = CliRunner().invoke(cli, ["status", "--db", ""])
    assert done.exit_code == 2
    assert "--db is empty" in done.output
