"""Random streams through the model and the product, compared after every message (FS-3.3, FS-5, FS-6)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from psycopg import sql

from msgx_driver.clock import SystemClock
from msgx_driver.loops.pump import Pump
from msgx_driver.migrate import migrate_up
from msgx_driver.store import Store
from tests.conftest import Count
from tests.model.model import COLLECTIONS, TEXTS, El, Message, Model
from tests.model.streams import LISTS, KindRule, Setting, Step, render, streams

EXAMPLES = int(os.environ.get("MSGX_TEST_STREAMS", "150"))
DETAILS = {table: seq for table, seq, _ in COLLECTIONS.values()}
TIMES = "{created_at,updated_at,deleted_at,applied_at,bound_at,payload_hash}"

REMEMBER = """
create temp table seed_kind as select * from flop_kind;
create temp table seed_lock as select epoch from pipeline_lock;
"""
# The one helper that empties the schema between streams and restores its seeds; the writer stays the writer.
RESET = """
delete from proc_state; delete from message_raw; delete from message_identity; delete from inbox_cursor;
delete from flight_schd; delete from flight_tombstone; delete from schd_gen; delete from schd_gen_flid;
delete from msg_event; delete from setting_history;
""" + "".join(f"delete from {table};\n" for table in DETAILS) + """
update setting set value = default_value where value <> default_value;
delete from flop_kind; insert into flop_kind select * from seed_kind;
update pipeline_lock set queue_floor = 0, epoch = (select epoch from seed_lock);
"""  # fmt: skip


def rows_of(table: str, order: str = "1") -> str:
    return f"'{table}', (select coalesce(jsonb_agg(to_jsonb(t) - '{TIMES}'::text[]), '[]') from {table} t)"


LOOK = (
    "select jsonb_build_object("
    + ", ".join(
        [
            *(rows_of(table) for table in DETAILS),
            *(rows_of(t) for t in ("flight_schd", "flight_tombstone", "schd_gen", "schd_gen_flid", "message_identity")),
            "'events', (select coalesce(jsonb_agg(to_jsonb(e) order by e.event_id), '[]') from msg_event e)",
            "'anomalies', (select coalesce(jsonb_agg(to_jsonb(c)), '[]') from consistency_check c)",
        ]
    )
    + "), (select to_jsonb(p) from proc_state p where p.message_id = %s)"
)


# ---------------------------------------------------------------- the model as tables


def without_null(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def key_of(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((without_null(row) for row in rows), key=key_of)


def column(name: str) -> str:
    return f"{name}_text".lower() if name in TEXTS else name.lower()


def model_tables(model: Model) -> dict[str, list[dict[str, Any]]]:
    state = model.state
    tables: dict[str, list[dict[str, Any]]] = {table: [] for table in DETAILS}
    tables["flight_schd"] = []
    for flid, flight in state["flights"].items():
        row = {column(name): value for name, value in flight["values"].items()}
        row |= {"flid": flid, "state_version": flight["version"], "last_message_id": flight["message_id"]}
        row |= {"high_message_id": flight["message_id"], "last_dttm": flight["dttm"]}
        row["fday"] = flight["fday"] and flight["fday"].isoformat()
        tables["flight_schd"].append(row)
        for tag, items in flight["sets"].items():
            table, seq, _ = COLLECTIONS[tag]
            for ordinal, item in enumerate(items, 1):
                line = {"source_seq" if key == seq else key.lower(): value for key, value in item.items()}
                line |= {"flid": flid, "ordinal": ordinal, "record_version": flight["version"]}
                if table == "flight_route_point":
                    line["route_kind"] = tag
                tables[table].append(line)
    tables["flight_tombstone"] = [
        {"flid": flid, "state_version": t["version"], "message_id": t["message_id"]}
        for flid, t in state["tombstones"].items()
    ]
    tables["schd_gen"] = [
        {"fday": day.isoformat(), "version": g["version"], "last_message_id": g["message_id"], "recs": g["recs"]}
        for day, g in state["gens"].items()
    ]
    tables["schd_gen_flid"] = [
        {"fday": d.isoformat(), "flid": f} for d, members in state["lists"].items() for f in members
    ]
    tables["message_identity"] = [
        {"identity_key": key, "message_id": held["message_id"], "dttm": held["dttm"]}
        for key, held in state["identities"].items()
    ]
    return tables


# ---------------------------------------------------------------- comparing


class Rig:
    """The product on a real server: store, pump, and the connection that looks."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.conn.execute(REMEMBER.encode())
        store.acquire_writer()
        self.streams = self.messages = 0

    def run(self, steps: list[Step]) -> None:
        conn = self.store.conn
        conn.execute(RESET.encode())
        model = Model()
        pump = Pump(self.store, SystemClock())
        self.streams += 1
        message_id = 0
        for step in steps:
            if isinstance(step, Setting):
                self.store.set_setting(step.name, step.value)
                model.settings[step.name] = step.value
                if step.name == "wire.max_bytes":  # read when a command starts
                    pump, model.max_bytes = Pump(self.store, SystemClock()), int(step.value)
            elif isinstance(step, KindRule):
                name = sql.Identifier(step.column)
                query = sql.SQL("update flop_kind set {} = %s where styp = %s").format(name)
                conn.execute(query, (step.value, step.styp))
                model.kinds[step.styp]["mode" if step.column == "collection_mode" else step.column] = step.value
            else:
                message_id += 1
                self.messages += 1
                self.one(model, pump, message_id, step)
        self.deliveries(model)

    def one(self, model: Model, pump: Pump, message_id: int, message: Message) -> None:
        payload, encoding = render(message)
        expected = model.take(message_id, message, len(payload))
        self.store.enqueue("model", [(message_id, payload, encoding)])
        pump.drain(lambda outcome: True)
        row = self.store.conn.execute(LOOK.encode(), (message_id,)).fetchone()
        assert row is not None
        tables, proc = row
        found = differences_of_message(proc, expected)
        events = tables.pop("events")
        anomalies = [{key: row[key] for key in ("anomaly", "subject")} for row in tables.pop("anomalies")]
        found += differences("consistency_check", by_key(anomalies), by_key(model.anomalies()))
        for name, wanted in model_tables(model).items():
            found += differences(name, by_key(tables[name]), by_key(wanted))
        keys = ("target", "kind", "flid", "state_version", "message_id", "payload")
        told = [{key: event[key] for key in keys} for event in events]
        found += differences("msg_event", told, model.state["events"])
        if [event["event_id"] for event in events] != list(range(1, len(events) + 1)):
            found.append("event ids with gaps")
        states = {state["FLID"]: state for state in self.store.projections()}
        for state in states.values():
            state.pop("UPDATED_AT")
        wanted = [model.projection(flid) for flid in sorted(model.state["flights"])]
        found += differences("projection", [states[flid] for flid in sorted(states)], wanted)
        if found:
            where = f"message {message_id}: {payload.decode(errors='replace')}"
            pytest.fail("\n  ".join(["model and product differ", *found, where]), pytrace=False)

    def deliveries(self, model: Model) -> None:
        """What would leave after the whole stream."""
        rows = [{key: event[key] for key in ("kind", "flid", "value")} for event in self.store.preview_events()]
        for row in rows:
            if row["kind"] == "STATE":
                row["value"].pop("UPDATED_AT")
        found = differences("deliveries", sorted(rows, key=key_of), sorted(model.deliveries(), key=key_of))
        if found:
            pytest.fail("\n  ".join(["model and product differ after the stream", *found]), pytrace=False)


