"""A newer msgx-driver beside the one under test: its files, one more migration and one changed routine."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import msgx_driver
from msgx_driver.resources import migrations_dir, sql_dir

ROUTINE = "procedures/pipeline/acknowledge_state_loss.sql"
_COLUMN = """\
alter table operator_audit add column ticket varchar(40);
comment on column operator_audit.ticket is 'number of the incident, as found in the reason';
"""
_LAUNCHER = """\
#!{python}
import sys
sys.path.insert(0, {library!r})
from msgx_driver.cli import main
main()
"""


@dataclass(frozen=True)
class NextVersion:
    """The files of the newer version; `migration` is its new one, `programs` a folder for PATH."""

    programs: Path
    sql: Path
    migrations: Path
    migration: str

    @property
    def program(self) -> Path:
        """The newer `msgx-driver`."""
        return self.programs / "msgx-driver"


def build_next_version(folder: Path) -> NextVersion:
    """Lay out in `folder` what `pip install` of the newer package would bring."""
    package = folder / "lib" / "msgx_driver"
    ignored = shutil.ignore_patterns("__pycache__", "_sql", "_migrations")
    shutil.copytree(Path(msgx_driver.__file__).parent, package, ignore=ignored)
    shutil.copytree(sql_dir(), package / "_sql")
    shutil.copytree(migrations_dir(), package / "_migrations")
    newest = max(int(path.name[1:5]) for path in (package / "_migrations").glob("V*.sql"))
    migration = f"V{newest + 1:04}__audit_ticket.sql"
    version = NextVersion(folder / "bin", package / "_sql", package / "_migrations", migration)
    (version.migrations / migration).write_text(_COLUMN, "utf-8")
    replace_in(version.sql / ROUTINE, "reason, detail)", "reason, detail, ticket)")
    replace_in(version.sql / ROUTINE, "1000), v_detail)", "1000), v_detail, substring(p_reason from '[0-9]{4,40}'))")
    version.programs.mkdir()
    version.program.write_text(_LAUNCHER.format(python=sys.executable, library=str(package.parent)), "utf-8")
    version.program.chmod(0o755)
    return version


def replace_in(file: Path, old: str, new: str) -> None:
    """Replace a text that stands in the file exactly once."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1, (file.name, old)
    file.write_text(text.replace(old, new), "utf-8")
