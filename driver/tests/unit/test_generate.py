from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from msgx_driver.generate import MAX_FLIGHTS, MIN_FLIGHTS, Day, generate_day, write_day
from msgx_driver.wire.encodings import EncodingError, decode_text

# The 29 enabled kinds, from contract 1.
KINDS = [
    "GTDT",
    "CKDT",
    "CLDT",
    "PSDT",
    "CHDT",
    "DELY",
    "ABTM",
    "CHOT",
    "ROUT",
    "ERUT",
    "FDIV",
    "FRET",
    "FLAB",
    "SRVT",
    "VIPF",
    "MAFL",
    "CNCL",
    "FDEL",
    "ESTT",
    "ACTT",
    "RENO",
    "ACFT",
    "FLTY",
    "FLIN",
    "TRML",
    "STND",
    "TAOP",
    "HNAG",
    "REMC",
]
IGNORED = ["LDM-*", "REGN-*", "RSTA-*", "EROR-*", "FLOP-BOTM", "FLOP-LACL", "FLOP-FINT", "FLOP-APPT"]
SEEDS = range(12)


@cache
def day(flights: int = MIN_FLIGHTS, seed: int = 1) -> Day:
    return generate_day(flights, seed)


def outcomes(made: Day) -> list[dict[str, Any]]:
    return list(made.manifest["details"]["messages_by_id"].values())


def text_of(made: Day, number: int) -> str:
    """The XML of a message without its declaration."""
    message = made.messages[number - 1]
    text = message.text if message.text is not None else decode_text(message.payload, "bytes")
    return re.sub(r"^<\?xml[^>]*>", "", text).lstrip()


def numbers(made: Day, **wanted: str) -> list[int]:
    return [n for n, row in enumerate(outcomes(made), 1) if wanted.items() <= row.items()]


def identity(root: ElementTree.Element) -> tuple[str, ...]:
    sender, type_, styp, number = (root.findtext(f"META/{tag}") or "" for tag in ("SNDR", "TYPE", "STYP", "SEQN"))
    return sender, type_, styp, str(int(number))


def in_another_process(folder: Path, hash_seed: str) -> bytes:
    script = (
        "import sys, pathlib; from msgx_driver.generate import *;"
        "write_day(generate_day(60, 5), pathlib.Path(sys.argv[1]))"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "LC_ALL": "C", "TZ": "America/New_York"}
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environment, check=True, timeout=60)
    return (folder / "day.jsonl").read_bytes() + (folder / "manifest.json").read_bytes()


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    write_day(generate_day(60, 5), tmp_path / "here")
    here = (tmp_path / "here/day.jsonl").read_bytes() + (tmp_path / "here/manifest.json").read_bytes()
    assert in_another_process(tmp_path / "one", "1") == here
    assert in_another_process(tmp_path / "two", "20260909") == here
    assert generate_day(60, 6).messages != generate_day(60, 5).messages


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_day_holds_everything(seed: int) -> None:
    made = day(seed=seed)
    rows = outcomes(made)
    changed = {row["kind"] for row in rows if row["status"] == "SUCCEEDED" and row["events"]}
    assert changed >= {f"FLOP/{kind}" for kind in KINDS} | {"FDEL/FDEL", "SCHD/ADFT", "SCHD/DNLD"}
    reasons = {(row["status"], row["reason"]) for row in rows}
    assert reasons == {
        ("SUCCEEDED", None), ("SUCCEEDED", "equal"), ("SUCCEEDED", "missing"), ("SUCCEEDED", "deleted"),
        ("SKIPPED", "duplicate"), ("SKIPPED", "identity-reused"), ("SKIPPED", "duplicate-of-dead"),
        ("SKIPPED", "resp-unmatched"), ("DEAD", "MALFORMED"), ("DEAD", "UNSUPPORTED"),
        *(("SKIPPED", f"ignored:{rule}") for rule in IGNORED),
    }  # fmt: skip
    whole = "".join(m.text or m.payload.decode("latin-1") for m in made.messages)
    for sign in ('GTNO="0"', "<DELY/>", "<CNCL/>", "<FDIV/>", "<FRET/>", "<FLAB/>", "<!DOCTYPE", "<MAID>", "<TAID>"):
        assert sign in whole, sign


