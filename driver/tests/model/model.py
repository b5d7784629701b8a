"""The rules of the engine a second time, in plain Python: FS-3.3, FS-5, FS-6 and the decisions of docs/decisions.md.

Written from the documents alone, it shares no code with the SQL or the driver. It reads a described message (a tree,
before it became bytes), so it needs no XML parser either. State is plain dicts; `Model.take` is one message.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

# ---------------------------------------------------------------- described messages


@dataclass(frozen=True)
class El:
    """An element of a message: attributes and children in order, own text as sent."""

    tag: str
    text: str = ""
    attrs: tuple[tuple[str, str], ...] = ()
    children: tuple[El, ...] = ()


@dataclass(frozen=True)
class Message:
    """A message before it became bytes. `fault` names a defect of the bytes; with one, META may still be readable."""

    root: El
    encoding: str = "utf-8"
    fault: str = ""


# ---------------------------------------------------------------- the tags (contract 1 and 3)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SCALARS = words(
    "ALCD ALSC FLNO MVIN SODT STD FLTY FLIN ACFT RENO TAOP TAFL TAID TRML MAXP CSOP CSFT MAID ESTT ACTT STND ABDG PHAG "
    "FHAG MHAG CNCL REMC EXSC EXSR FTSS PEDT PADT NEAT NAAT RUNW EOBT TOBT COBT CTOT IEST VIPP VIPR LBNO LBWT PAXC "
    "EGSR EGST"
)
OBJECTS = {"FDIV": ("DDES", "DDIR", "TEXT"), "FRET": ("REID", "TEXT"), "FLAB": ("ARES", "TEXT")}
TEXTS = ("SRVT", "VIPF", "MAFL")
COLLECTIONS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "GTDT": ("flight_gate", "GTNO", ("GATE", "GTYP", "PGOT", "PGCT", "GOTM", "GCTM")),
    "CKDT": ("flight_checkin", "CKNO", ("CHKC", "CCLS", "CTYP", "PCOT", "PCCT", "COTM", "CCTM")),
    "CLDT": ("flight_belt", "CLNO", ("BELT", "BCLS", "BTYP", "PCOT", "PCCT", "FBAG", "LBAG")),
    "PSDT": ("flight_stand_plan", "PSNO", ("PSST", "STST", "STET", "ABDG")),
    "CHDT": ("flight_chute", "CHNO", ("CHUT", "CCLS", "CTYP", "PCBT", "PCET", "CBTM", "CETM")),
    "DELY": ("flight_delay", None, ("CODE", "STRT", "DURA", "TEXT")),
    "ABTM": ("flight_bridge_op", "ASNO", ("ABDG", "ABOP", "AOTM")),
    "CHOT": ("flight_chock_op", "CSNO", ("CHID", "CHTM", "CHST")),
    "ROUT": ("flight_route_point", "RTNO", ("APCD", "SCAT", "SCDT", "SADC", "SDDC")),
    "ERUT": ("flight_route_point", "RTNO", ("APCD", "SCAT", "SCDT", "SADC", "SDDC")),
}
MAX_ITEMS = {"GTDT": 99, "CKDT": 99, "CLDT": 99, "PSDT": 9}
NOT_USED = {"BOTM", "LACL", "FINT", "APPT", "FFID"}  # D10: out of scope, counted
IGNORED = {("LDM", "*"), ("REGN", "*"), ("RSTA", "*"), ("EROR", "*")} | {  # D36
    ("FLOP", styp) for styp in ("BOTM", "LACL", "FINT", "APPT")
}
GROUPS = {"TAOP": {"TAOP", "TAFL", "TAID"}, "HNAG": {"FHAG", "PHAG", "MHAG"}, "VIPP": {"VIPP", "VIPR"},
          "EXSS": {"EXSC", "EXSR"}, "FDEL": set()}  # fmt: skip
ENABLED = words(
    "GTDT CKDT CLDT PSDT CHDT DELY ABTM CHOT ROUT ERUT FDIV FRET FLAB SRVT VIPF MAFL CNCL FDEL "
    "ESTT ACTT RENO ACFT FLTY FLIN TRML STND TAOP HNAG REMC"
)
DISABLED = words("MAXP VIPP EXSS FTSS PEDT PADT NEAT NAAT RUNW EOBT TOBT COBT CTOT IEST EGSR EGST")
DEFAULTS = {
    "snapshot.absent_flight": "delete",
    "snapshot.absent_field": "keep",
    "snapshot.reclaim": "latest_message_wins",
    "snapshot.recs_mismatch": "reject",
    "snapshot.max_delete_ratio": "off",
    "snapshot.max_flights": "10000",
    "schedule.day_starts_at": "00:00",
    "wire.unknown_field": "reject",
    "wire.empty_scalar": "set",
    "wire.max_bytes": "10485760",
    "request.resp_guard": "strict",
    "pipeline.max_attempts": "8",
    "pipeline.unsupported_attempts": "3",
    "identity.conflict": "skip",
    "identity.include_day_boundary": "no",
    "identity.of_dead": "skip",
    "kafka.tombstone": "object",
}
MONTHS = words("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")


LATE_FAULTS = ("cut", "deep", "bytes")  # behind META, so that an ignore rule can win (D36)


class Refused(Exception):
    """The message cannot be applied: MALFORMED, or UNSUPPORTED; `at_once` = DEAD without another attempt (D14, D32)."""

    def __init__(self, error_class: str, what: str, *, at_once: bool = True) -> None:
        super().__init__(what)
        self.error_class = error_class
        self.at_once = at_once


def malformed(what: str) -> Refused:
    return Refused("MALFORMED", what)


def unsupported(what: str) -> Refused:
    return Refused("UNSUPPORTED", what, at_once=False)


# ---------------------------------------------------------------- reading a message (contract 1, D40 first part)


def trim(text: str) -> str:
    return text.strip(" \t\r\n")


def is_empty(el: El) -> bool:
    return not el.attrs and not el.children and not trim(el.text)


def full_dttm(text: str | None) -> str | None:
    """A DTTM that is a whole yyyyMMddHHmmss, else nothing."""
    if not text or not re.fullmatch(r"[0-9]{14}", text):
        return None
    try:
        date(int(text[:4]), int(text[4:6]), int(text[6:8]))
    except ValueError:
        return None
    return text if text[8:10] < "24" and text[10:12] < "60" and text[12:14] < "60" else None


def read_meta(message: Message) -> dict[str, str]:
    """META as far as routing and ignoring need it: TYPE and STYP (D36); raises when even these are unknown."""
    if message.fault and message.fault not in LATE_FAULTS:
        raise malformed(message.fault)
    if message.root.tag != "MSG":
        raise malformed("root")
    metas = [el for el in message.root.children if el.tag == "META"]
    if not metas:
        raise malformed("no META")
    meta: dict[str, str] = {}
    for el in metas[0].children:
        if el.tag in ("SNDR", "SEQN", "DTTM", "TYPE", "STYP"):
            if el.tag in meta:
                raise malformed(f"META {el.tag} twice")
            meta[el.tag] = trim(el.text)
    if not meta.get("TYPE") or not meta.get("STYP"):
        raise malformed("TYPE or STYP missing")
    return meta


def one_value(tag: str, attr: str | None, elements: list[El], unknown: set[str]) -> str | None:
    """A scalar or a field of an item: attribute or child (contract 1). None = not there, or an unknown field."""
    if len(elements) > 1:
        raise malformed(f"{tag} twice")
    if not elements:
        return attr
    if elements[0].attrs or elements[0].children:
        unknown.add(tag)  # the parts are what is unknown; a text beside them is still its value
        if elements[0].children and not trim(elements[0].text):
            return attr
    value = trim(elements[0].text)
    if attr is not None and attr != value:
        raise malformed(f"{tag} attribute against child")
    return value


def group(el: El) -> dict[str, list[El]]:
    found: dict[str, list[El]] = {}
    for child in el.children:
        found.setdefault(child.tag, []).append(child)
    return found


def read_fields(el: El, known: tuple[str, ...], unknown: set[str]) -> dict[str, str]:
    """Fields of an object or item; its own text is the key TEXT."""
    fields: dict[str, str] = {}
    attrs, children = dict(el.attrs), group(el)
    for key in {**attrs, **children}:
        if key not in known:
            unknown.add(f"{el.tag}.{key}")
            continue
        value = one_value(key, attrs.get(key), children.get(key, []), unknown)
        if value is not None:
            fields[key] = value
    own = trim(el.text)
    if own:
        if "TEXT" not in known:
            unknown.add(f"{el.tag}.TEXT")
        elif fields.setdefault("TEXT", own) != own:
            raise malformed("TEXT twice")
    return fields


def looks_like_json(text: str) -> bool:
    """True for a text that would be read as JSON and is none: it is kept as the text of an object."""
    if not text.startswith("[{"):
        return False
    try:
        return not all(isinstance(entry, dict) for entry in json.loads(text))
    except ValueError:
        return True


def read_text(elements: list[El]) -> str:
    """SRVT, VIPF, MAFL: the text as sent, or canonical JSON of what has parts or repeats (D28)."""
    first = elements[0]
    if len(elements) == 1 and not first.attrs and not first.children and not looks_like_json(trim(first.text)):
        return trim(first.text)
    objects = []
    for el in elements:
        entry: dict[str, str] = dict(el.attrs)
        for child in el.children:
            entry[child.tag] = trim(child.text)
        if trim(el.text):
            entry["TEXT"] = trim(el.text)
        objects.append(entry)
    return json.dumps(objects, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def read_record(el: El) -> dict[str, Any]:
    """One flight record as the five commands of FS-5.2: set, clear, replace, by tag."""
    unknown: set[str] = set()
    record: dict[str, Any] = {"set": {}, "clear": set(), "replace": {}, "unknown": unknown, "not_used": set()}
    attrs, children = dict(el.attrs), group(el)
    for tag in {**attrs, **children}:
        elements = children.get(tag, [])
        if tag in attrs and (tag in OBJECTS or tag in TEXTS or tag in COLLECTIONS):
            unknown.add(tag)  # these are elements
            if not elements:
                continue
        if tag in SCALARS or tag == "FLID":
            value = one_value(tag, attrs.get(tag), elements, unknown)
            if value is not None:
                record["set"][tag] = value
        elif tag in NOT_USED:
            record["not_used"].add(tag)
        elif tag not in OBJECTS and tag not in TEXTS and tag not in COLLECTIONS:
            unknown.add(tag)
        elif tag in TEXTS:
            record["set"][tag] = read_text(elements)
        elif tag in OBJECTS:
            if len(elements) > 1:
                raise malformed(f"{tag} twice")
            strange: set[str] = set()
            fields = read_fields(elements[0], OBJECTS[tag], strange)
            unknown |= strange
            if any(fields.values()):
                record["set"][tag] = fields
            elif not strange:
                record["clear"].add(tag)  # empty, or every value empty (FS-5.2-7)
        else:
            read_collection(tag, elements, record)
    if trim(el.text):
        raise malformed("text in a record")
    flid = record["set"].pop("FLID", "")
    if not 1 <= len(flid) <= 20:
        raise malformed("capacity: FLID" if flid else "FLID")
    record["FLID"] = flid
    return record


def read_collection(tag: str, elements: list[El], record: dict[str, Any]) -> None:
    _, seq, known = COLLECTIONS[tag]
    if len(elements) == 1 and is_empty(elements[0]):
        record["replace"][tag] = []
        return
    if any(is_empty(el) for el in elements):
        raise malformed(f"{tag} empty among others")
    if len(elements) > MAX_ITEMS.get(tag, len(elements)):
        raise malformed(f"{tag}: capacity")
    keys = known if seq is None else (seq, *known)
    items = [read_fields(el, keys, record["unknown"]) for el in elements]
    zeros = [bool(seq is not None and re.fullmatch("0+", item.get(seq, ""))) for item in items]
    if all(zeros):
        record["clear"].add(tag)
    elif any(zeros):
        raise malformed(f"{tag} zero mixed")
    else:
        record["replace"][tag] = items


def read_body(message: Message, meta: dict[str, str]) -> dict[str, Any]:
    """The package: header fields and records; raises MALFORMED of D40's first part."""
    if message.fault:
        raise malformed(message.fault)
    body: dict[str, Any] = {"header": {}, "records": [], "unknown": set()}
    if sum(el.tag == "META" for el in message.root.children) > 1:
        raise malformed("second META")
    if meta["TYPE"] not in ("SCHD", "FLOP", "FDEL"):
        return body  # nobody knows its form
    if trim(message.root.text):
        raise malformed("text between records")
    parts = [el for el in message.root.children if el.tag != "META"]
    if meta["TYPE"] == "SCHD":
        if len(parts) != 1 or parts[0].tag != "SCHD":
            raise malformed("SCHD")
        if trim(parts[0].text):
            raise malformed("text between records")
        for tag, elements in group(parts[0]).items():
            if tag in ("RECS", "FDAY"):
                value = one_value(tag, None, elements, body["unknown"])
                if value is not None:
                    body["header"][tag] = value
            elif tag not in ("FLTR", "FLGT"):
                body["unknown"].add(tag)
        parts = [el for el in parts[0].children if el.tag in ("FLTR", "FLGT")]
    elif not parts or any(el.tag != "FLOP" for el in parts):
        raise malformed("FLOP")
    for el in parts:
        record = read_record(el)
        if meta["TYPE"] == "FDEL" or meta["STYP"] == "FDEL":
            record["unknown"].discard("FDEL")
        body["records"].append(record)
    return body