def differences(what: str, product: list[dict[str, Any]], model: list[dict[str, Any]]) -> list[str]:
    found = [f"{what}, only in product: {row}" for row in product if row not in model]
    found += [f"{what}, only in model: {row}" for row in model if row not in product]
    if not found and product != model:
        found = [f"{what}, order in product: {product}", f"{what}, order in model: {model}"]
    return found


def differences_of_message(proc: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    names = ("status", "error_class", "last_error_class", "attempts", "duplicate_of")
    pairs = {name: (proc[name], expected[name]) for name in names}
    reason, wanted = proc["reason"] or "", expected["reason"] or ""
    if expected["status"] == "SKIPPED":
        pairs["reason"] = (reason[: len(wanted)], wanted)
    if expected["meta"] is not None:
        for name in ("SNDR", "TYPE", "STYP", "SEQN", "DTTM"):
            pairs[name] = (proc[name.lower()] or "", expected["meta"].get(name, ""))
    older = [(result or {}).get("older_than_state", 0) for result in (proc["result"], expected.get("result"))]
    pairs["older_than_state"] = (older[0], older[1])
    found = [f"{name}: {got} in product, {want} in model" for name, (got, want) in pairs.items() if got != want]
    return [*found, f"reason in product: {reason}; in model: {wanted}"] if found else []


# ---------------------------------------------------------------- streams that once differed


def sent(kind: str, styp: str, seqn: int, *body: El) -> Message:
    names = {"SNDR": "AODB", "SEQN": str(seqn), "TYPE": kind, "STYP": styp, "DTTM": "20260909080000"}
    head = El("META", "", (), tuple(El(tag, text) for tag, text in names.items()))
    return Message(El("MSG", "", (), (head, *body)))


def plan(*records: El) -> El:
    return El("SCHD", "", (), (El("RECS", str(len(records))), El("FDAY", "09SEP26"), *records))


def flight(tag: str, flid: str, *parts: El) -> El:
    return El(tag, "", (), (El("FLID", flid), *parts))


def shared(flno: str, number: int) -> El:
    return flight("FLTR", f"{flno}-{number}", El("MAID", f"M{number}"), El("FLNO", flno))


# D24, D28: a scalar is a string whatever it looks like; each record comes twice, the second is equal.
LOOKS_LIKE_JSON: list[Step] = [
    sent("SCHD", "ADFT", number, plan(flight("FLTR", "A", El("REMC", text), El("SRVT", text))))
    for number, text in enumerate(("[{", "[{", '[{"A":"1"}]', '[{"A":"1"}]'), 1)
]
# flop_kind.notify holds for a deletion, for what goes with it and for the list of the main.
QUIET_DELETION: list[Step] = [
    KindRule("FDEL", "notify", False),
    sent("SCHD", "DNLD", 1, plan(flight("FLTR", "M1", El("MAFL", "ZZ1,YY9")))),
    sent("SCHD", "ADFT", 2, plan(flight("FLTR", "S1", El("MAID", "M1"), El("FLNO", "CA7")))),
    sent("SCHD", "ADFT", 3, plan(flight("FLTR", "S2", El("MAID", "M1"), El("FLNO", "ZZ1")))),
    sent("FLOP", "FDEL", 4, flight("FLOP", "S1", El("FDEL"))),
    sent("FLOP", "FDEL", 5, flight("FLOP", "M1", El("FDEL"))),
]
# D23: every form of list, one number more, one less, and the number that was there before.
LISTS_EDITED: list[Step] = [
    sent("SCHD", "DNLD", 1, plan(*(flight("FLTR", f"M{i}", El("MAFL", text)) for i, text in enumerate(LISTS)))),
    *(
        sent("SCHD", "ADFT", 2 + n, plan(*(shared(flno, i) for i in range(len(LISTS)))))
        for n, flno in enumerate(("CA7", "ZZ1", "ZZ11"))
    ),
    *(
        sent("FLOP", "FDEL", 5 + n, *(flight("FLOP", f"{flno}-{i}", El("FDEL")) for i in range(len(LISTS))))
        for n, flno in enumerate(("CA7", "ZZ1", "ZZ11"))
    ),
]
# D31: the copy that took over holds the identity, also when it fails.
FAILED_TAKEOVER: list[Step] = [
    Setting("identity.of_dead", "takeover"),
    sent("FLOP", "ESTT", 1, flight("FLOP", "A", El("ESTT", "1"), El("QQ", "1"))),
    sent("FLOP", "ESTT", 1, flight("FLOP", "A", El("ESTT", "1"), El("QQ", "1"))),
    Setting("identity.of_dead", "skip"),
    sent("FLOP", "ESTT", 1, flight("FLOP", "A", El("ESTT", "1"))),
]
# D10: a deletion marker in another kind is not dropped in silence.
HIDDEN_DELETION: list[Step] = [sent("FLOP", "ESTT", 1, flight("FLOP", "A", El("ESTT", "1"), El("FDEL")))]
# D10, ignore: an object of which only its unknown part says something is neither set nor cleared.
UNKNOWN_IN_OBJECT: list[Step] = [
    Setting("wire.unknown_field", "ignore"),
    sent("FLOP", "FDIV", 1, flight("FLOP", "A", El("FDIV", "", (("DDES", "HKG"),)))),
    sent("FLOP", "FDIV", 2, flight("FLOP", "A", El("FDIV", "", (("QQ", "1"),)))),
    sent("FLOP", "ESTT", 3, flight("FLOP", "A", El("FDIV", "", (("QQ", "1"), ("DDES", ""))), El("ESTT", "1"))),
]
# D11: an empty DTTM is none in a notice.
EMPTY_TIME: list[Step] = [
    Message(El("MSG", "", (), (El("META", "", (), (El("SNDR", "AODB"), El("SEQN", "1"), El("DTTM"), El("TYPE", "FLOP"),
                                                   El("STYP", "ESTT"))), flight("FLOP", "A", El("ESTT", "1"))))),
]  # fmt: skip


# ---------------------------------------------------------------- the test


@pytest.fixture(scope="module")
def rig(pg_server: Any) -> Iterator[Rig]:
    dsn = pg_server.new_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate_up(conn, "msgx")
        conn.execute(b"set search_path = msgx")
    logging.getLogger("msgx_driver").setLevel(logging.ERROR)
    with Store.open(dsn, "msgx") as store:
        yield Rig(store)


@settings(
    max_examples=EXAMPLES,
    derandomize="MSGX_TEST_STREAMS" not in os.environ,  # the same streams in every `make test`
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@example(steps=LOOKS_LIKE_JSON)
@example(steps=LISTS_EDITED)
@example(steps=QUIET_DELETION)
@example(steps=FAILED_TAKEOVER)
@example(steps=HIDDEN_DELETION)
@example(steps=UNKNOWN_IN_OBJECT)
@example(steps=EMPTY_TIME)
@given(steps=streams())
def run_streams(rig: Rig, steps: list[Step]) -> None:
    rig.run(steps)


def test_random_streams_end_as_the_model_says(rig: Rig, count: Count) -> None:
    run_streams(rig)
    count("stream", rig.streams)
