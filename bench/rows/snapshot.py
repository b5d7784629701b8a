"""Day plans: the write of a large one beside the server's own rewrite, and a usual one from its bytes."""

from __future__ import annotations

import json

from psycopg import sql

from bench import load
from bench.ground import FLIGHT_TABLES, Airport, Ground
from bench.model import Bar, Figure, Sample
from bench.registry import row


@row("snapshot_10000")
def snapshot_10000(ground: Ground) -> list[Figure]:
    """Command to commit of a plan whose flights are all there, every detail row changed."""
    flights = ground.pick(10_000, 2_000)
    with (
        ground.airport("snapshot", flights) as airport,
        ground.airport("snapshot_reference", flights) as other,
    ):
        for table in FLIGHT_TABLES:
            copy = sql.Identifier(f"copy_of_{table}")
            other.conn.execute(sql.SQL("create table {} as table {}").format(copy, sql.Identifier(table)))
        other.conn.execute("analyze")
        encoding: list[float] = []

        def product(run: int) -> float:
            command = airport.decode(load.plan(flights, airport.next_id(), version=run))
            (message_id,) = airport.enqueue([load.PLACEHOLDER])
            airport.vacuum()
            airport.conn.execute("checkpoint")
            encoding.append(airport.timed(lambda: json.dumps(command)))
            return airport.timed(lambda: airport.store.process_message(message_id, command))

        def reference(run: int) -> float:
            other.vacuum()
            other.conn.execute("checkpoint")
            return other.timed(lambda: _rewrite(other))

        product(0)
        reference(0)
        encoding.clear()
        seconds, floor = ground.interleave(product, reference)
    share = Sample(tuple(encoding)).median
    return [
        Figure(
            "snapshot_10000",
            seconds,
            "s",
            floor,
            "delete + insert … select of the same rows of all ten tables, one transaction",
            Bar("<=", 3, aim=2.5),
            f"{flights} flights x {load.DETAIL_ROWS}; the driver's JSON text takes about {share:.2f} s of it",
        )
    ]


@row("snapshot_1500")
def snapshot_1500(ground: Ground) -> list[Figure]:
    """XML bytes to commit of a usual plan, with its parts."""
    flights = 1500
    decode: list[float] = []
    apply: list[float] = []
    with ground.airport("snapshot_1500", flights) as airport:

        def product(run: int) -> float:
            payload = load.plan(flights, airport.next_id(), version=run)
            (message_id,) = airport.enqueue([payload])
            airport.vacuum()
            started = airport.clock.monotonic()
            command = airport.decode(payload)
            decoded = airport.clock.monotonic()
            outcome = airport.store.process_message(message_id, command)
            ended = airport.clock.monotonic()
            assert outcome["status"] == "SUCCEEDED", outcome
            decode.append(decoded - started)
            apply.append(ended - decoded)
            return ended - started

        product(0)
        decode.clear()
        apply.clear()
        (total,) = ground.interleave(product)
    parts = {"decode": Sample(tuple(decode)), "sql": Sample(tuple(apply))}
    return [
        Figure("snapshot_1500", total, "s", note=f"{flights} flights x {load.DETAIL_ROWS}, XML bytes to commit"),
        *(
            Figure(f"snapshot_1500_{name}", part, "s", note=f"{part.median / total.median:.0%} of it")
            for name, part in parts.items()
        ),
    ]


def _rewrite(airport: Airport) -> None:
    with airport.conn.transaction():
        for table in FLIGHT_TABLES:
            name = sql.Identifier(table)
            airport.conn.execute(sql.SQL("delete from {}").format(name))
            copy = sql.Identifier(f"copy_of_{table}")
            airport.conn.execute(sql.SQL("insert into {} select * from {}").format(name, copy))