# ---------------------------------------------------------------- days (D9)


def day_of_date(text: str) -> date | None:
    found = re.fullmatch(r"([0-9]{2})([A-Za-z]{3})([0-9]{2})", text)
    if not found or found[2].upper() not in MONTHS:
        return None
    try:
        return date(2000 + int(found[3]), MONTHS.index(found[2].upper()) + 1, int(found[1]))
    except ValueError:
        return None


def day_of_header(text: str) -> date | None:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    return day_of_date(text)


def day_of_time(text: str, starts_at: str) -> date | None:
    found = re.fullmatch(r"(.{7})([01][0-9]|2[0-3])([0-5][0-9])", text)
    day = day_of_date(found[1]) if found else None
    if found is None or day is None:
        return None
    return day - timedelta(days=1) if f"{found[2]}:{found[3]}" < starts_at else day


# ---------------------------------------------------------------- codeshare lists (D23)


def edit_list(text: str | None, flno: str, *, add: bool) -> str | None:
    """MAFL with one flight number more or less, by whole token; a JSON array is left alone."""
    now = text or ""
    if now.startswith("[{"):
        return text
    tokens = [token for token in re.split(r"[,/; ]+", now) if token]
    if add == (flno in tokens):
        return text
    tokens = [*tokens, flno] if add else [token for token in tokens if token != flno]
    return next((mark for mark in ",/; " if mark in now), ",").join(tokens)


