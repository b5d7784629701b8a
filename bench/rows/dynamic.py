"""Small events through the product's own loop, beside pgbench (engineering: durable each, and backlog catch-up)."""

from __future__ import annotations

from bench.ground import PGBENCH_SCALE, Ground
from bench.model import Bar, Figure
from bench.registry import row

FLIGHTS = 1500
WARM_UP = 500
FLUSH_BOUND = 1000
"""Fewer flushes per second than that: the disk bounds product and pgbench alike, so they have to come close."""


@row("dynamic_durable")
def dynamic_durable(ground: Ground) -> list[Figure]:
    """XML bytes to commit, one message per transaction, each flushed."""
    flush_bound = ground.fdatasync[0] < FLUSH_BOUND
    bar = Bar(">=", 0.8) if flush_bound else Bar(">=", 0.2, aim=0.3)
    return [_measure(ground, "dynamic_durable", bar, durable=True)]


@row("dynamic_catch_up")
def dynamic_catch_up(ground: Ground) -> list[Figure]:
    """The same with `synchronous_commit = off` in the session; the driver does not switch it by itself."""
    return [_measure(ground, "dynamic_catch_up", Bar(">=", 0.17, aim=0.25), durable=False)]


def _measure(ground: Ground, name: str, bar: Bar, *, durable: bool) -> Figure:
    messages = ground.pick(4000, 600)
    seconds = ground.pick(10, 2)
    with ground.airport(name, FLIGHTS) as airport:
        if not durable:
            airport.conn.execute("set synchronous_commit = off")
        ground.pgbench(f"{name}-warm-up", seconds, synchronous_commit=durable)
        airport.enqueue_events(WARM_UP, FLIGHTS)
        airport.drain()

        def product(run: int) -> float:
            airport.enqueue_events(messages, FLIGHTS)
            return messages / airport.drain()

        def reference(run: int) -> float:
            return ground.pgbench(f"{name}-{run}", seconds, synchronous_commit=durable)

        rate, tps = ground.interleave(product, reference)
    mode = "on" if durable else "off"
    return Figure(
        name,
        rate,
        "messages/s",
        tps,
        f"pgbench -N -c1 -M prepared, scale {PGBENCH_SCALE}, synchronous_commit={mode}",
        bar,
        None
        if durable
        else "synchronous_commit=off set by the benchmark: run defers flushes by itself, replay does not",
    )
