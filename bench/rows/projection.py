"""Reading whole flights, beside the cheapest JSON the server can make of the same rows."""

from __future__ import annotations

from psycopg import sql

from bench.ground import FLIGHT_TABLES, Ground
from bench.model import Bar, Figure
from bench.registry import row


@row("projection_10000")
def projection_10000(ground: Ground) -> list[Figure]:
    """`flight_projection` of all flights; both sides write their text to /dev/null inside the server."""
    flights = ground.pick(10_000, 2_000)
    with ground.airport("projection", flights) as airport:

        def product(run: int) -> float:
            return airport.timed(
                lambda: airport.conn.execute("copy (select flight_projection(null)) to '/dev/null'"),
            )

        def reference(run: int) -> float:
            return airport.timed(lambda: [airport.conn.execute(statement) for statement in statements])

        statements = [
            sql.SQL("copy (select to_jsonb(t) from {} t) to '/dev/null'").format(sql.Identifier(table))
            for table in FLIGHT_TABLES
        ]
        product(0)
        reference(0)
        seconds, floor = ground.interleave(product, reference)
    return [
        Figure(
            "projection_10000",
            seconds,
            "s",
            floor,
            "select to_jsonb(t) over the ten tables",
            Bar("<=", 4, aim=2),
            f"{flights} flights",
        )
    ]