def test_plans() -> None:
    made = day(120)
    plans = [text_of(made, n) for n in numbers(made, kind="SCHD/DNLD", status="SUCCEEDED")]
    flids = [re.findall(r"<FL(?:TR|GT)><FLID>(\d+)", plan) for plan in plans]
    assert [int(re.findall(r"<RECS>(\d+)", plan)[0]) for plan in plans] == [len(listed) for listed in flids]
    yesterday, morning, first, second, tomorrow, late = (set(listed) for listed in flids)
    assert not yesterday
    assert len(morning) == 120
    for one, other in ((morning, first), (first, second)):
        assert one - other
        assert other - one
    moved = tomorrow & second
    assert len(moved - late) >= 2
    assert len(moved & late) == 1
    alive = made.manifest["details"]["flights_by_id"]
    assert all(alive[flid][0] == "2026-09-10" for flid in moved - late)
    assert all(alive[flid][0] == "2026-09-09" for flid in late)
    assert any(alive[flid][0] is None for flid in alive)
    assert "<FDAY>" in plans[1]
    assert "<FDAY>" not in plans[4]
    root = ElementTree.fromstring(plans[1])
    records = [(r.findtext("MVIN"), r.findtext("FLID"), r.findtext("MAID")) for r in root.findall("SCHD/*[FLID]")]
    assert [move for move, _, _ in records] == sorted((str(move) for move, _, _ in records), reverse=True)
    for (_, flid, main), (_, before, before_main) in zip(records[1:], records, strict=False):
        assert main in (None, before, before_main), flid


def test_order_identities_and_shape() -> None:
    made = day(120)
    assert [m.message_id for m in made.messages] == list(range(1, len(made.messages) + 1))
    times = []
    holders: dict[tuple[str, ...], int] = {}
    several = local = 0
    for n in numbers(made, status="SUCCEEDED"):
        text = text_of(made, n)
        root = ElementTree.fromstring(text)
        times.append(root.findtext("META/DTTM") or "")
        assert holders.setdefault(identity(root), n) == n
        several += len(root.findall("FLOP")) > 1
        local += len(re.findall(r"\b(?:0[89]|1[01])SEP26(?:[01]\d|2[0-3])[0-5]\d\b", text))
    assert times == sorted(times)
    assert several > 10
    assert local > 5000
    for n in [*numbers(made, reason="duplicate"), *numbers(made, reason="identity-reused")]:
        assert holders[identity(ElementTree.fromstring(text_of(made, n)))] < n


def test_encodings() -> None:
    made = day(300)
    seen: Counter[str] = Counter()
    for number, message in enumerate(made.messages, 1):
        if message.text is not None:
            continue
        named = re.search(rb'encoding="([^"]+)"', message.payload.replace(b"\0", b""))
        assert named
        try:
            text = decode_text(message.payload, "bytes")
        except EncodingError:
            assert outcomes(made)[number - 1]["reason"] == "MALFORMED"
            continue
        seen[named[1].decode()] += 1
        assert named[1] == b"UTF-8" or not text.isascii()
    assert seen.keys() == {"GBK", "GB2312", "GB18030", "UTF-16", "UTF-8"}


@pytest.mark.parametrize("seed", SEEDS)
def test_manifest_sums(seed: int) -> None:
    made = day(seed=seed)
    manifest, rows = made.manifest, outcomes(made)
    statuses = Counter(row["status"] for row in rows)
    details = manifest["details"]
    assert manifest["messages"] == len(made.messages) == len(rows) == statuses.total()
    assert {name: manifest[name] for name in ("succeeded", "skipped", "dead", "failed")} == {
        name: statuses[name.upper()] for name in ("succeeded", "skipped", "dead", "failed")
    }
    assert manifest["events"] == sum(row["events"] for row in rows)
    assert manifest["flights"] == len(details["flights_by_id"])
    assert manifest["deleted"] >= len(details["deleted_by_id"]) > 0
    assert not details["deleted_by_id"].keys() & details["flights_by_id"].keys()
    assert all(
        not row["events"] for row in rows if row["status"] != "SUCCEEDED" or row["reason"] in ("equal", "missing")
    )


def test_written_files(tmp_path: Path) -> None:
    made = day()
    write_day(made, tmp_path / "a/b")
    lines = [json.loads(line) for line in (tmp_path / "a/b/day.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [m.message_id for m in made.messages]
    assert {frozenset(line) for line in lines} == {frozenset({"id", "xml"}), frozenset({"id", "xml_base64"})}
    assert json.loads((tmp_path / "a/b/manifest.json").read_text("utf-8")) == made.manifest


def test_a_day_of_a_few_hundred_flights_has_thousands_of_events() -> None:
    made = day(300)
    events = sum(row["kind"].startswith("FLOP/") and row["events"] > 0 for row in outcomes(made))
    assert 13 * 300 < events < 20 * 300


@pytest.mark.parametrize("flights", [MIN_FLIGHTS - 1, MAX_FLIGHTS + 1])
def test_too_few_or_too_many_flights(flights: int) -> None:
    with pytest.raises(ValueError, match="flights must be 40 to 3000"):
        generate_day(flights, 1)
