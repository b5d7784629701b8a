"""msgx driver: the thin Python side of msgx (bytes in, one procedure call per message)."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("msgx-driver")
except PackageNotFoundError:  # run from a checkout that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