# ---------------------------------------------------------------- the engine


def new_state() -> dict[str, Any]:
    return {"flights": {}, "tombstones": {}, "gens": {}, "lists": {}, "identities": {}, "events": []}


@dataclass
class Model:
    """State and rules. `messages` holds one row of proc_state per message; `state` everything else."""

    settings: dict[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    kinds: dict[str, dict[str, Any]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=new_state)
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    max_bytes: int = int(DEFAULTS["wire.max_bytes"])

    def __post_init__(self) -> None:
        for styp in (*ENABLED, *DISABLED):
            self.kinds[styp] = {
                "keys": GROUPS.get(styp, {styp}),
                "mode": "REPLACE",
                "on_missing": "IGNORE" if styp in ("CNCL", "FDEL") else "CREATE",  # D13
                "notify": True,
                "enabled": styp in ENABLED,
            }

    # ---- one message

    def take(self, message_id: int, message: Message, size: int) -> dict[str, Any]:
        """Process one message of `size` bytes until it is terminal, retries at once; returns its row of proc_state."""
        self.id = message_id
        self.result: dict[str, Any] = {}
        row: dict[str, Any] = {
            "status": "SUCCEEDED",
            "error_class": None,
            "last_error_class": None,
            "attempts": 0,
            "duplicate_of": None,
            "reason": None,
            "meta": None,
        }
        self.messages[message_id] = row
        try:
            if size > self.max_bytes:
                raise malformed("capacity: bytes")
            meta = read_meta(message)
            rule = self.ignore_rule(meta)
            if rule:
                return self.end(row, "SKIPPED", f"ignored:{rule}")
            if not meta.get("SNDR") or not re.fullmatch(r"[0-9]{1,18}", meta.get("SEQN", "")):
                raise malformed("SNDR or SEQN")
            row["meta"] = meta
            body = read_body(message, meta)
        except Refused as e:
            return self.fail(row, e)
        self.meta = meta
        self.dttm = full_dttm(meta.get("DTTM"))
        skip = self.check_identity(row, body)
        if skip:
            return row
        before = copy.deepcopy(self.state)
        try:
            reason = self.route(body)
        except Refused as e:
            self.state = before
            if e.error_class != "MALFORMED":
                self.bind(body)  # D31: MALFORMED binds none
            return self.fail(row, e)
        self.bind(body)
        row["result"] = self.result
        return self.end(row, "SKIPPED" if reason else "SUCCEEDED", reason)

    def end(self, row: dict[str, Any], status: str, reason: str | None) -> dict[str, Any]:
        row["status"], row["reason"] = status, reason
        return row

    def fail(self, row: dict[str, Any], e: Refused) -> dict[str, Any]:
        """D14, with all retries taken at once."""
        row["attempts"] = 1 if e.at_once else int(self.settings["pipeline.unsupported_attempts"])
        row["last_error_class"] = e.error_class
        row["error_class"] = e.error_class if e.at_once else "EXHAUSTED"
        return self.end(row, "DEAD", str(e))

    def ignore_rule(self, meta: dict[str, str]) -> str | None:
        """US-04: any case; needs TYPE and STYP only."""
        kind, sub = meta["TYPE"].upper(), meta["STYP"].upper()
        for rule in ((kind, sub), (kind, "*")):
            if rule in IGNORED:
                return "-".join(rule)
        return None

    # ---- identity (FS-4.1-5, D15, D16, D31)

    def identity(self) -> str:
        names = [self.meta[tag].replace("\\", "\\\\").replace("|", "\\|") for tag in ("SNDR", "TYPE", "STYP")]
        parts = [*names, str(int(self.meta["SEQN"]))]
        if self.settings["identity.include_day_boundary"] == "yes":
            parts.append((self.dttm or "")[:8])
        return "|".join(parts)

    def bind(self, body: dict[str, Any]) -> None:
        self.state["identities"][self.identity()] = {"message_id": self.id, "body": body, "dttm": self.dttm}

    def check_identity(self, row: dict[str, Any], body: dict[str, Any]) -> bool:
        """True when the message ends here, because another one holds its identity."""
        holder = self.state["identities"].get(self.identity())
        if holder is None:
            return False
        if self.messages[holder["message_id"]]["status"] == "DEAD":
            if self.settings["identity.of_dead"] == "takeover":
                return False
            reason = "duplicate-of-dead"
        elif holder["body"] == body:
            reason = "duplicate"
        else:
            choice = self.settings["identity.conflict"]
            if choice == "accept_newer" and self.dttm and holder["dttm"] and self.dttm > holder["dttm"]:
                return False
            if choice == "dead":
                self.fail(row, malformed("identity-reused"))
                row["attempts"] = 0  # no failed attempt: a rule
                row["duplicate_of"] = holder["message_id"]
                return True
            reason = "identity-reused"
        row["duplicate_of"] = holder["message_id"]
        self.end(row, "SKIPPED", reason)
        return True

    # ---- routing and validation, in the order of D40

    def route(self, body: dict[str, Any]) -> str | None:
        """Apply the package; returns the reason when it is skipped after all."""
        kind, sub = self.meta["TYPE"], self.meta["STYP"]
        if kind == "SCHD" and sub in ("DNLD", "RESP", "ADFT"):
            return self.schedule(body, sub)
        if kind not in ("FLOP", "FDEL"):
            raise unsupported("kind")
        styp = "FDEL" if kind == "FDEL" else sub
        if not self.kinds.get(styp, {}).get("enabled"):
            raise unsupported("kind")
        self.check_count(body)
        self.check_unknown(body)
        keys = self.kinds[styp]["keys"]
        for record in body["records"]:
            if keys and not keys & carried(record):
                raise malformed("no key of its kind")  # D37
        self.check_widths(body)
        if styp == "FDEL":
            self.delete_named(body)
        else:
            self.dynamic(body, self.kinds[styp])
        return None

    def check_count(self, body: dict[str, Any]) -> None:
        if len(body["records"]) > int(self.settings["snapshot.max_flights"]):
            raise malformed("capacity: records")

    def check_unknown(self, body: dict[str, Any]) -> None:
        """D10."""
        found = body["unknown"].union(*(record["unknown"] for record in body["records"]))
        if found and self.settings["wire.unknown_field"] == "reject":
            raise unsupported("unknown field")

    def check_widths(self, body: dict[str, Any]) -> None:
        """Contract 3: characters, not bytes."""
        for record in body["records"]:
            for tag, value in record["set"].items():
                if tag in OBJECTS:
                    self.check_item(value)
                elif len(value) > (30_000 if tag in TEXTS else 1000 if tag == "REMC" else 200):
                    raise malformed("capacity: width")
            for items in record["replace"].values():
                for item in items:
                    self.check_item(item)

    def check_item(self, item: dict[str, str]) -> None:
        if any(len(value) > (1000 if key == "TEXT" else 200) for key, value in item.items()):
            raise malformed("capacity: width")

    # ---- writing and telling

    def merge(
        self, flid: str, record: dict[str, Any], *, mode: str = "REPLACE", absent: str = "keep"
    ) -> dict[str, Any]:
        """The next state of a flight (FS-5.3): what the record does not carry stays."""
        old = self.state["flights"].get(flid)
        keep = old is not None and absent == "keep"
        values: dict[str, str] = dict(old["values"]) if keep else {}
        sets: dict[str, list[dict[str, str]]] = dict(old["sets"]) if keep else {}
        for tag, value in record["set"].items():
            if tag in OBJECTS:  # the whole object: what is not sent becomes NULL
                for key in OBJECTS[tag]:
                    values.pop(f"{tag}_{key}", None)
                values.update({f"{tag}_{key}": text for key, text in value.items()})
            elif tag in SCALARS and value == "" and self.settings["wire.empty_scalar"] == "clear":  # D11
                values.pop(tag, None)
            else:
                values[tag] = value
        for tag in record["clear"]:
            for key in OBJECTS.get(tag, ()):
                values.pop(f"{tag}_{key}", None)
            sets.pop(tag, None)
        for tag, items in record["replace"].items():
            if mode == "APPLY" and items:
                sets[tag] = self.apply_items(tag, sets.get(tag, []), items)
            else:
                sets[tag] = list(items)
        return {"values": values, "sets": {tag: items for tag, items in sets.items() if items}}

    def apply_items(self, tag: str, old: list[dict[str, str]], items: list[dict[str, str]]) -> list[dict[str, str]]:
        """D12: the first entry with the same sequence (DELY: code) takes the item, else it is appended."""
        key = COLLECTIONS[tag][1] or "CODE"
        now = [{name: text for name, text in item.items() if text != ""} for item in old]  # items as shown (D11)
        for item in items:
            match = next((entry for entry in now if item.get(key) and entry.get(key) == item[key]), None)
            if match is None:
                now.append(dict(item))
            else:
                match.update(item)
        return now

    def write(self, flid: str, body: dict[str, Any], fday: date | None) -> None:
        """Every write takes the next version; a reborn flight goes on from its tombstone (D18)."""
        old = self.state["flights"].get(flid) or self.state["tombstones"].get(flid) or {"version": 0}
        self.state["flights"][flid] = {
            **body,
            "fday": fday,
            "version": old["version"] + 1,
            "message_id": self.id,
            "dttm": self.dttm,
        }

    def delete(self, flid: str) -> None:
        flight = self.state["flights"].pop(flid)
        self.state["tombstones"][flid] = {"version": flight["version"] + 1, "message_id": self.id}

    def tell(self, kind: str, flid: str, payload: dict[str, Any] | None = None) -> None:
        where = self.state["flights"].get(flid) or self.state["tombstones"][flid]
        target = "KAFKA:msg" if kind == "NOTICE" else "KAFKA:schd"
        event = {"target": target, "kind": kind, "flid": flid, "state_version": where["version"]}
        self.state["events"].append(event | {"message_id": self.id, "payload": payload})

    def notice(self, flid: str, changed: list[str]) -> None:
        head = {key: self.meta[key] for key in ("SNDR", "TYPE", "STYP", "SEQN", "DTTM") if self.meta.get(key)}
        self.tell("NOTICE", flid, {"FLID": flid, "MESSAGE_ID": self.id, "CHANGED": changed} | head)

    # ---- dynamic events (FS-4.3, D12, D13, D37)

    def dynamic(self, body: dict[str, Any], kind: dict[str, Any]) -> None:
        for record in body["records"]:
            flid = record["FLID"]
            flight = self.state["flights"].get(flid)
            if flight is None and (flid in self.state["tombstones"] or kind["on_missing"] == "IGNORE"):
                continue
            self.write(flid, self.merge(flid, record, mode=kind["mode"]), flight and flight["fday"])
            if kind["notify"]:
                self.notice(flid, sorted(carried(record)))
            self.tell("STATE", flid)

    # ---- deletion by name and codeshares (D18, D23)

    def main_of(self, flid: str) -> str | None:
        maid = self.state["flights"][flid]["values"].get("MAID")
        return maid if maid and maid != flid else None

    def shared_of(self, roots: set[str], listed: set[str]) -> list[str]:
        return sorted(f for f in self.state["flights"] if f not in listed and self.main_of(f) in roots)

    def delete_named(self, body: dict[str, Any]) -> None:
        listed = {record["FLID"] for record in body["records"]}
        roots = listed & set(self.state["flights"])  # a missing flight has no effect at all (D13)
        notify = self.kinds["FDEL"]["notify"]
        shared = self.shared_of(roots, listed)
        left: dict[str, list[str]] = {}
        for flid in [record["FLID"] for record in body["records"]]:
            if flid in self.state["flights"]:
                main, flno = self.main_of(flid), self.state["flights"][flid]["values"].get("FLNO")
                if main and main not in roots and main not in shared and flno:
                    left.setdefault(main, []).append(flno)
                self.delete_one(flid, notify=notify)
        self.edit_mains(left, add=False, notify=notify)
        for flid in shared:
            self.delete_one(flid, notify=notify)

    def delete_one(self, flid: str, *, notify: bool) -> None:
        self.delete(flid)
        if notify:
            self.notice(flid, ["FDEL"])
        self.tell("TOMBSTONE", flid)

    def edit_mains(self, flnos: dict[str, list[str]], *, add: bool, notify: bool = True) -> None:
        """The lists of mains, after the records of the package: one version for each whose text changes."""
        for main in sorted(set(flnos) & set(self.state["flights"])):
            flight = self.state["flights"][main]
            before = text = flight["values"].get("MAFL")
            for flno in flnos[main]:
                text = edit_list(text, flno, add=add)
            if text == before:
                continue
            self.write(main, {"values": flight["values"] | {"MAFL": text}, "sets": flight["sets"]}, flight["fday"])
            if notify:
                self.notice(main, ["MAFL"])
            self.tell("STATE", main)

    # ---- packages of SCHD (FS-3.3, FS-4.2, D1-D3, D7-D9, D24, D32, D33)

    def schedule(self, body: dict[str, Any], sub: str) -> str | None:
        records = body["records"]
        if sub == "RESP" and self.settings["request.resp_guard"] == "strict":
            return "resp-unmatched"  # D4
        recs = body["header"].get("RECS", "")
        if not re.fullmatch(r"[0-9]+", recs):
            raise malformed("RECS")
        if int(recs) != len(records) and self.settings["snapshot.recs_mismatch"] == "reject":
            raise malformed("RECS")
        self.check_count(body)
        day = None if sub == "ADFT" else self.package_day(body)
        if len({record["FLID"] for record in records}) < len(records):
            raise malformed("FLID twice")
        self.check_unknown(body)
        self.check_widths(body)
        if day is None:
            self.add_flights(records)
        else:
            self.snapshot(day, records)
        return None

    def package_day(self, body: dict[str, Any]) -> date:
        header = body["header"].get("FDAY")
        if header is not None:
            day = day_of_header(header)
            if day is None:
                raise malformed("header day")
            return day
        days = set()
        for record in body["records"]:
            text = record["set"].get("SODT") or record["set"].get("STD") or ""
            days.add(day_of_time(text, self.settings["schedule.day_starts_at"]))
        if len(days) != 1 or None in days:
            raise malformed("day")
        day = days.pop()
        assert day is not None
        return day

    def add_flights(self, records: list[dict[str, Any]]) -> None:
        """ADFT: one flight more or changed, no list, no deletion; equal = no version, no event (D24)."""
        joined: dict[str, list[str]] = {}
        for record in records:
            flid = record["FLID"]
            old = self.state["flights"].get(flid)
            new = self.merge(flid, record)
            if old is not None and shown(old) == shown(new):
                continue
            self.write(flid, new, old and old["fday"])
            self.notice(flid, sorted(carried(record)))
            self.tell("STATE", flid)
            main, flno = self.main_of(flid), new["values"].get("FLNO")
            if old is None and main and flno:
                joined.setdefault(main, []).append(flno)
        self.edit_mains(joined, add=True)

    def snapshot(self, day: date, records: list[dict[str, Any]]) -> None:
        flights, lists = self.state["flights"], self.state["lists"]
        protect = self.settings["snapshot.reclaim"] == "protect"
        old_list: set[str] = lists.get(day, set())
        new_list = {record["FLID"] for record in records}
        gone = {f for f in old_list - new_list if f in flights and flights[f]["fday"] == day}
        if self.settings["snapshot.absent_flight"] == "keep":
            gone = set()
        handed: dict[str, date] = {}
        if protect:  # D3: another day's list holds it
            for flid in gone:
                days = [d for d, members in lists.items() if d != day and flid in members]
                if days:
                    handed[flid] = max(days)
        gone -= set(handed)
        limit = self.settings["snapshot.max_delete_ratio"]
        if limit != "off" and len(gone) >= 20 and len(gone) > float(limit) * len(old_list):
            raise Refused("UNSUPPORTED", "deletes too much")  # D32
        gone |= set(self.shared_of(gone, new_list))
        older = 0
        for record in records:
            flid = record["FLID"]
            old = flights.get(flid)
            if protect and old and old["fday"] and old["fday"] > day:
                continue
            if old and self.dttm and old["dttm"] and old["dttm"] > self.dttm:
                older += 1  # D33: older than what it overwrites
            self.write(flid, self.merge(flid, record, absent=self.settings["snapshot.absent_field"]), day)
            self.tell("STATE", flid)
        for flid in sorted(set(handed) - gone):
            self.write(flid, {"values": flights[flid]["values"], "sets": flights[flid]["sets"]}, handed[flid])
            self.tell("STATE", flid)
        for flid in sorted(gone):
            self.delete(flid)
            self.tell("TOMBSTONE", flid)
        version = self.state["gens"].get(day, {"version": 0})["version"] + 1
        self.state["gens"][day] = {"version": version, "message_id": self.id, "recs": len(records)}
        lists[day] = new_list
        self.result["older_than_state"] = older

    def deliveries(self) -> list[dict[str, Any]]:
        """Notices, and of each flight its current state or its deletion (contract 6, D6)."""
        out = []
        last: dict[str, dict[str, Any]] = {}
        for event in self.state["events"]:
            if event["kind"] == "NOTICE":
                out.append({"kind": "NOTICE", "flid": event["flid"], "value": event["payload"]})
            else:
                last[event["flid"]] = event
        gone = self.settings["kafka.tombstone"] == "object"
        for flid, event in last.items():
            if event["kind"] == "STATE":
                value: Any = self.projection(flid)
            else:
                value = {"DELETED": True, "FLID": flid} if gone else None
            out.append({"kind": event["kind"], "flid": flid, "value": value})
        return out

    # ---- what operators see

    def anomalies(self) -> list[dict[str, str]]:
        """What consistency_check shows: a deletion goes one level down (D23), so a shared flight of a shared one stays.

        One that a current list holds is no anomaly: its day's plan says that it is there.
        """
        found = []
        listed = set().union(*self.state["lists"].values())
        for flid, flight in self.state["flights"].items():
            main = self.main_of(flid)
            tombstone = self.state["tombstones"].get(main)
            if flid in listed or main in self.state["flights"]:
                continue
            if tombstone and tombstone["message_id"] > flight["message_id"]:
                found.append({"anomaly": "shared-without-main", "subject": flid})
        return found

    # ---- what consumers see (contract 5)

    def projection(self, flid: str) -> dict[str, Any]:
        flight = self.state["flights"][flid]
        out: dict[str, Any] = {
            "FLID": flid,
            "STATE_VERSION": flight["version"],
            "LAST_MESSAGE_ID": flight["message_id"],
        }
        if flight["fday"]:
            out["FDAY"] = flight["fday"].isoformat()
        for name, value in flight["values"].items():
            tag, _, key = name.partition("_")
            if value == "":
                continue
            if key:
                out.setdefault(tag, {})[key] = value
            else:
                out[tag] = json.loads(value) if tag in TEXTS and value.startswith("[{") else value
        for tag, items in flight["sets"].items():
            out[tag] = [{key: value for key, value in item.items() if value != ""} for item in items]
        return out


def carried(record: dict[str, Any]) -> set[str]:
    return {*record["set"], *record["clear"], *record["replace"]}


def shown(flight: dict[str, Any]) -> Any:
    """What equality of ADFT looks at: '' and NULL are alike (D24)."""
    values = {key: value for key, value in flight["values"].items() if value != ""}
    sets = {
        tag: [{k: v for k, v in item.items() if v != ""} for item in items] for tag, items in flight["sets"].items()
    }
    return values, sets
