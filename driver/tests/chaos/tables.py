"""What a schema holds, read straight from its tables, so that two runs can be compared."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import psycopg
from psycopg import sql

Contents = dict[str, list[dict[str, Any]]]

# Who writes now, and from where the head is looked for: different in every run, and no state of a flight.
BOOKKEEPING = {"pipeline_lock": {"writer_pid", "queue_floor"}}


def contents(dsn: str, schema: str) -> Contents:
    """All rows of all tables of the schema without instants and BOOKKEEPING, in a fixed order."""
    found: Contents = {}
    with psycopg.connect(dsn) as conn:
        columns = conn.execute(
            "select c.relname::text, coalesce(array_agg(a.attname::text) filter (where a.atttypid = 'timestamptz'"
            "::regtype), '{}') from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0"
            " where c.relnamespace = %s::regnamespace and c.relkind = 'r' group by 1",
            (schema,),
        ).fetchall()
        for table, instants in columns:
            query = sql.SQL("select to_jsonb(t) - %s::text[] from {} t").format(sql.Identifier(schema, table))
            aside = [*instants, *BOOKKEEPING.get(table, ())]
            found[table] = sorted((row for (row,) in conn.execute(query, (aside,))), key=as_text)
    assert "flight_schd" in found
    return found


def as_text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def differences(found: Contents, expected: Contents) -> list[str]:
    """One line for each row that only one side has, at most five of a table and side."""
    lines = [f"tables: {sorted(found)} instead of {sorted(expected)}"] if found.keys() != expected.keys() else []
    for table in sorted(found.keys() & expected.keys()):
        mine, theirs = (Counter(map(as_text, side[table])) for side in (found, expected))
        for what, rows in (("more than expected", mine - theirs), ("missing", theirs - mine)):
            lines += [f"{table}, {what}: {row}" for row in list(rows.elements())[:5]]
    return lines


def surplus(more: Contents, fewer: Contents) -> int:
    """How many finished messages, events and flights one side has more often than the other, whatever their ids."""
    keys = {
        "proc_state": ("message_id",),
        "msg_event": ("message_id", "target", "kind", "flid"),
        "flight_schd": ("flid",),
    }

    def counted(side: Contents, table: str) -> Counter[tuple[Any, ...]]:
        rows = (row for row in side[table] if table != "proc_state" or row["status"] not in ("PENDING", "FAILED"))
        return Counter(tuple(row[key] for key in keys[table]) for row in rows)

    return sum((counted(more, table) - counted(fewer, table)).total() for table in keys)
