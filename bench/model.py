"""What a row measures and how it is judged; nothing here touches a database."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["Bar", "Figure", "Sample", "parse_fdatasync", "parse_pgbench_tps"]

_TPS: Final = re.compile(r"^tps = ([0-9.]+) \(without initial connection time\)$", re.MULTILINE)
_FDATASYNC: Final = re.compile(r"^\s+fdatasync\s+([0-9.]+) ops/sec\s+([0-9.]+) usecs/op", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """The values of repeated runs, in the order they were measured."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a sample needs at least one value")

    @property
    def median(self) -> float:
        """The middle value; it stands for the sample."""
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return min(self.values), max(self.values)


@dataclass(frozen=True)
class Bar:
    """A limit of the ratio to the reference, or of the value itself where there is no reference."""

    relation: Literal[">=", "<=", "<"]
    limit: float
    aim: float | None = None

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:g}"

    def met_by(self, number: float) -> bool:
        """Tell whether the number keeps the bar."""
        if self.relation == ">=":
            return number >= self.limit
        return number < self.limit if self.relation == "<" else number <= self.limit


@dataclass(frozen=True)
class Figure:
    """One line of the table: a sample in `unit`, beside its reference in the same unit where it has one."""

    name: str
    value: Sample
    unit: str
    reference: Sample | None = None
    reference_name: str | None = None
    bar: Bar | None = None
    note: str | None = None

    @property
    def ratio(self) -> float | None:
        """Median of the value divided by the median of the reference."""
        return None if self.reference is None else self.value.median / self.reference.median

    @property
    def passed(self) -> bool | None:
        """Whether the bar is kept; None for a figure that is only printed."""
        if self.bar is None:
            return None
        return self.bar.met_by(self.value.median if self.ratio is None else self.ratio)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the first seven keys are the agreed ones."""
        low, high = self.value.spread
        line: dict[str, Any] = {
            "name": self.name,
            "value": _rounded(self.value.median),
            "unit": self.unit,
            "reference": None if self.reference is None else _rounded(self.reference.median),
            "ratio": None if self.ratio is None else _rounded(self.ratio),
            "bar": None if self.bar is None else str(self.bar),
            "pass": self.passed,
            "min": _rounded(low),
            "max": _rounded(high),
            "runs": [_rounded(v) for v in self.value.values],
        }
        if self.reference is not None:
            line["reference_name"] = self.reference_name
            line["reference_runs"] = [_rounded(v) for v in self.reference.values]
        if self.bar is not None and self.bar.aim is not None:
            line["aim"] = self.bar.aim
        if self.note is not None:
            line["note"] = self.note
        return line


def _rounded(number: float) -> float:
    """Four significant digits: more would claim what no run repeats."""
    return float(f"{number:.4g}")


def parse_pgbench_tps(output: str) -> float:
    """Transactions per second in the output of pgbench; ValueError when it has none or some failed."""
    found = _TPS.search(output)
    if found is None:
        raise ValueError("pgbench printed no tps")
    failed = re.search(r"^number of failed transactions: (\d+)", output, re.MULTILINE)
    if failed is not None and failed[1] != "0":
        raise ValueError(f"{failed[1]} transactions of pgbench failed")
    return float(found[1])


def parse_fdatasync(output: str) -> tuple[float, float] | None:
    """Operations per second and microseconds of the first fdatasync in the output of pg_test_fsync, None before it."""
    found = _FDATASYNC.search(output)
    return None if found is None else (float(found[1]), float(found[2]))
