"""Where the SQL files are: inside the installed package, or at the root of an editable checkout."""

from __future__ import annotations

from pathlib import Path

from msgx_driver.errors import ExitCode, MsgxError

__all__ = ["migrations_dir", "sql_dir"]

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def sql_dir() -> Path:
    """Return the folder that holds `schema/`, `procedures/`, `views/` and `install.sql`."""
    return _find("sql")


def migrations_dir() -> Path:
    """Return the folder of the numbered migrations `V0001__….sql`."""
    return _find("migrations")


def _find(name: str) -> Path:
    packaged = _PACKAGE / f"_{name}"
    if packaged.is_dir():
        return packaged
    # The pyproject.toml tells a checkout from some unrelated folder called sql beside site-packages.
    checkout = _CHECKOUT / name
    if (_CHECKOUT / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise MsgxError(
        f"the {name}/ folder is neither at {packaged} nor at {checkout}",
        exit_code=ExitCode.CONFIG,
        hint="install the package again: pip install --force-reinstall msgx-driver",
    )
