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
    assert "RestartPreventExitStatus=2 3 5 6\n" in unit
    assert "KillSignal=SIGTERM\n" in unit
    assert " run --standby --config " in unit


def test_commented_defaults_of_the_example_are_the_defaults() -> None:
    text = (DEPLOY / "msgx.example.toml").read_text("utf-8")
    commented = tomllib.loads(re.sub(r"^(?!\[|# [a-z_]+ = ).*$", "", text, flags=re.MULTILINE).replace("\n# ", "\n"))
    for key, default, _ in load_config(environ={}).describe():
        section, _, name = key.rpartition(".")
        value = commented.get(section, {}).get(name)
        if value is not None and default:
            assert str(value) == default, key


def test_the_trial_gives_no_more_rights_than_the_documents_ask_for() -> None:
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    driver = compose.partition("\n  driver:\n")[2]
    assert "user=airport_pump " in driver
    assert "user=postgres" not in driver
    account = (DEPLOY / "mailbox-account.sql").read_text("utf-8")
    operations = (DEPLOY.parent / "docs" / "operations.md").read_text("utf-8")
    assert re.findall(r"^grant (.*) on ", account, re.MULTILINE) == re.findall(
        r"^grant (.*) on (?:sis|\*)\.", operations, re.MULTILINE
    )
    for file in re.findall(r"- \./([\w.-]+):", compose):
        assert (DEPLOY / file).is_file()


def test_every_published_port_is_for_this_machine_only() -> None:
    ports = re.findall(r"ports: \[(.*)\]", (DEPLOY / "compose.yaml").read_text("utf-8"))
    assert ports
    assert all(re.fullmatch(r'"127\.0\.0\.1:\d+:\d+"', port) for port in ports)


def test_an_image_is_built_from_what_the_wheel_needs() -> None:
    lines = (DEPLOY.parent / ".dockerignore").read_text("utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))
    wheel = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["include"])
    named = {project["project"]["readme"], *project["project"]["license-files"]}
    assert taken == wheel | named | {"pyproject.toml"}


def test_variables_of_the_compose_file_exist() -> None:
    names = set(re.findall(r"\b(MSGX_\w+):", (DEPLOY / "compose.yaml").read_text("utf-8")))
    assert names
    assert names <= {"MSGX_" + key.upper().replace(".", "__") for key in KEYS}
