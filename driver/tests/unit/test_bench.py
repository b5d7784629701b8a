"""The parts of the benchmark that need no server: reading other programs' output, judging, writing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

import bench.rows  # noqa: F401
from bench import load, registry
from bench.__main__ import cli
from bench.ground import find_programs, query
from bench.model import Bar, Figure, Sample, parse_fdatasync, parse_pgbench_tps
from bench.report import append_history, history_line, write_results
from msgx_driver.errors import ExitCode, MsgxError
from msgx_driver.wire.decode import decode_message
from msgx_driver.wire.fields import FieldCatalogue, FieldSpec

PGBENCH = """pgbench (15.8 (Debian 15.8-0+deb12u1))
transaction type: <builtin: simple update>
scaling factor: 20
query mode: prepared
number of clients: 1
number of transactions actually processed: 27541
number of failed transactions: 0 (0.000%)
latency average = 0.363 ms
initial connection time = 2.222 ms
tps = 2754.732107 (without initial connection time)
"""
FSYNC = """1 second per test
O_DIRECT supported on this platform for open_datasync and open_sync.

Compare file sync methods using one 8kB write:
(in wal_sync_method preference order, except fdatasync is Linux's default)
        open_datasync                     11111.111 ops/sec      90 usecs/op
        fdatasync                         15873.016 ops/sec      63 usecs/op
        fsync                             """


def figure(value: tuple[float, ...], reference: tuple[float, ...] | None = None, bar: Bar | None = None) -> Figure:
    against = None if reference is None else Sample(reference)
    return Figure("f", Sample(value), "s", against, None if reference is None else "the other", bar)


class TestForeignOutput:
    def test_pgbench_tps(self) -> None:
        assert parse_pgbench_tps(PGBENCH) == pytest.approx(2754.732107)

    @pytest.mark.parametrize("output", ["", PGBENCH.replace("tps = ", "tps ~ "), PGBENCH.replace(": 0 (", ": 3 (")])
    def test_no_figure_is_never_taken_for_one(self, output: str) -> None:
        with pytest.raises(ValueError, match="pgbench"):
            parse_pgbench_tps(output)

    def test_fdatasync(self) -> None:
        assert parse_fdatasync(FSYNC) == (15873.016, 63.0)

    def test_fdatasync_is_not_there_yet(self) -> None:
        assert parse_fdatasync(FSYNC.partition("        fdatasync")[0]) is None
        assert parse_fdatasync("        fdatasync                         n/a*\n") is None


class TestJudgement:
    def test_median_and_spread(self) -> None:
        sample = Sample((3.0, 1.0, 10.0))
        assert sample.median == 3.0
        assert sample.spread == (1.0, 10.0)
        assert Sample((1.0, 2.0)).median == 1.5
        with pytest.raises(ValueError, match="at least one"):
            Sample(())

    @pytest.mark.parametrize(
        ("bar", "kept", "missed"),
        [(Bar(">=", 0.2), 0.2, 0.1999), (Bar("<=", 3), 3.0, 3.001), (Bar("<", 300), 299.9, 300.0)],
    )
    def test_the_edge_of_a_bar(self, bar: Bar, kept: float, missed: float) -> None:
        assert bar.met_by(kept)
        assert not bar.met_by(missed)

    def test_ratio_of_medians(self) -> None:
        assert figure((4.0, 6.0, 5.0), (1.0, 3.0, 2.0)).ratio == 2.5

    def test_the_ratio_is_judged_and_without_one_the_value(self) -> None:
        assert figure((5.0,), (2.0,), Bar("<=", 3)).passed is True
        assert figure((7.0,), (2.0,), Bar("<=", 3)).passed is False
        assert figure((250.0,), None, Bar("<", 300)).passed is True
        assert figure((5.0,), (2.0,)).passed is None


class TestResults:
    def test_shape(self, tmp_path: Path) -> None:
        judged = figure((0.51234, 0.4), (0.1,), Bar("<=", 3, aim=2.5))
        write_results(tmp_path / "results.json", [judged, figure((1.0,))])
        first, second = json.loads((tmp_path / "results.json").read_text("utf-8"))
        assert list(first)[:7] == ["name", "value", "unit", "reference", "ratio", "bar", "pass"]
        assert (first["value"], first["reference"], first["ratio"]) == (0.4562, 0.1, 4.562)
        assert (first["bar"], first["aim"], first["pass"]) == ("<= 3", 2.5, False)
        assert (first["min"], first["max"], first["runs"]) == (0.4, 0.5123, [0.5123, 0.4])
        assert (first["reference_name"], first["reference_runs"]) == ("the other", [0.1])
        assert [second[key] for key in ("reference", "ratio", "bar", "pass")] == [None] * 4

    def test_history_grows_by_whole_runs(self, tmp_path: Path) -> None:
        path = tmp_path / "history.jsonl"
        for quick in (True, False):
            append_history(
                path, history_line([figure((1.0,))], {"cpus": 2}, datetime(2026, 9, 9, tzinfo=UTC), quick=quick)
            )
        runs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert [run["quick"] for run in runs] == [True, False]
        assert runs[0]["at"] == "2026-09-09T00:00:00+00:00"
        assert runs[0]["machine"] == {"cpus": 2}
        assert [line["name"] for line in runs[0]["rows"]] == ["f"]


def test_a_row_has_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ROWS", {})
    registry.row("new")(lambda ground: [])
    with pytest.raises(ValueError, match="two rows are called new"):
        registry.row("new")(lambda ground: [])


def test_an_unknown_row_is_a_wrong_call() -> None:
    done = CliRunner().invoke(cli, ["--row", "nothing"])
    assert done.exit_code == ExitCode.USAGE
    assert "snapshot_10000" in done.output


def test_statements_have_names() -> None:
    assert query("detail_rows").startswith(b"select")


def test_programs_are_the_newest_complete_ones(tmp_path: Path) -> None:
    with pytest.raises(MsgxError, match="pgbench is missing") as refused:
        find_programs(tmp_path)
    assert refused.value.exit_code == ExitCode.CONFIG
    for version, programs in (
        ("14", ("postgres", "initdb", "pgbench", "pg_test_fsync")),
        ("15", ("postgres", "initdb", "pgbench", "pg_test_fsync")),
        ("17", ("postgres", "initdb")),
    ):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        for program in programs:
            (folder / program).touch()
    assert find_programs(tmp_path) == tmp_path / "15" / "bin"


CATALOGUE: FieldCatalogue = {
    **{
        tag: FieldSpec(tag, "scalar", None, None, frozenset())
        for tag in ("ALCD", "FLNO", "MVIN", "SODT", "FLTY", "FLIN", "ACFT", "RENO", "TRML", "ESTT", "STND")
    },
    **{
        tag: FieldSpec(tag, "collection", seq, None, frozenset(attrs.split()))
        for tag, seq, attrs in (
            ("GTDT", "GTNO", "GTNO GATE GTYP PGOT PGCT"),
            ("CKDT", "CKNO", "CKNO CHKC CCLS PCOT PCCT"),
            ("CLDT", "CLNO", "CLNO BELT BCLS PCOT PCCT"),
            ("PSDT", "PSNO", "PSNO PSST STST STET ABDG"),
            ("CHDT", "CHNO", "CHNO CHUT CCLS PCBT PCET"),
            ("DELY", None, "CODE STRT DURA TEXT"),
            ("ABTM", "ASNO", "ASNO ABDG ABOP AOTM"),
            ("CHOT", "CSNO", "CSNO CHID CHTM CHST"),
            ("ROUT", "RTNO", "RTNO APCD SCAT SCDT"),
            ("ERUT", "RTNO", "RTNO APCD SCAT"),
        )
    },
}


class TestLoad:
    def flights(self, payload: bytes) -> list[dict[str, object]]:
        command = decode_message(payload, "bytes", CATALOGUE, max_bytes=1 << 30)
        assert "error" not in command
        found = command["flights"]
        assert isinstance(found, list)
        return found

    def test_a_plan_has_its_detail_rows_and_nothing_unknown(self) -> None:
        flights = self.flights(load.plan(3, 1, version=0))
        assert [flight["FLID"] for flight in flights] == [load.flid(n) for n in range(3)]
        for flight in flights:
            assert "unknown" not in flight
            replaced = flight["replace"]
            assert isinstance(replaced, dict)
            assert set(replaced) == {tag for tag, spec in CATALOGUE.items() if spec.kind == "collection"}
            assert sum(len(items) for items in replaced.values()) == load.DETAIL_ROWS

    def test_another_version_changes_every_row(self) -> None:
        for before, after in zip(*(self.flights(load.plan(2, 1, version=v)) for v in (0, 1)), strict=True):
            old, new = before["replace"], after["replace"]
            assert isinstance(old, dict)
            assert isinstance(new, dict)
            for tag in old:
                assert all(a != b for a, b in zip(old[tag], new[tag], strict=True)), tag

    def test_the_mix_is_even_and_the_same_every_time(self) -> None:
        first = list(load.events(30, 10, 100, seed=7))
        assert first == list(load.events(30, 10, 100, seed=7))
        for kind in load.MIX:
            assert sum(f"<STYP>{kind}</STYP>".encode() in message for message in first) == 10
        assert all(len(self.flights(message)) == 1 for message in first)


def test_every_row_is_described() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "performance.md").read_text("utf-8")
    assert [name for name in registry.ROWS if f"| `{name}` |" not in text] == []
