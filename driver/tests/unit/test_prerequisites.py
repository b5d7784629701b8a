from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "prerequisites.sh"
TOOLS = ("sh", "sed", "head", "basename", "dirname", "id", "cat")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Make a folder with the few tools a machine always has, and no Python; return it for PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    return tools


def run(what: str, path: str, root: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "MSGX_PREREQ_ROOT": str(root or "/nonexistent"), **more}
    return subprocess.run(
        ["/bin/sh", SCRIPT, *what.split()],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        cwd=SCRIPT.parents[1],
    )


def fake_python(folder: Path, name: str, version: tuple[int, int], modules: bool = True) -> None:
    """Write an interpreter that claims a version and, where asked, lacks venv."""
    script = f"""#!{sys.executable}
import sys, types
sys.version_info = ({version[0]}, {version[1]}, 0)
sys._base_executable = {str(folder / name)!r}
if not {modules}: sys.modules["ensurepip"] = None
if sys.argv[1:2] == ["--version"]: print("Python {version[0]}.{version[1]}"); sys.exit()
exec(sys.argv[2])
"""
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def postgres(root: Path, version: str, *extensions: str) -> None:
    bindir = root / "usr/lib/postgresql" / version / "bin"
    share = root / "usr/share/postgresql" / version / "extension"
    bindir.mkdir(parents=True)
    share.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (bindir / name).touch(0o755)
    for name in extensions:
        (share / f"{name}.control").touch()


def pg_prove(root: Path) -> None:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/pg_prove").touch(0o755)


def mariadb(root: Path) -> None:
    (root / "usr/sbin").mkdir(parents=True)
    (root / "usr/sbin/mariadbd").touch(0o755)
    (root / "usr/bin/mariadb-install-db").touch(0o755)


@pytest.fixture
def kafka_tools(bare: Path) -> Path:
    """Put Java and Maven into the bare folder."""
    java(bare, "17.0.1")
    (bare / "mvn").touch(0o755)
    return bare


def java(folder: Path, version: str) -> None:
    (folder / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2021-10-19' >&2\n")
    (folder / "java").chmod(0o755)


def test_everything_missing_is_named_at_once_with_one_command(bare: Path) -> None:
    done = run("test", str(bare))
    assert done.returncode == 3
    assert done.stdout == ""
    commands = [line for line in done.stderr.splitlines() if "apt-get install" in line]
    assert len(commands) == 1
    for needed in (
        "python3 python3-venv",
        "postgresql-15 postgresql-15-pgtap postgresql-15-plpgsql-check",
        "libtap-parser-sourcehandler-pgtap-perl",
        "default-jre-headless",
        "maven",
        "mariadb-server",
    ):
        assert needed in commands[0]
    for named in ("Python 3.11 or newer", "PostgreSQL 15 or newer", "pg_prove", "Java 17 or newer", "Maven", "MariaDB"):
        assert named in done.stderr


def test_the_releases_own_version_of_postgresql_is_named(bare: Path) -> None:
    fake_python(bare, "python3", (3, 12))
    cache = bare / "apt-cache"
    cache.write_text("#!/bin/sh\necho postgresql\necho '  Depends: postgresql-17'\n")
    cache.chmod(0o755)
    done = run("test", str(bare))
    assert "postgresql-17 postgresql-17-pgtap postgresql-17-plpgsql-check" in done.stderr
    assert "Python" not in done.stderr


def test_setup_needs_only_python(bare: Path) -> None:
    fake_python(bare, "python3", (3, 11))
    done = run("setup", str(bare))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_old_python3_is_passed_over_for_a_newer_one(bare: Path) -> None:
    fake_python(bare, "python3", (3, 10))
    assert run("python", str(bare)).returncode == 3
    assert "python3 is Python 3.10" in run("setup", str(bare)).stderr
    fake_python(bare, "python3.12", (3, 12))
    done = run("python", str(bare))
    assert (done.returncode, done.stdout.strip()) == (0, str(bare / "python3.12"))
    assert run("setup", str(bare)).returncode == 0


def test_a_missing_venv_module_is_reported(bare: Path) -> None:
    fake_python(bare, "python3", (3, 11), modules=False)
    done = run("setup", str(bare))
    assert done.returncode == 3
    assert "ensurepip" in done.stderr
    assert "python3.11-venv" in done.stderr


@pytest.mark.usefixtures("kafka_tools")
def test_any_postgresql_with_both_extensions_will_do(bare: Path, tmp_path: Path) -> None:
    fake_python(bare, "python3", (3, 11))
    root = tmp_path / "root"
    pg_prove(root)
    mariadb(root)
    postgres(root, "14", "pgtap", "plpgsql_check")
    postgres(root, "16", "pgtap")
    done = run("test", str(bare), root)
    assert done.returncode == 3
    assert "PostgreSQL 15 or newer" in done.stderr
    assert "pg_prove" not in done.stderr
    postgres(root, "17", "pgtap", "plpgsql_check")
    done = run("test", str(bare), root)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("kafka_tools")
def test_a_given_server_replaces_the_local_one(bare: Path, tmp_path: Path) -> None:
    fake_python(bare, "python3", (3, 11))
    root = tmp_path / "root"
    pg_prove(root)
    mariadb(root)
    assert "psql" in run("test", str(bare), root, MSGX_TEST_PG_DSN="host=h").stderr
    (bare / "psql").touch(0o755)
    assert run("test", str(bare), root, MSGX_TEST_PG_DSN="host=h").returncode == 0


def test_kafka_needs_java_17_and_maven(bare: Path, tmp_path: Path) -> None:
    fake_python(bare, "python3", (3, 11))
    root = tmp_path / "root"
    pg_prove(root)
    mariadb(root)
    postgres(root, "17", "pgtap", "plpgsql_check")
    java(bare, "11.0.2")
    done = run("test", str(bare), root)
    assert done.returncode == 3
    assert "Java 17" in done.stderr
    assert "default-jre-headless maven" in done.stderr
    java(bare, "21")
    assert "Java" not in run("test", str(bare), root).stderr
    (bare / "mvn").touch(0o755)
    assert run("test", str(bare), root).returncode == 0


@pytest.mark.usefixtures("kafka_tools")
def test_mariadb_needs_both_of_its_programs(bare: Path, tmp_path: Path) -> None:
    fake_python(bare, "python3", (3, 11))
    root = tmp_path / "root"
    pg_prove(root)
    postgres(root, "17", "pgtap", "plpgsql_check")
    assert "mariadb-server" in run("test", str(bare), root).stderr
    mariadb(root)
    assert run("test", str(bare), root).returncode == 0
    (root / "usr/sbin/mariadbd").unlink()
    assert "mariadb-server" in run("test", str(bare), root).stderr


@pytest.mark.parametrize("arguments", ["", "all"])
def test_usage(arguments: str) -> None:
    done = run(arguments, os.environ["PATH"])
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")
