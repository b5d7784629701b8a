"""The files of deploy/ name what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from msgx_driver.config import load_config, require_adapters

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
KEYS = [key for key, _, _ in load_config(environ={}).describe()]


def keys(document: dict[str, object]) -> set[str]:
    found = set()
    for name, value in document.items():
        found |= {f"{name}.{key}" for key in value} if isinstance(value, dict) else {name}
    return found


def test_the_example_configuration_is_one_for_production() -> None:
    config = load_config(DEPLOY / "msgx.example.toml", environ={})
    assert config.environment == "production"
    require_adapters(config, config.service.loop_names)


def test_the_example_configuration_explains_every_key() -> None:
    text = (DEPLOY / "msgx.example.toml").read_text("utf-8")
    assert keys(tomllib.loads(re.sub(r"^# ([a-z_]+ = )", r"\1", text, flags=re.MULTILINE))) == set(KEYS)


def test_the_unit_does_not_restart_what_stays_wrong() -> None:
    unit = (DEPLOY / "msgx-driver@.service").read_text("utf-8")
    assert "RestartPreventExitStatus=3 5 6\n" in unit
    assert "KillSignal=SIGTERM\n" in unit


def test_variables_of_the_compose_file_exist() -> None:
    names = set(re.findall(r"\b(MSGX_\w+):", (DEPLOY / "compose.yaml").read_text("utf-8")))
    assert names
    assert names <= {"MSGX_" + key.upper().replace(".", "__") for key in KEYS}
