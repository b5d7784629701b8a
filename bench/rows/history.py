"""Whether a long past makes the present slow: head lookup and one message beside ten million finished ones."""

from __future__ import annotations

from bench.ground import Airport, Ground, query
from bench.model import Bar, Figure, Sample
from bench.registry import row

FLIGHTS = 1500
CHUNK = 500_000


@row("history")
def history(ground: Ground) -> list[Figure]:
    """The same messages in two databases that differ in their finished messages only."""
    finished = ground.pick(10_000_000, 1_000_000)
    messages = ground.pick(2000, 500)
    with ground.airport("history", FLIGHTS) as full, ground.airport("no_history", FLIGHTS) as empty:
        ground.say(f"{finished} finished messages")
        full.conn.execute("set synchronous_commit = off")
        # The one message that is there already came first.
        first = full.next_id()
        for at in range(first, first + finished, CHUNK):
            span = {"first": at, "last": min(at + CHUNK, first + finished) - 1}
            full.conn.execute(query("finished_messages"), span)
            full.conn.execute(query("finished_identities"), span)
        full.conn.execute("reset synchronous_commit")
        full.vacuum()
        empty.vacuum()
        # The writer's floor is set when it takes the right, as after every start.
        full.store.release_writer()
        full.store.acquire_writer()
        full.conn.execute("checkpoint")
        heads: dict[bool, list[float]] = {True: [], False: []}
        calls: dict[bool, list[float]] = {True: [], False: []}
        for run in range(ground.runs + 1):
            for airport in (full, empty):
                head, call = _measure(airport, messages)
                # The first round warms up.
                if run:
                    heads[airport is full].append(head)
                    calls[airport is full].append(call)
    return [
        Figure(
            name,
            Sample(tuple(found[True])),
            "us",
            Sample(tuple(found[False])),
            "the same with an empty history",
            Bar("<=", 1.2),
            f"{finished} finished messages",
        )
        for name, found in (("history_head", heads), ("history_process", calls))
    ]


def _measure(airport: Airport, messages: int) -> tuple[float, float]:
    """Microseconds of one head lookup and of one process_message, means over `messages`."""
    ids = airport.enqueue_events(messages, FLIGHTS)

    def look() -> None:
        for _ in range(messages):
            head = airport.store.next_message()
            assert head is not None
            assert head.message_id == ids[0]

    head = airport.timed(look)
    queued = airport.conn.execute(query("queued_payloads"), {"first": ids[0]}).fetchall()
    commands = [(message_id, airport.decode(payload)) for message_id, payload in queued]

    def process() -> None:
        for message_id, command in commands:
            airport.store.process_message(message_id, command)

    return head / messages * 1e6, airport.timed(process) / messages * 1e6
