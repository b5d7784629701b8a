"""Planted mistakes: each one changes a rule in one routine, and the tests named beside it must turn red.

The mutated routine replaces the original in a database of this module; afterwards the original is put back. A name is a
file of sql/tests, or a golden sample when it starts with `golden/`. A mutation whose old text is gone fails as well.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from msgx_driver.migrate import migrate_up
from msgx_driver.resources import sql_dir
from msgx_driver.store import Store
from tests.acceptance.test_golden import FOLDER, Product, check_sample
from tests.conftest import Count

VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
TIMEOUT = 120


@dataclass(frozen=True)
class Mutation:
    """`old` becomes `new` in sql/procedures/`file`.sql; each test in `red` must notice that `why` is no longer so."""

    file: str
    old: str
    new: str
    why: str
    red: tuple[str, ...]


MUTATIONS = [
    # Plans
    Mutation(
        "schedule/_apply_snapshot",
        "where g.fday = v_fday and f.fday = v_fday\n",
        "where g.fday = v_fday\n",
        "a flight that moved to another day is not deleted by its old plan (FS-3.3)",
        ("snapshot_golden", "golden/DNLD"),
    ),
    Mutation(
        "schedule/_apply_snapshot",
        "delete from schd_gen_flid g\n     where g.fday = v_fday and not",
        "delete from schd_gen_flid g\n     where false and not",
        "a new plan replaces the list of its day (FS-3.3)",
        ("snapshot_golden", "golden/DNLD"),
    ),
    Mutation(
        "schedule/_apply_snapshot",
        "|| v_gone, p_now);",
        "|| v_gone || (select coalesce(array_agg(row('KAFKA:msg', 'NOTICE', c.flid, c.state_version, _build_notice("
        "p_message_id, p_command -> 'meta', c.flid, '{}'))::outbox_entry), '{}') from unnest(v_changes) c), p_now);",
        "a plan gives no notice (contract 5)",
        ("event_order", "golden/DNLD"),
    ),
    Mutation(
        "schedule/_apply_snapshot",
        "if v_ratio <> 'off' and",
        "if false and",
        "a plan that deletes too much is refused (D32)",
        ("snapshot_limits",),
    ),
    Mutation(
        "schedule/_apply_snapshot",
        "v_protect := _get_setting('snapshot.reclaim') = 'protect';",
        "v_protect := false;",
        "with protect, a flight of a later day stays there (D3)",
        ("snapshot_reclaim",),
    ),
    Mutation(
        "schedule/_advance_schd_gen",
        "where g.fday = p_fday and g.version = p_expected",
        "where g.fday = p_fday",
        "the plan version advances by compare-and-swap (FS-3.3-10)",
        ("snapshot_cas",),
    ),
    Mutation(
        "schedule/_snapshot_day",
        "if p_command -> 'schedule' ? 'FDAY' then",
        "if false then",
        "the header day wins (D9)",
        ("snapshot_day", "golden/DNLD"),
    ),
    Mutation(
        "schedule/_check_recs",
        "if v_recs::integer <> v_count and",
        "if false and",
        "a partial package is refused (D7)",
        ("snapshot_recs", "golden/DNLD", "golden/ADFT"),
    ),
    Mutation(
        "schedule/_check_twice",
        "having count(*) > 1",
        "having count(*) > 2",
        "no flight twice in one package (D8)",
        ("snapshot_recs",),
    ),
    # Merging and writing
    Mutation(
        "state/_stage_changes",
        "where ff.kind <> 'collection' and e.j -> 'clear' ? ff.tag",
        "where false and e.j -> 'clear' ? ff.tag",
        "a clear empties an object (FS-5.2)",
        ("empty_values", "golden/FDIV"),
    ),
    Mutation(
        "state/_stage_changes",
        "where ff.kind = 'collection' and e.j -> 'clear' ? ff.tag",
        "where false and e.j -> 'clear' ? ff.tag",
        "a clear empties a collection (FS-5.2)",
        ("empty_values", "golden/GTDT"),
    ),
    Mutation(
        "state/_stage_changes",
        "coalesce(f.state_version, t.state_version, 0) + 1",
        "coalesce(f.state_version, 0) + 1",
        "a flight that comes back goes on after its deletion (D18)",
        ("snapshot_membership", "on_missing", "golden/FDEL"),
    ),
    Mutation(
        "state/_write_flights",
        "select c.flid, i.ordinal, i.seq, i.chkc",
        "select c.flid, row_number() over (partition by c.flid order by i.seq), i.seq, i.chkc",
        "items keep the order sent, not that of their sequence (FS-6.1)",
        ("golden/CKDT",),
    ),
    Mutation(
        "state/_write_flights",
        "update flight_delay d set record_version = c.state_version, created_at",
        "update flight_delay d set created_at",
        "sets that a message does not carry are rewritten too (FS-5.4-5)",
        ("write_details", "golden/GTDT"),
    ),
    Mutation(
        "state/_write_flights",
        "then c.vals -> 'FDIV' ->> 'DDIR'",
        "then coalesce(c.vals -> 'FDIV' ->> 'DDIR', f.fdiv_ddir)",
        "an object is replaced as a whole (contract 1)",
        ("golden/FDIV",),
    ),
    Mutation(
        "state/_write_flights",
        "fday            = coalesce(c.fday, f.fday)",
        "fday            = c.fday",
        "an event keeps the day of its flight (FS-6.3)",
        ("flop_merge", "golden/GTDT"),
    ),
    Mutation(
        "state/_write_flights",
        "c.sets ? 'ROUT' and d.route_kind = 'ROUT'",
        "c.sets ? 'ROUT'",
        "the planned and the extended route are two sets (D22)",
        ("write_details", "golden/ROUT"),
    ),
    Mutation(
        "state/_check_flights",
        "_get_setting('wire.unknown_field') = 'reject'",
        "_get_setting('wire.unknown_field') = 'never'",
        "an unknown field refuses the message (D10)",
        ("unknown_field",),
    ),
    Mutation(
        "state/_check_flights",
        "where cardinality(p_keys) > 0",
        "where cardinality(p_keys) > 9",
        "a record carries a key of its kind (D37)",
        ("flop_kinds", "golden/ESTT"),
    ),
    Mutation(
        "state/flight_projection",
        "'ESTT', nullif(f.estt, '')",
        "'ESTT', f.estt",
        "empty text is absent outside storage (D11)",
        ("flight_projection", "golden/ESTT"),
    ),
    Mutation(
        "state/flight_projection",
        "'REMC', nullif(f.remc, '')",
        "'REMC', f.remc",
        "an emptied remark is absent outside storage (D11)",
        ("golden/REMC",),
    ),
    # Deleting, shared flights
    Mutation(
        "state/_delete_flights",
        "select f.flid, f.state_version + 1, p_now",
        "select f.flid, f.state_version, p_now",
        "a deletion takes the next version (D18)",
        ("fdel", "golden/FDEL"),
    ),
    Mutation(
        "state/_delete_flights",
        "delete from flight_gate d where d.flid = any (p_flids);",
        "null;",
        "the details go with the flight (FS-3.3-9)",
        ("snapshot_membership", "golden/FDEL"),
    ),
    Mutation(
        "state/_shared_of",
        "f.maid = any (p_roots) and",
        "(f.maid = any (p_roots) or f.maid in (select x.flid from flight_schd x where x.maid = any (p_roots))) and",
        "a cascade has one level (D23)",
        ("codeshare_cascade",),
    ),
    Mutation(
        "state/_shared_of",
        "and f.flid <> all (p_listed)",
        "",
        "a shared flight that the package lists stays (D23)",
        ("codeshare_cascade",),
    ),
    Mutation(
        "dynamic/_edit_mafl",
        "where t.token <> all (p_remove)",
        "where not exists (select 1 from unnest(p_remove) r where position(r in t.token) > 0)",
        "a number leaves the list of the main by whole token (D23)",
        ("codeshare_list", "golden/FDEL"),
    ),
    # Events of one flight
    Mutation(
        "dynamic/_apply_flop",
        "where not (c.is_new and (c.state_version > 1 or p_kind.on_missing = 'IGNORE'))",
        "where not (c.is_new and p_kind.on_missing = 'IGNORE')",
        "an event never brings back a deleted flight (D13)",
        ("on_missing", "golden/FDEL"),
    ),
    Mutation(
        "dynamic/_apply_flop",
        "array_agg(e.entry order by c.ord, e.ord)",
        "array_agg(e.entry order by c.ord, e.ord desc)",
        "the notice comes before the state (D41)",
        ("event_order", "golden/GTDT"),
    ),
    Mutation(
        "dynamic/_apply_adft",
        "where c.is_new\n        or exists",
        "where true\n        or exists",
        "an ADFT that changes nothing takes no version and gives no event (D24)",
        ("adft", "golden/ADFT"),
    ),
    Mutation(
        "dynamic/_apply_adft",
        "where c.is_new and c.vals ->> 'MAID' <> ''",
        "where c.vals ->> 'MAID' <> ''",
        "only a new shared flight enters the list of its main (D23)",
        ("golden/ADFT",),
    ),
    # Identity, ignoring
    Mutation(
        "pipeline/_identity_of",
        "(p_meta ->> 'SEQN')::bigint",
        "(p_meta ->> 'SEQN')",
        "000123 and 123 are one sequence (contract 1)",
        ("identity",),
    ),
    Mutation(
        "pipeline/_claim_identity",
        "v_reason := 'duplicate';",
        "v_reason := null;",
        "the same message again is skipped (FS-4.1-5)",
        ("identity", "golden/GTDT"),
    ),
    Mutation(
        "pipeline/_claim_identity",
        "v_rule := _get_setting('identity.of_dead');",
        "v_rule := 'takeover';",
        "a copy of a dead message is skipped (D31)",
        ("identity_of_failed",),
    ),
    Mutation(
        "pipeline/process_message",
        "    if v_ignored is not null then\n",
        "    if v_ignored is not null and _claim_identity(p_message_id, _identity_of(v_meta), _content_hash(p_command),"
        " v_dttm, v_now) is null then\n",
        "ignoring comes before the identity (D36)",
        ("ignore",),
    ),
    Mutation(
        "pipeline/_match_ignore",
        "where r.type = upper(p_type)",
        "where r.type = p_type",
        "kinds are ignored in any case (D36)",
        ("ignore",),
    ),
    # Queue and writer
    Mutation(
        "pipeline/process_message",
        "perform _require_head(p_message_id);",
        "null;",
        "nobody overtakes the head (FS-4.1-1)",
        ("process_message",),
    ),
    Mutation(
        "pipeline/process_message",
        "perform _lock_writer();",
        "perform _lock_row();",
        "only the writer processes (OPS-1)",
        ("writer",),
    ),
    Mutation(
        "pipeline/next_message",
        "order by h.message_id limit 1",
        "order by h.message_id desc limit 1",
        "the head is the smallest id (FS-4.1-1)",
        ("next_message",),
    ),
    Mutation(
        "pipeline/enqueue_messages",
        "where s.raw_hash <> sha256(m.payload)",
        "where false",
        "an id is never reused with other bytes (US-01/2)",
        ("enqueue_messages",),
    ),
    Mutation(
        "pipeline/_lost_members",
        "where (p_flids is null or",
        "where false and (p_flids is null or",
        "lost state is noticed (D25)",
        ("state_lost",),
    ),
    # Failures and the end
    Mutation(
        "pipeline/_backoff",
        "power(2::numeric,",
        "power(1::numeric,",
        "the wait doubles with every attempt (D14)",
        ("record_failure",),
    ),
    Mutation(
        "pipeline/_book_failure",
        "v_attempts >= _get_setting(",
        "v_attempts > _get_setting(",
        "the last attempt is the last (D14)",
        ("record_failure",),
    ),
    Mutation(
        "pipeline/_book_failure",
        "case when p_treatment = 'wait' then 0 else 1 end",
        "1",
        "a failure of the database as a whole charges no attempt (D14)",
        ("record_failure",),
    ),
    Mutation(
        "pipeline/_finish_message",
        "backfill_status  = 'PENDING'",
        "backfill_status  = 'NONE'",
        "a terminal status carries the intent to mark the mailbox (US-09/1)",
        ("process_message", "golden/GTDT"),
    ),
]
IDS = [f"{m.file.partition('/')[2]}: {m.why}" for m in MUTATIONS]


def split(red: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Names of the pgTAP files and of the golden samples."""
    golden = [name.partition("/")[2] for name in red if name.startswith("golden/")]
    return [name for name in red if not name.startswith("golden/")], golden


