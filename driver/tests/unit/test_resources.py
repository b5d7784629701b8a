from __future__ import annotations

from pathlib import Path

import pytest

from msgx_driver import resources
from msgx_driver.errors import ExitCode, MsgxError


def lay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "root" / "driver" / "msgx_driver"
    package.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    monkeypatch.setattr(resources, "_CHECKOUT", tmp_path / "root")
    return package


def test_this_checkout_has_both_folders() -> None:
    assert (resources.sql_dir() / "install.sql").is_file()
    assert list(resources.migrations_dir().glob("V0001__*.sql"))


def test_the_installed_files_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = lay_out(tmp_path, monkeypatch)
    for folder in ("_sql", "_migrations"):
        (package / folder).mkdir()
    (tmp_path / "root" / "sql").mkdir()
    (tmp_path / "root" / "pyproject.toml").touch()
    assert resources.sql_dir() == package / "_sql"
    assert resources.migrations_dir() == package / "_migrations"


def test_a_checkout_is_told_by_its_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path, monkeypatch)
    (tmp_path / "root" / "sql").mkdir()
    with pytest.raises(MsgxError, match="sql/ folder is neither at") as e:
        resources.sql_dir()
    assert e.value.exit_code is ExitCode.CONFIG
    (tmp_path / "root" / "pyproject.toml").touch()
    assert resources.sql_dir() == tmp_path / "root" / "sql"
