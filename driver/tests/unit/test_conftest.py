from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parent.parent / "conftest.py"


def run(folder: Path, body: str) -> tuple[int, list[str]]:
    """Run one test file under our conftest.py in a pytest of its own."""
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(f"import pytest\n{body}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    "body",
    [
        "@pytest.mark.skip\ndef test_a(): pass\ndef test_b(): pass\n",
        "def test_a(): pytest.skip('x')\ndef test_b(): pass\n",
        "@pytest.mark.xfail\ndef test_a(): assert False\ndef test_b(): pass\n",
        "@pytest.mark.xfail\ndef test_a(): pass\ndef test_b(): pass\n",
        "@pytest.fixture\ndef f(): pytest.skip('x')\ndef test_a(f): pass\ndef test_b(): pass\n",
        "pytest.skip('x', allow_module_level=True)\n",
        "pytest.importorskip('no_such_module')\n",
    ],
)
def test_what_did_not_run_fails_the_run(tmp_path: Path, body: str) -> None:
    code, lines = run(tmp_path, body)
    assert code != 0
    assert any("did not run in full" in line for line in lines)


def test_the_closing_lines_tell_the_counts_and_end_with_pytests_own(tmp_path: Path) -> None:
    code, lines = run(
        tmp_path,
        "def test_a(count): count('pgtap', 30); count('pgtap', 2)\n"
        "def test_b(count): count('scenario', 1)\n"
        "@pytest.mark.parametrize('n', range(3))\ndef test_c(n): pass\n",
    )
    assert code == 0
    assert lines[-2] == "pgTAP assertions: 32  scenarios: 1  other tests: 3"
    assert lines[-1].startswith("5 passed")


def test_a_failure_stays_a_failure(tmp_path: Path) -> None:
    code, lines = run(tmp_path, "def test_a(): assert False\n")
    assert code == 1
    assert lines[-1].startswith("1 failed")