class Laboratory:
    """One database for the pgTAP files, one for the golden samples: each needs to be the writer of its own."""

    def __init__(self, dsn: str, bindir: Path, tap: psycopg.Connection[Any], product: Product) -> None:
        program = shutil.which("pg_prove")
        assert program, "pg_prove is missing; run: sh scripts/prerequisites.sh test"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "HARNESS_"))}
        target = {VARIABLES[k]: str(v) for k, v in conninfo_to_dict(dsn).items() if k in VARIABLES}
        self.environment = clean | target | {"LC_ALL": "C.UTF-8", "PGOPTIONS": "-c client_min_messages=warning"}
        self.command = [program, "--verbose", "--psql-bin", str(bindir / "psql")]
        self.tap = tap
        self.product = product

    def prove(self, names: list[str]) -> tuple[bool, str]:
        """Run files of sql/tests; returns whether all are green, and the output."""
        files = [str(sql_dir() / "tests" / f"{name}.sql") for name in names]
        done = subprocess.run(
            [*self.command, *files],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=TIMEOUT,
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def planted(self, mutation: Mutation) -> Iterator[None]:
        """Replace the routine in both databases, and put the original back."""
        connections = (self.tap, self.product.store.conn)
        name = mutation.file.rpartition("/")[2]
        originals = [routine(conn, name) for conn in connections]
        try:
            for conn, original in zip(connections, originals, strict=True):
                assert original.count(mutation.old) == 1, f"old text is not in the installed {name} exactly once"
                conn.execute(original.replace(mutation.old, mutation.new).encode())
            yield
        finally:
            for conn, original in zip(connections, originals, strict=True):
                conn.execute(original.encode())
        assert [routine(conn, name) for conn in connections] == originals


def routine(conn: psycopg.Connection[Any], name: str) -> str:
    """Definition of a routine with everything that is set for it; its body is the text of its file."""
    query = "select pg_get_functiondef(oid) from pg_proc where proname = %s and pronamespace = 'msgx'::regnamespace"
    ((definition,),) = conn.execute(query.encode(), (name,)).fetchall()
    return str(definition)


@pytest.fixture(scope="module")
def laboratory(pg_server: Any, psql: Callable[..., str]) -> Iterator[Laboratory]:
    dsn, golden = pg_server.new_database(), pg_server.new_database()
    psql(dsn, "-f", str(sql_dir() / "install.sql"))
    logger = logging.getLogger("msgx_driver")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    with psycopg.connect(dsn, autocommit=True) as tap, psycopg.connect(golden, autocommit=True) as conn:
        tap.execute("create schema tap")
        tap.execute("create extension pgtap schema tap")
        for helper in sorted((sql_dir() / "tests" / "helpers").glob("*.sql")):
            psql(dsn, "-v", "ON_ERROR_STOP=1", "-f", str(helper))
        migrate_up(conn, "msgx")
        with Store.open(golden, "msgx") as store:
            yield Laboratory(dsn, pg_server.bindir, tap, Product(store))
    logger.setLevel(level)


def test_named_tests_are_green_without_a_mutation(laboratory: Laboratory) -> None:
    files, samples = split(tuple(dict.fromkeys(name for m in MUTATIONS for name in m.red)))
    green, output = laboratory.prove(files)
    assert green, output
    for sample in samples:
        check_sample(laboratory.product, FOLDER / f"{sample}.json")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=IDS)
def test_mutation_is_caught(mutation: Mutation, laboratory: Laboratory, count: Count) -> None:
    text = (sql_dir() / "procedures" / f"{mutation.file}.sql").read_text("utf-8")
    assert text.count(mutation.old) == 1, f"old text is not in {mutation.file}.sql exactly once"
    files, samples = split(mutation.red)
    assert files or samples
    survived = []
    with laboratory.planted(mutation):
        for name in files:
            green, output = laboratory.prove([name])
            if green:
                survived.append(name)
            # A routine that no longer runs proves nothing.
            assert not re.search(r"ERROR: .*(syntax error|does not exist|ambiguous)", output), output
        for sample in samples:
            try:
                check_sample(laboratory.product, FOLDER / f"{sample}.json")
            except AssertionError:
                continue
            survived.append(f"golden/{sample}")
    assert not survived, f"{mutation.file}: nobody in {', '.join(survived)} noticed; {mutation.why}"
    count("mutation", 1)


def test_there_are_enough() -> None:
    assert len(MUTATIONS) >= 20
    areas = {mutation.file.partition("/")[0] for mutation in MUTATIONS}
    assert areas == {"schedule", "state", "dynamic", "pipeline"}
    assert len({(mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS)
