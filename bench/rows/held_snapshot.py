"""Lookups while another session holds a snapshot open, so that nothing a message leaves behind can be cleaned away."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import psycopg

from bench.ground import Airport, Ground, query
from bench.model import Bar, Figure, Sample
from bench.registry import row

FLIGHTS = 1500
CHUNK = 2000
PENDING = 200
LIMIT = 1000
SOURCE = "replay"
TOKEN = uuid.UUID(int=1)
LOOKUPS = ("head", "outbox_notices", "outbox_states", "backfill")


@row("held_snapshot")
def held_snapshot(ground: Ground) -> list[Figure]:
    """Lookups after 100 000 messages under a held snapshot, then with it gone and the tables rewritten.

    Relay and backfill are played by the product's claims and confirmations after every 2000 messages; no broker and no
    mailbox take part.
    """
    messages = ground.pick(100_000, 10_000)
    with ground.airport("held_snapshot", FLIGHTS) as airport:
        airport.conn.execute("set synchronous_commit = off")
        with psycopg.connect(airport.conn.info.dsn) as holder:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select 1 from pg_catalog.pg_class limit 1")
            ground.say(f"{messages} messages under a held snapshot")
            for _ in range(0, messages, CHUNK):
                _process(airport, CHUNK)
            # A little is always pending: the lookups have something to find.
            airport.enqueue_events(PENDING, FLIGHTS)
            airport.drain()
            airport.enqueue_events(PENDING, FLIGHTS)
            airport.vacuum()
            held = _measure(ground, airport)
            holder.rollback()
        airport.vacuum(["proc_state", "msg_event", "pipeline_lock", "message_raw"], full=True)
        quiet = _measure(ground, airport)
    return [
        Figure(
            f"held_{name}",
            held[name],
            "us",
            quiet[name],
            "the same rows, snapshot gone, tables rewritten by vacuum full",
            Bar("<=", 2),
            f"after {messages} messages",
        )
        for name in LOOKUPS
    ]


def _process(airport: Airport, count: int) -> None:
    airport.enqueue_events(count, FLIGHTS)
    airport.drain()
    airport.conn.execute(query("from_a_mailbox"))
    store = airport.store
    for target in ("KAFKA:msg", "KAFKA:schd"):
        while events := store.claim_events(target, TOKEN, limit=LIMIT, lease_seconds=3600):
            store.confirm_events(target, TOKEN, events)
    while marks := store.claim_backfill(SOURCE, TOKEN, limit=LIMIT, lease_seconds=3600):
        store.confirm_backfill(TOKEN, marks)


def _measure(ground: Ground, airport: Airport) -> dict[str, Sample]:
    """Microseconds of each lookup: the mean of 20 calls, repeated."""
    store = airport.store
    airport.conn.execute(query("from_a_mailbox"))
    looks: dict[str, Callable[[], object]] = {
        "head": store.next_message,
        "outbox_notices": lambda: store.claim_events("KAFKA:msg", TOKEN, limit=100, lease_seconds=3600),
        "outbox_states": lambda: store.claim_events("KAFKA:schd", TOKEN, limit=100, lease_seconds=3600),
        "backfill": lambda: store.claim_backfill(SOURCE, TOKEN, limit=100, lease_seconds=3600),
    }
    found: dict[str, list[float]] = {name: [] for name in LOOKUPS}
    for run in range(ground.runs + 1):
        for name, look in looks.items():
            seconds = airport.timed(lambda look=look: [look() for _ in range(20)])  # type: ignore[misc]
            # The first round warms up.
            if run:
                found[name].append(seconds / 20 * 1e6)
    return {name: Sample(tuple(values)) for name, values in found.items()}
