"""SIS XML to commands: contract §1 and §2, decisions D10, D11, D12, D28, D36, D37, D40."""

from __future__ import annotations

import codecs
import json
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgx_driver.wire import DecodeError, FieldSpec, canonical_json, decode, decode_message

MAX_BYTES = 10 * 1024 * 1024

_SCALARS = (
    "ALCD ALSC FLNO MVIN SODT STD FLTY FLIN ACFT RENO TAOP TAFL TAID TRML MAXP CSOP CSFT MAID ESTT ACTT STND "
    "ABDG PHAG FHAG MHAG CNCL REMC EXSC EXSR FTSS PEDT PADT NEAT NAAT RUNW EOBT TOBT COBT CTOT IEST VIPP "
    "VIPR LBNO LBWT PAXC EGSR EGST"
)
_COLLECTIONS: dict[str, tuple[str | None, str, int | None]] = {
    "GTDT": ("GTNO", "GATE GTYP PGOT PGCT GOTM GCTM", 99),
    "CKDT": ("CKNO", "CHKC CCLS CTYP PCOT PCCT COTM CCTM", 99),
    "CLDT": ("CLNO", "BELT BCLS BTYP PCOT PCCT FBAG LBAG", 99),
    "PSDT": ("PSNO", "PSST STST STET ABDG", 9),
    "CHDT": ("CHNO", "CHUT CCLS CTYP PCBT PCET CBTM CETM", None),
    "DELY": (None, "CODE STRT DURA TEXT", None),
    "ABTM": ("ASNO", "ABDG ABOP AOTM", None),
    "CHOT": ("CSNO", "CHID CHTM CHST", None),
    "ROUT": ("RTNO", "APCD SCAT SCDT SADC SDDC", None),
    "ERUT": ("RTNO", "APCD SCAT SCDT SADC SDDC", None),
}
_OBJECTS = {"FDIV": "DDES DDIR TEXT", "FRET": "REID TEXT", "FLAB": "ARES TEXT"}
_TEXTS = "SRVT VIPF MAFL"


def _catalogue() -> dict[str, FieldSpec]:
    specs = [FieldSpec(tag, "scalar") for tag in _SCALARS.split()]
    specs += [FieldSpec(tag, "text") for tag in _TEXTS.split()]
    specs += [FieldSpec(tag, "object", attrs=frozenset(keys.split())) for tag, keys in _OBJECTS.items()]
    for tag, (seq_tag, keys, most) in _COLLECTIONS.items():
        attrs = frozenset([*keys.split(), *([seq_tag] if seq_tag else [])])
        specs.append(FieldSpec(tag, "collection", seq_tag, most, attrs))
    return {spec.tag: spec for spec in specs}


CATALOGUE = _catalogue()


def meta(kind: str = "FLOP", sub: str = "GTDT", extra: str = "") -> str:
    return (
        "<META><SNDR>AODB</SNDR><SEQN>42</SEQN><DTTM>20260909100200</DTTM>"
        f"<TYPE>{kind}</TYPE><STYP>{sub}</STYP>{extra}</META>"
    )


def run(document: str | bytes, encoding: str = "bytes", max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    payload = document if isinstance(document, bytes) else document.encode()
    return decode_message(payload, encoding, CATALOGUE, max_bytes=max_bytes)


def flop(fields: str, attributes: str = "") -> str:
    return f"<MSG>{meta()}<FLOP{attributes}><FLID>CA100</FLID>{fields}</FLOP></MSG>"


def flight(fields: str, attributes: str = "") -> dict[str, Any]:
    """The one flight of a FLOP message that decodes, without its FLID."""
    command = run(flop(fields, attributes))
    assert "error" not in command, command
    assert "unknown" not in command
    (only,) = command["flights"]
    assert only.pop("FLID") == "CA100"
    return dict(only)


def refused(document: str | bytes, encoding: str = "bytes", max_bytes: int = MAX_BYTES) -> str:
    """Reason of a message whose META could be read and whose rest is wrong; not a matter of size."""
    command = run(document, encoding, max_bytes)
    assert set(command) == {"meta", "error"}, command
    assert command["error"]["capacity"] is False
    return str(command["error"]["reason"])


def too_big(document: str | bytes, max_bytes: int = MAX_BYTES) -> str:
    command = run(document, max_bytes=max_bytes)
    assert set(command) == {"meta", "error"}, command
    assert command["error"]["capacity"] is True
    return str(command["error"]["reason"])


def unreadable(document: str | bytes, encoding: str = "bytes", max_bytes: int = MAX_BYTES) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        run(document, encoding, max_bytes)
    return caught.value


class TestExamplesOfTheContract:
    def test_flop(self) -> None:
        document = """<MSG>
  <META><SNDR>AODB</SNDR><SEQN>42</SEQN><DTTM>20260909100200</DTTM><TYPE>FLOP</TYPE><STYP>GTDT</STYP></META>
  <FLOP><FLID>CA100</FLID>
    <GTDT GTNO="1"><GATE>A1</GATE><GTYP>D</GTYP></GTDT><GTDT GTNO="3" GATE="B2" GTYP="I"/></FLOP></MSG>"""
        items = [{"GTNO": "1", "GATE": "A1", "GTYP": "D"}, {"GTNO": "3", "GATE": "B2", "GTYP": "I"}]
        assert run(document) == {
            "meta": {"SNDR": "AODB", "SEQN": "42", "DTTM": "20260909100200", "TYPE": "FLOP", "STYP": "GTDT"},
            "flights": [{"FLID": "CA100", "replace": {"GTDT": items}}],
        }

    def test_schedule(self) -> None:
        document = f"""<MSG>{meta("SCHD", "DNLD")}<SCHD><RECS>1</RECS><FDAY>09SEP26</FDAY>
    <FLTR><FLID>900001</FLID><ALCD>ZZ</ALCD><FLNO>ZZ1001</FLNO><MVIN>D</MVIN><SODT>09SEP260710</SODT>
      <ROUT RTNO="1"><APCD>XIY</APCD><SCAT>09SEP260945</SCAT></ROUT>
      <DELY CODE="RA" DURA="0045">late inbound</DELY></FLTR></SCHD></MSG>"""
        command = run(document)
        assert command["schedule"] == {"RECS": "1", "FDAY": "09SEP26"}
        assert command["flights"] == [
            {
                "FLID": "900001",
                "set": {"ALCD": "ZZ", "FLNO": "ZZ1001", "MVIN": "D", "SODT": "09SEP260710"},
                "replace": {
                    "ROUT": [{"RTNO": "1", "APCD": "XIY", "SCAT": "09SEP260945"}],
                    "DELY": [{"CODE": "RA", "DURA": "0045", "TEXT": "late inbound"}],
                },
            }
        ]

    def test_command(self) -> None:
        fields = '<STD>09SEP260710</STD><FDIV DDES="HKG"/><FRET/><GTDT GTNO="1" GATE="A1" GTYP="D"/>'
        assert flight(fields) == {
            "set": {"STD": "09SEP260710", "FDIV": {"DDES": "HKG"}},
            "clear": ["FRET"],
            "replace": {"GTDT": [{"GTNO": "1", "GATE": "A1", "GTYP": "D"}]},
        }


class TestMeta:
    def test_values_are_trimmed_strings_and_only_what_was_sent_is_there(self) -> None:
        document = "<MSG><META><TYPE> \t\r\nLDM\n</TYPE><STYP>X</STYP><SEQN>000123</SEQN></META></MSG>"
        assert run(document) == {"meta": {"TYPE": "LDM", "STYP": "X", "SEQN": "000123"}}

    def test_empty_sender_sequence_and_time_are_left_to_sql(self) -> None:
        document = "<MSG><META><TYPE>LDM</TYPE><STYP>X</STYP><SNDR/><SEQN> </SEQN><DTTM></DTTM></META></MSG>"
        assert run(document)["meta"] == {"TYPE": "LDM", "STYP": "X", "SNDR": "", "SEQN": "", "DTTM": ""}

    def test_type_and_subtype_are_taken_exactly_as_written(self) -> None:
        assert run(f"<MSG>{meta('flop', 'gtDT')}<FLOP><FLID>A</FLID></FLOP></MSG>") == {
            "meta": {"SNDR": "AODB", "SEQN": "42", "DTTM": "20260909100200", "TYPE": "flop", "STYP": "gtDT"}
        }

    def test_other_children_and_all_attributes_are_ignored(self) -> None:
        others = "<RCVR>X</RCVR><SEQ1><SEQN>9</SEQN></SEQ1>"
        body = f"<META a='1' TYPE='SCHD'>{others}<TYPE b='2'>LDM</TYPE><STYP>S</STYP></META>"
        assert run(f"<MSG x='1' TYPE='y'>{body}</MSG>") == {"meta": {"TYPE": "LDM", "STYP": "S"}}

    @pytest.mark.parametrize("tag", ["SNDR", "SEQN", "DTTM", "TYPE", "STYP"])
    def test_a_field_twice_makes_meta_unreadable(self, tag: str) -> None:
        twice = "<META>" + "".join(f"<{t}>1</{t}>" for t in ["SNDR", "SEQN", "DTTM", "TYPE", "STYP", tag]) + "</META>"
        assert unreadable(f"<MSG>{twice}</MSG>").reason == f"META/{tag} twice"

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("<META><STYP>X</STYP></META>", "META/TYPE is missing or empty"),
            ("<META><TYPE>X</TYPE></META>", "META/STYP is missing or empty"),
            ("<META><TYPE> </TYPE><STYP>X</STYP></META>", "META/TYPE is missing or empty"),
            ("<META><TYPE>X</TYPE><STYP/></META>", "META/STYP is missing or empty"),
            ("<META/>", "META/TYPE is missing or empty"),
            ("", "the message has no META"),
            ("<FLOP><META><TYPE>X</TYPE><STYP>X</STYP></META></FLOP>", "the message has no META"),
            ("<META><TYPE><A/></TYPE><STYP>X</STYP></META>", "META/TYPE has elements of its own"),
        ],
    )
    def test_without_type_and_subtype_nothing_can_be_routed(self, body: str, reason: str) -> None:
        error = unreadable(f"<MSG>{body}</MSG>")
        assert (error.reason, error.capacity) == (reason, False)

    def test_a_field_with_elements_is_refused_but_an_ignore_rule_can_still_win(self) -> None:
        document = "<MSG><META><SNDR>A<B/></SNDR><TYPE>LDM</TYPE><STYP>X</STYP></META></MSG>"
        assert refused(document) == "META/SNDR has elements of its own"
        assert run(document)["meta"]["TYPE"] == "LDM"

    @pytest.mark.parametrize("kind", ["FLOP", "LDM"])
    def test_a_second_meta_is_refused(self, kind: str) -> None:
        assert refused(f"<MSG>{meta(kind)}{meta(kind)}</MSG>") == "a second META"

    @pytest.mark.parametrize("document", ["<MESG/>", "<msg/>", f"<X><MSG>{meta()}</MSG></X>"])
    def test_another_root_is_refused(self, document: str) -> None:
        assert unreadable(document).reason == "the root element is not MSG"

    def test_meta_may_stand_behind_the_body(self) -> None:
        record = "<FLOP><FLID>A</FLID><STD>1</STD></FLOP>"
        assert run(f"<MSG>{record}{meta()}</MSG>") == run(f"<MSG>{meta()}{record}</MSG>")

    def test_what_is_wrong_before_meta_does_not_hide_it(self) -> None:
        late = "<FLOP><STD>1</STD></FLOP>"
        assert refused(f"<MSG>{late}{meta()}</MSG>") == "FLOP record 1: FLID is missing"
        assert refused(f"<MSG>text{meta()}</MSG>") == "text between the elements"
        assert refused(f"<MSG><FLOP FLID='A'>x</FLOP>{meta()}<FLOP/></MSG>").startswith("FLOP record 1 (FLID A): ")
        assert refused(f"<MSG><FLOP FLID='A'/>{meta()}<FLOP/></MSG>") == "FLOP record 2: FLID is missing"
        assert refused(f"<MSG>{meta('LDM')}<A/>{meta('LDM')}</MSG>") == "a second META"
        assert refused(f"<MSG><A/>{meta('LDM')}{meta('LDM')}</MSG>") == "a second META"
        assert run(f"<MSG>text<LDM/>{meta('LDM')}</MSG>") == {"meta": run(f"<MSG>{meta('LDM')}</MSG>")["meta"]}


class TestEmptyAndBroken:
    @pytest.mark.parametrize("document", ["", " \n ", "<MSG>", "<MSG><META>", "plain text", "{}", "\0", "<MSG>\x01"])
    def test_no_document_is_refused_with_a_position(self, document: str) -> None:
        assert unreadable(document).reason.startswith("not well-formed XML at line ")

    def test_the_position_counts_the_declaration(self) -> None:
        document = "\n<?xml version='1.0' encoding='GBK'?><MSG><META></MSG>".encode("gbk")
        assert unreadable(document).reason == "not well-formed XML at line 2, column 49: mismatched tag"

    @pytest.mark.parametrize("kind", ["FLOP", "SCHD", "FDEL", "LDM", "unheard"])
    def test_xml_that_breaks_after_meta_leaves_meta(self, kind: str) -> None:
        for tail in [
            "",
            "<A>",
            "<A></B>",
            "<A/></MSG><MSG/>",
            "&nbsp;</MSG>",
            "</MSG>tail",
            "<A a='1' a='2'/></MSG>",
        ]:
            command = run(f"<MSG>{meta(kind)}{tail}")
            assert command["meta"]["TYPE"] == kind
            assert command["error"]["reason"].startswith("not well-formed XML at line 1, column "), tail

    def test_broken_xml_inside_a_record_names_the_flight(self) -> None:
        reason = refused(f"<MSG>{meta()}<FLOP><FLID>A1</FLID></FLOP><FLOP><FLID>B7</FLID><STD></FLOP></MSG>")
        assert reason.startswith("FLOP record 2 (FLID B7): not well-formed XML at line 1, column ")
        assert reason.endswith(": mismatched tag")

    def test_text_that_is_pending_when_the_xml_breaks_does_not_hide_meta(self) -> None:
        assert refused(f"<MSG>{meta()}pending&x;</MSG>").endswith("undefined entity")
        assert refused(f"<MSG>{meta()}<FLOP><FLID>A</FLID>pending<").startswith("FLOP record 1 (FLID A): ")

    def test_an_undefined_entity_is_refused_without_its_name(self) -> None:
        assert "SECRET" not in refused(flop("<REMC>&SECRET;</REMC>"))


class TestAttacks:
    @pytest.mark.parametrize(
        "doctype",
        [
            "<!DOCTYPE MSG>",
            '<!DOCTYPE MSG SYSTEM "http://127.0.0.1:9/x.dtd">',
            '<!DOCTYPE MSG [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE MSG [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
            '<!DOCTYPE MSG [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p;]>',
        ],
    )
    @pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
    def test_a_dtd_is_refused_in_any_encoding(self, doctype: str, codec: str) -> None:
        document = doctype + flop("<REMC>&x;</REMC>")
        assert unreadable(document.encode(codec)).reason == "a DTD (DOCTYPE) is not accepted"

    def test_a_dtd_after_the_root_is_no_xml(self) -> None:
        assert refused(flop("") + "<!DOCTYPE MSG>").startswith("not well-formed XML")

    def test_depth_20_is_accepted_and_21_is_not(self) -> None:
        # MSG, FLOP and QQQQ are three levels.
        assert flight("<QQQQ>" + "<a>" * 17 + "</a>" * 17 + "</QQQQ>") == {"unknown": ["QQQQ"]}
        too_deep = "<QQQQ>" + "<a>" * 18 + "</a>" * 18 + "</QQQQ>"
        assert refused(flop(too_deep)) == "FLOP record 1 (FLID CA100): elements are nested deeper than 20"

    def test_depth_is_checked_in_messages_of_any_type(self) -> None:
        assert "nested deeper" in refused(f"<MSG>{meta('LDM')}" + "<a>" * 20 + "</a>" * 20 + "</MSG>")
        assert set(run(f"<MSG>{meta('LDM')}" + "<a>" * 19 + "</a>" * 19 + "</MSG>")) == {"meta"}

    @pytest.mark.parametrize("inside", [True, False])
    def test_depth_before_the_end_of_meta_does_not_hide_meta(self, inside: bool) -> None:
        deep = "<a>" * 30 + "</a>" * 30
        document = f"<MSG>{meta('LDM', extra=deep)}</MSG>" if inside else f"<MSG>{deep}{meta('LDM')}</MSG>"
        assert refused(document) == "elements are nested deeper than 20"

    @pytest.mark.parametrize("start", ["<MSG>", "<MSG><META>"])
    def test_an_abyss_before_meta_is_left_at_once(self, start: str) -> None:
        assert unreadable(start + "<a>" * 100_000).reason == "elements are nested deeper than 20"

    def test_a_long_unknown_name_is_shortened_and_not_multiplied(self) -> None:
        long = "L" * 100_000
        attributes = " ".join(f'a{n}="1"' for n in range(1000))
        (unknown, *others) = flight(f"<SRVT><{long} {attributes}/></SRVT>")["unknown"]
        assert len(others) == 999
        assert unknown == "SRVT/" + "L" * 64 + "…/@a0"

    def test_a_reason_is_at_most_4_kb_of_valid_utf_8(self) -> None:
        error = DecodeError("登" * 3000)
        assert error.reason == "登" * 1365
        assert str(error) == error.reason


class TestSize:
    def test_the_limit_counts_bytes_and_is_inclusive(self) -> None:
        document = flop("<REMC>登机口</REMC>").encode()
        assert "flights" in run(document, max_bytes=len(document))
        reason = too_big(document, max_bytes=len(document) - 1)
        assert reason == f"capacity: the message is over the limit of {len(document) - 1} bytes (wire.max_bytes)"

    def test_meta_within_the_limit_is_found(self) -> None:
        document = f"<MSG>{meta('LDM')}" + "<X></Y>" * 100
        assert run(document, max_bytes=300)["meta"]["TYPE"] == "LDM"
        assert "over the limit" in too_big(document, max_bytes=300)

    def test_without_meta_within_the_limit_it_is_unreadable(self) -> None:
        error = unreadable("<MSG>" + " " * 500 + meta() + "</MSG>", max_bytes=100)
        assert error.capacity is True
        assert error.reason == "capacity: the message is over the limit of 100 bytes (wire.max_bytes)"

    def test_the_limit_may_cut_a_character(self) -> None:
        document = f"<MSG>{meta('LDM')}登".encode()
        for cut in (1, 2, 3):
            assert "over the limit" in too_big(document + b"</MSG>", max_bytes=len(document) - 3 + cut)

    @pytest.mark.parametrize(("tag", "most"), [("GTDT", 99), ("CKDT", 99), ("CLDT", 99), ("PSDT", 9)])
    def test_max_items(self, tag: str, most: int) -> None:
        seq_tag = CATALOGUE[tag].seq_tag
        items = [f'<{tag} {seq_tag}="{n}"/>' for n in range(1, most + 2)]
        assert len(flight("".join(items[:most]))["replace"][tag]) == most
        assert too_big(flop("".join(items))) == (f"FLOP record 1 (FLID CA100): {tag}: capacity: more than {most} items")

    def test_collections_without_a_limit_have_none(self) -> None:
        assert len(flight('<DELY CODE="1"/>' * 500)["replace"]["DELY"]) == 500

    def test_a_flid_over_20_characters(self) -> None:
        exactly = "登" * 20
        assert run(f"<MSG>{meta()}<FLOP><FLID>{exactly}</FLID></FLOP></MSG>")["flights"] == [{"FLID": exactly}]
        reason = too_big(f"<MSG>{meta()}<FLOP><FLID>{exactly}x</FLID></FLOP></MSG>")
        assert reason == "FLOP record 1: capacity: FLID is over 20 characters"


class TestBytes:
    def test_chinese_text_in_every_encoding(self) -> None:
        document = flop("<REMC>登机口变更</REMC>")
        expected = run(document)
        assert expected["flights"][0]["set"] == {"REMC": "登机口变更"}
        for payload in (
            codecs.BOM_UTF8 + document.encode(),
            document.encode("utf-16"),
            document.encode("utf-16-le"),
            f"\n<?xml version='1.0' encoding='GBK'?>{document}".encode("gbk"),
            f"<?xml version='1.0' encoding='gb2312'?>\n{document}".encode("gb2312"),
        ):
            assert run(payload) == expected
        assert run(f"<?xml version='1.0' encoding='GBK'?>{document}", "text") == expected

    def test_undecodable_bytes_in_a_record_name_offset_and_flight(self) -> None:
        start = flop("<REMC>").partition("</FLOP>")[0].encode()
        reason = refused(start + b"\xff</REMC></FLOP></MSG>")
        assert reason == f"FLOP record 1 (FLID CA100): the bytes at offset {len(start)} are not UTF-8"

    def test_undecodable_bytes_before_the_end_of_meta(self) -> None:
        assert unreadable(b"<MSG><META><TYPE>\xff").reason == "the bytes at offset 17 are not UTF-8"

    def test_undecodable_bytes_after_the_end_are_not_overlooked(self) -> None:
        document = flop("").encode()
        assert refused(document + b"\xff") == f"the bytes at offset {len(document)} are not UTF-8"

    def test_a_broken_character_wins_over_a_broken_shape_before_it(self) -> None:
        reason = refused(flop("<STD>1</STD><STD>1</STD>").encode() + b"\xff")
        assert reason.endswith("are not UTF-8")
        assert "FLID" not in reason

    def test_a_refused_encoding_leaves_meta_unread(self) -> None:
        document = f"<?xml version='1.0' encoding='latin1'?>{flop('')}"
        assert unreadable(document).reason == "encoding latin1 is not accepted"

    def test_ignored_kinds_with_a_bad_body_keep_their_meta(self) -> None:
        assert run(f"<MSG>{meta('LDM')}<LDM>".encode() + b"\xff")["meta"]["TYPE"] == "LDM"


class TestRecords:
    def test_schedule_takes_both_record_tags_in_order(self) -> None:
        body = "<SCHD><FLGT><FLID>A</FLID></FLGT><RECS>2</RECS><FLTR FLID='B'/></SCHD>"
        command = run(f"<MSG>{meta('SCHD', 'DNLD')}{body}</MSG>")
        assert command["flights"] == [{"FLID": "A"}, {"FLID": "B"}]
        assert command["schedule"] == {"RECS": "2"}

    def test_flop_siblings_in_order_even_for_one_flight(self) -> None:
        body = "<FLOP><FLID>B</FLID></FLOP><FLOP><FLID>A</FLID></FLOP><FLOP><FLID>B</FLID><STD>1</STD></FLOP>"
        flights = run(f"<MSG>{meta()}{body}</MSG>")["flights"]
        assert flights == [{"FLID": "B"}, {"FLID": "A"}, {"FLID": "B", "set": {"STD": "1"}}]

    def test_deletion_in_both_forms(self) -> None:
        for kind in ("FLOP", "FDEL"):
            command = run(f"<MSG>{meta(kind, 'FDEL')}<FLOP><FLID>A</FLID><FDEL>x</FDEL></FLOP></MSG>")
            assert command["flights"] == [{"FLID": "A"}]
        assert run(f"<MSG>{meta('FDEL', 'X')}<FDEL><FLID>A</FLID></FDEL></MSG>")["flights"] == [{"FLID": "A"}]

    def test_the_deletion_marker_hides_nothing(self) -> None:
        marked = f"<MSG>{meta('FLOP', 'FDEL')}<FLOP><FLID>A</FLID><FDEL a='1'><b/></FDEL></FLOP></MSG>"
        assert run(marked)["flights"] == [{"FLID": "A", "unknown": ["FDEL/@a", "FDEL/b"]}]
        assert flight("<FDEL/>") == {"unknown": ["FDEL"]}
        body = "<SCHD><FLTR><FLID>A</FLID><FDEL/></FLTR></SCHD>"
        assert run(f"<MSG>{meta('SCHD', 'DNLD')}{body}</MSG>")["flights"] == [{"FLID": "A", "unknown": ["FDEL"]}]

    @pytest.mark.parametrize(
        ("kind", "body", "unknown"),
        [
            ("SCHD", "<FLOP><FLID>A</FLID></FLOP><FLTR><FLID>A</FLID></FLTR>", ["MSG/FLOP", "MSG/FLTR"]),
            (
                "FLOP",
                "<SCHD><FLTR><FLID>A</FLID></FLTR></SCHD><FLTR/><FDEL/>",
                ["MSG/FDEL", "MSG/FLTR", "MSG/SCHD"],
            ),
            ("FDEL", "<SCHD/><A/><A/>", ["MSG/A", "MSG/SCHD"]),
            ("SCHD", "<SCHD V='1'><X/><FLOP/></SCHD>", ["SCHD/@V", "SCHD/FLOP", "SCHD/X"]),
            ("SCHD", "<SCHD><RECS a='1'>0<b/></RECS></SCHD>", ["SCHD/RECS/@a", "SCHD/RECS/b"]),
        ],
    )
    def test_what_does_not_belong_to_the_type_is_named(self, kind: str, body: str, unknown: list[str]) -> None:
        command = run(f"<MSG>{meta(kind)}{body}</MSG>")
        assert command["flights"] == []
        assert command["unknown"] == unknown

    @pytest.mark.parametrize("kind", ["SCHD", "FLOP", "FDEL"])
    def test_flights_are_there_even_without_a_record(self, kind: str) -> None:
        assert set(run(f"<MSG>{meta(kind)}</MSG>")) == {"meta", "flights"}

    @pytest.mark.parametrize("kind", ["LDM", "BASE", "flop", "Schd", "zzzz"])
    def test_the_body_of_another_type_is_not_decoded(self, kind: str) -> None:
        document = f"<MSG>{meta(kind)} text <FLOP/><SCHD/><SCHD/><X>y</X> more</MSG>"
        assert set(run(document)) == {"meta"}

    def test_recs_and_fday_as_attribute_or_element(self) -> None:
        for body in (
            "<SCHD RECS='1' FDAY='09SEP26'/>",
            "<SCHD RECS='1'><FDAY> 09SEP26\n</FDAY></SCHD>",
            "<SCHD RECS='1'><RECS>1</RECS><FDAY>09SEP26</FDAY></SCHD>",
        ):
            command = run(f"<MSG>{meta('SCHD', 'DNLD')}{body}</MSG>")
            assert command["schedule"] == {"RECS": "1", "FDAY": "09SEP26"}
        assert run(f"<MSG>{meta('SCHD', 'DNLD')}<SCHD><RECS/></SCHD></MSG>")["schedule"] == {"RECS": ""}

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("<SCHD RECS='1'><RECS>2</RECS></SCHD>", "SCHD/RECS: attribute and element differ"),
            ("<SCHD><RECS>1</RECS><RECS>1</RECS></SCHD>", "SCHD/RECS twice"),
            ("<SCHD><FDAY/><FDAY/></SCHD>", "SCHD/FDAY twice"),
            ("<SCHD/><SCHD/>", "a second SCHD"),
            ("<SCHD>x</SCHD>", "text between the elements"),
            ("<SCHD/>x", "text between the elements"),
            ("x<SCHD/>", "text between the elements"),
            ("<SCHD><FLTR/></SCHD>", "FLTR record 1: FLID is missing"),
            (
                "<SCHD><FLTR FLID='A'/><FLGT FLID='B'>x</FLGT></SCHD>",
                "FLGT record 2 (FLID B): text between the elements",
            ),
        ],
    )
    def test_a_broken_schedule_is_refused(self, body: str, reason: str) -> None:
        assert refused(f"<MSG>{meta('SCHD', 'DNLD')}{body}</MSG>") == reason

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            ("<FLOP/>", "FLID is missing"),
            ("<FLOP><FLID/></FLOP>", "FLID is empty"),
            ("<FLOP><FLID> \t\n</FLID></FLOP>", "FLID is empty"),
            ("<FLOP FLID=''/>", "FLID is empty"),
            ("<FLOP FLID=' '/>", "FLID is empty"),
            ("<FLOP><FLID><A/></FLID></FLOP>", "FLID is missing"),
            ("<FLOP FLID='A'><FLID>B</FLID></FLOP>", "(FLID A): FLID: attribute and element differ"),
            ("<FLOP><FLID>A</FLID><FLID>A</FLID></FLOP>", "(FLID A): FLID twice in one record"),
            ("<FLOP>x<FLID>A</FLID></FLOP>", "text between the elements"),
            ("<FLOP><FLID>A</FLID>\u00a0</FLOP>", "(FLID A): text between the elements"),
            ("<FLOP><FLID>A</FLID><![CDATA[x]]></FLOP>", "(FLID A): text between the elements"),
        ],
    )
    def test_a_broken_record_is_refused(self, record: str, reason: str) -> None:
        text = refused(f"<MSG>{meta()}<FLOP><FLID>ok</FLID></FLOP>{record}</MSG>")
        assert text.startswith("FLOP record 2")
        assert text.endswith(reason)

    def test_flid_as_attribute_and_element_may_agree(self) -> None:
        assert flight("", " FLID='CA100'") == {}

    def test_a_flid_with_control_characters_stays_out_of_the_reason(self) -> None:
        reason = refused(f"<MSG>{meta()}<FLOP FLID='A&#10;B'>x</FLOP></MSG>")
        assert reason == "FLOP record 1 (FLID A?B): text between the elements"

    def test_blanks_comments_and_instructions_are_fine_anywhere(self) -> None:
        gap = " \n\t<!-- SECRET --><?pi x?>\r\n"
        tags = [
            "<MSG>",
            meta(),
            "<FLOP>",
            "<FLID>CA100</FLID>",
            "<STD>1",
            "2</STD>",
            "<GTDT>",
            "<GATE>A",
            "1</GATE>",
        ]
        document = gap + gap.join([*tags, "</GTDT>", "</FLOP>", "</MSG>"]) + gap
        (only,) = run(document)["flights"]
        assert only["set"]["STD"].split() == ["1", "2"]
        assert only["replace"]["GTDT"][0]["GATE"].split() == ["A", "1"]
        clean = flop("<STD>1<!-- x -->2<?pi?>3</STD>")
        assert run(clean)["flights"][0]["set"] == {"STD": "123"}


class TestScalars:
    def test_text_is_trimmed_and_attributes_are_kept_as_sent(self) -> None:
        assert flight("<STD> \t\r\n07 10\n </STD>", " REMC='  a  '")["set"] == {
            "STD": "07 10",
            "REMC": "  a  ",
        }

    def test_only_blank_tab_and_line_ends_are_trimmed(self) -> None:
        assert flight("<STD>\u00a0\u3000x\u2003</STD>")["set"] == {"STD": "\u00a0\u3000x\u2003"}

    def test_an_empty_scalar_is_set(self) -> None:
        assert flight("<CNCL/><REMC> </REMC>", " STD=''")["set"] == {"CNCL": "", "REMC": "", "STD": ""}

    def test_attribute_and_element_may_agree(self) -> None:
        assert flight("<STD>1</STD>", " STD='1'") == {"set": {"STD": "1"}}

    @pytest.mark.parametrize(
        ("fields", "attributes", "reason"),
        [
            ("<STD>1</STD>", " STD='2'", "STD: attribute and element differ"),
            ("<STD>1</STD>", " STD=' 1'", "STD: attribute and element differ"),
            ("<STD/>", " STD='1'", "STD: attribute and element differ"),
            ("<STD>1</STD><STD>1</STD>", "", "STD twice in one record"),
            ("<STD>1</STD><STD>2</STD>", "", "STD twice in one record"),
            ("<STD/><STD/>", "", "STD twice in one record"),
            ("<STD><A/></STD><STD>1</STD>", "", "STD twice in one record"),
        ],
    )
    def test_contradictions_are_refused(self, fields: str, attributes: str, reason: str) -> None:
        assert refused(flop(fields, attributes)) == f"FLOP record 1 (FLID CA100): {reason}"

    def test_attributes_and_elements_of_a_scalar_are_unknown(self) -> None:
        assert flight("<STD A='1'>x<B><C D='1'/></B>y</STD>") == {
            "set": {"STD": "xy"},
            "unknown": ["STD/@A", "STD/B"],
        }
        assert flight("<STD> <B>x</B> </STD>") == {"unknown": ["STD/B"]}
        assert flight("<STD A='1'/>") == {"set": {"STD": ""}, "unknown": ["STD/@A"]}

    def test_references_and_cdata_are_text(self) -> None:
        assert flight("<REMC>&lt;a&gt; &amp; <![CDATA[<b>&x;]]>&#x767B;</REMC>")["set"] == {"REMC": "<a> & <b>&x;登"}

    def test_a_long_value_arrives_whole(self) -> None:
        value = "登x\n" * 100_000 + "end"
        assert flight(f"<REMC>{value}</REMC>")["set"]["REMC"] == value


class TestUnknown:
    @pytest.mark.parametrize(
        ("fields", "attributes", "unknown"),
        [
            ("<QQQQ/>", "", ["QQQQ"]),
            ("<QQQQ a='1'>x<STD>1</STD><QQQQ/></QQQQ><QQQQ/>", "", ["QQQQ"]),
            ("<std>1</std>", "", ["std"]),
            ("<FDAY>1</FDAY><STATE_VERSION>1</STATE_VERSION>", "", ["FDAY", "STATE_VERSION"]),
            ("<Z/><A/>", " b='1' C='2'", ["@C", "@b", "A", "Z"]),
            ("", " GTDT='1' FDIV='x' SRVT='y'", ["@FDIV", "@GTDT", "@SRVT"]),
            ("<FLID_/>", "", ["FLID_"]),
        ],
    )
    def test_names_are_collected_once_and_sorted(self, fields: str, attributes: str, unknown: list[str]) -> None:
        assert flight(fields, attributes) == {"unknown": unknown}

    def test_what_is_known_beside_it_is_still_there(self) -> None:
        item = "<GTDT GTNO='1' X='1'><GATE Y='1'>A<Z/></GATE><W><GTYP>D</GTYP></W></GTDT>"
        fields = f"<QQQQ>1</QQQQ><STD>1</STD>{item}"
        assert flight(fields) == {
            "set": {"STD": "1"},
            "replace": {"GTDT": [{"GTNO": "1", "GATE": "A"}]},
            "unknown": ["GTDT/GATE/@Y", "GTDT/GATE/Z", "GTDT/W", "GTDT/X", "QQQQ"],
        }

    def test_unknown_keys_of_zero_items_are_named_too(self) -> None:
        assert flight("<GTDT GTNO='0' X='1'/><GTDT><GTNO>0</GTNO><Y/></GTDT>") == {
            "clear": ["GTDT"],
            "unknown": ["GTDT/X", "GTDT/Y"],
        }

    def test_names_behind_a_record_belong_to_the_message(self) -> None:
        body = "<SCHD><FLTR FLID='A'><X/></FLTR><RECS Y='1'>1</RECS></SCHD>"
        command = run(f"<MSG>{meta('SCHD', 'DNLD')}{body}</MSG>")
        assert command["flights"] == [{"FLID": "A", "unknown": ["X"]}]
        assert command["unknown"] == ["SCHD/RECS/@Y"]

    def test_names_belong_to_their_flight(self) -> None:
        body = "<FLOP><FLID>A</FLID><X/></FLOP><FLOP><FLID>B</FLID></FLOP><Y/><FLOP><FLID>C</FLID><Z/></FLOP>"
        command = run(f"<MSG>{meta()}{body}</MSG>")
        assert command["flights"] == [
            {"FLID": "A", "unknown": ["X"]},
            {"FLID": "B"},
            {"FLID": "C", "unknown": ["Z"]},
        ]
        assert command["unknown"] == ["MSG/Y"]


class TestCollections:
    def test_order_and_duplicates_are_kept(self) -> None:
        fields = "<GTDT GTNO='3' GATE='B'/><STD>1</STD><GTDT GTNO='1' GATE='A'/><GTDT GTNO='3' GATE='B'/>"
        items = [{"GTNO": "3", "GATE": "B"}, {"GTNO": "1", "GATE": "A"}, {"GTNO": "3", "GATE": "B"}]
        assert flight(fields)["replace"]["GTDT"] == items

    @pytest.mark.parametrize("tag", list(_COLLECTIONS))
    def test_every_key_of_every_collection_as_attribute_and_element(self, tag: str) -> None:
        keys = sorted(CATALOGUE[tag].attrs)
        item = {key: f"v{number}" for number, key in enumerate(keys, 1)}
        attributes = "".join(f" {key}='{value}'" for key, value in item.items())
        elements = "".join(f"<{key}>{value}</{key}>" for key, value in item.items())
        assert flight(f"<{tag}{attributes}/>") == {"replace": {tag: [item]}}
        assert flight(f"<{tag}>{elements}</{tag}>") == {"replace": {tag: [item]}}
        assert flight(f"<{tag}{attributes}>{elements}</{tag}>") == {"replace": {tag: [item]}}

    @pytest.mark.parametrize("empty", ["<GTDT/>", "<GTDT></GTDT>", "<GTDT> \n<!-- x --></GTDT>"])
    def test_one_empty_element_replaces_by_nothing(self, empty: str) -> None:
        assert flight(empty) == {"replace": {"GTDT": []}}

    @pytest.mark.parametrize(
        "items",
        [
            "<GTDT/><GTDT/>",
            "<GTDT/><GTDT GTNO='1'/>",
            "<GTDT GTNO='1'/><STD>1</STD><GTDT/>",
            "<GTDT GTNO='0'/><GTDT/>",
            "<DELY CODE='1'/><DELY/>",
        ],
    )
    def test_an_empty_element_among_others_is_refused(self, items: str) -> None:
        assert refused(flop(items)).endswith(": an empty element among others")

    def test_an_item_of_empty_or_unknown_keys_is_no_empty_element(self) -> None:
        assert flight("<GTDT GATE=''/>") == {"replace": {"GTDT": [{"GATE": ""}]}}
        assert flight("<GTDT><GATE/></GTDT>") == {"replace": {"GTDT": [{"GATE": ""}]}}
        assert flight("<GTDT X='1'/><GTDT><Y/></GTDT>")["replace"] == {"GTDT": [{}, {}]}

    @pytest.mark.parametrize("tag", [tag for tag, (seq_tag, _, _) in _COLLECTIONS.items() if seq_tag])
    def test_sequence_zero_in_every_item_clears(self, tag: str) -> None:
        seq = CATALOGUE[tag].seq_tag
        assert flight(f"<{tag} {seq}='0'/>") == {"clear": [tag]}
        assert flight(f"<{tag} {seq}='00'/><{tag}><{seq}> 0 </{seq}></{tag}><{tag} {seq}=' 000'/>") == {"clear": [tag]}
        wrong = refused(flop(f"<{tag} {seq}='1'/><{tag} {seq}='0'/>"))
        assert wrong == f"FLOP record 1 (FLID CA100): {tag}: items with {seq} 0 (clear) and others side by side"

    @pytest.mark.parametrize(
        "items",
        [
            "<GTDT GTNO='0'/><GTDT GTNO='1'/>",
            "<GTDT GTNO='0'/><GTDT GATE='A'/>",
            "<GTDT GTNO='0'/><GTDT GTNO='' GATE='A'/>",
            "<GTDT GATE='A'/><STD>1</STD><GTDT><GTNO>00</GTNO></GTDT>",
        ],
    )
    def test_zero_beside_another_or_a_missing_sequence_is_refused(self, items: str) -> None:
        assert refused(flop(items)).endswith("side by side")

    @pytest.mark.parametrize("value", ["", " ", "0 0", "01", "10", "0x0", "-0", "+0", "0.0", "٠", "０"])
    def test_only_ascii_zeros_are_zero(self, value: str) -> None:
        assert flight(f"<GTDT GTNO='{value}'/>") == {"replace": {"GTDT": [{"GTNO": value}]}}

    def test_a_collection_without_sequence_knows_no_zero(self) -> None:
        assert flight("<DELY CODE='0'/>") == {"replace": {"DELY": [{"CODE": "0"}]}}

    def test_own_text_is_the_key_text(self) -> None:
        expected = {"replace": {"DELY": [{"CODE": "RA", "TEXT": "late"}]}}
        assert flight("<DELY CODE='RA'> late\n</DELY>") == expected
        assert flight("<DELY>la<CODE>RA</CODE>te</DELY>") == expected
        assert flight("<DELY CODE='RA' TEXT='late'>late</DELY>") == expected
        assert flight("<DELY CODE='RA'><TEXT>late</TEXT>late</DELY>") == expected
        assert flight("<DELY>late</DELY>") == {"replace": {"DELY": [{"TEXT": "late"}]}}
        for wrong in ("<DELY TEXT='a'>b</DELY>", "<DELY><TEXT>a</TEXT>b</DELY>", "<DELY TEXT=''>b</DELY>"):
            assert refused(flop(wrong)).endswith("DELY: its own text and its key TEXT differ")

    def test_own_text_where_it_has_no_column_is_unknown(self) -> None:
        assert flight("<GTDT GTNO='1'>x</GTDT>") == {
            "replace": {"GTDT": [{"GTNO": "1"}]},
            "unknown": ["GTDT/TEXT"],
        }
        assert flight("<GTDT>x</GTDT>") == {"replace": {"GTDT": [{}]}, "unknown": ["GTDT/TEXT"]}
        assert flight("<GTDT TEXT='x'/>") == {"replace": {"GTDT": [{}]}, "unknown": ["GTDT/TEXT"]}

    @pytest.mark.parametrize(
        ("item", "reason"),
        [
            ("<GTDT GATE='A'><GATE>B</GATE></GTDT>", "GTDT/GATE: attribute and element differ"),
            ("<GTDT GATE='A'><GATE/></GTDT>", "GTDT/GATE: attribute and element differ"),
            ("<GTDT><GATE>A</GATE><GATE>A</GATE></GTDT>", "GTDT/GATE twice in one element"),
            ("<GTDT><GATE/><GATE>A</GATE></GTDT>", "GTDT/GATE twice in one element"),
        ],
    )
    def test_contradictions_in_an_item_are_refused(self, item: str, reason: str) -> None:
        assert refused(flop(item)) == f"FLOP record 1 (FLID CA100): {reason}"

    def test_one_item_does_not_leak_into_the_next(self) -> None:
        fields = "<DELY CODE='1'><STRT>a</STRT>text</DELY><DELY><STRT>b</STRT></DELY><GTDT><GATE>A</GATE></GTDT>"
        assert flight(fields)["replace"] == {
            "DELY": [{"CODE": "1", "STRT": "a", "TEXT": "text"}, {"STRT": "b"}],
            "GTDT": [{"GATE": "A"}],
        }

    def test_a_key_with_elements_and_no_text_is_not_there(self) -> None:
        assert flight("<GTDT GTNO='1'><GATE><X/></GATE></GTDT>") == {
            "replace": {"GTDT": [{"GTNO": "1"}]},
            "unknown": ["GTDT/GATE/X"],
        }


class TestObjects:
    def test_the_whole_object_is_set_as_sent(self) -> None:
        assert flight("<FDIV DDES='HKG' DDIR=''> weather </FDIV>") == {
            "set": {"FDIV": {"DDES": "HKG", "DDIR": "", "TEXT": "weather"}}
        }
        assert flight("<FRET><REID>1</REID></FRET><FLAB>x</FLAB>")["set"] == {
            "FRET": {"REID": "1"},
            "FLAB": {"TEXT": "x"},
        }

    @pytest.mark.parametrize(
        "empty", ["<FDIV/>", "<FDIV DDES=''/>", "<FDIV DDES=''><DDIR> </DDIR></FDIV>", "<FDIV> </FDIV>"]
    )
    def test_nothing_but_empty_values_clears(self, empty: str) -> None:
        assert flight(empty) == {"clear": ["FDIV"]}

    def test_clear_is_sorted(self) -> None:
        assert flight("<GTDT GTNO='0'/><FRET/><FDIV/>") == {"clear": ["FDIV", "FRET", "GTDT"]}

    @pytest.mark.parametrize("body", [" X='1'/>", "><X/></FDIV>", " DDES='' X='1'/>", "><DDES><X/></DDES></FDIV>"])
    def test_an_object_that_says_only_unknown_things_is_no_clear(self, body: str) -> None:
        (name,) = flight(f"<FDIV{body}")["unknown"]
        assert name in {"FDIV/X", "FDIV/DDES/X"}
        assert set(flight(f"<FDIV{body}")) == {"unknown"}

    def test_unknown_names_of_one_object_do_not_touch_another(self) -> None:
        assert flight("<FDIV X='1'/><FRET/>") == {"clear": ["FRET"], "unknown": ["FDIV/X"]}

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("<FDIV DDES='A'/><FDIV DDES='A'/>", "FDIV twice in one record"),
            ("<FDIV/><STD>1</STD><FDIV/>", "FDIV twice in one record"),
            ("<FDIV DDES='A'><DDES>B</DDES></FDIV>", "FDIV/DDES: attribute and element differ"),
            ("<FDIV TEXT='a'>b</FDIV>", "FDIV: its own text and its key TEXT differ"),
        ],
    )
    def test_contradictions_in_an_object_are_refused(self, body: str, reason: str) -> None:
        assert refused(flop(body)) == f"FLOP record 1 (FLID CA100): {reason}"


class TestTexts:
    @pytest.mark.parametrize(
        ("body", "value"),
        [
            ("<SRVT/>", ""),
            ("<SRVT> </SRVT>", ""),
            ("<SRVT> A, B \n</SRVT>", "A, B"),
            ("<SRVT>{}</SRVT>", "{}"),
            ("<SRVT CODE='A'>wheelchair</SRVT>", '[{"CODE":"A","TEXT":"wheelchair"}]'),
            ("<SRVT><NAME>登</NAME><CODE>A</CODE></SRVT>", '[{"CODE":"A","NAME":"登"}]'),
            ("<SRVT CODE='A'><CODE>A</CODE></SRVT>", '[{"CODE":"A"}]'),
            ("<SRVT CODE=''/>", '[{"CODE":""}]'),
            ("<SRVT><TEXT>x</TEXT></SRVT>", '[{"TEXT":"x"}]'),
            ("<SRVT>A</SRVT><SRVT>B</SRVT>", '[{"TEXT":"A"},{"TEXT":"B"}]'),
            ("<SRVT>B</SRVT><STD>1</STD><SRVT CODE='1'>A</SRVT>", '[{"TEXT":"B"},{"CODE":"1","TEXT":"A"}]'),
            ("<SRVT/><SRVT>A</SRVT>", '[{},{"TEXT":"A"}]'),
            ("<SRVT>A</SRVT><SRVT>A</SRVT><SRVT>A</SRVT>", '[{"TEXT":"A"},{"TEXT":"A"},{"TEXT":"A"}]'),
        ],
    )
    def test_text_as_sent_or_canonical_json(self, body: str, value: str) -> None:
        assert flight(body)["set"]["SRVT"] == value

    @pytest.mark.parametrize(
        "text",
        [
            '[{"B":"1","A":"2"}]',
            "[{}]",
            '[{"A":"\\u767b"}, {"A" : "x"} ]',
            '[{"A":"\\ud83d\\ude00"}]',
            '[{"A":"\\\\u0000"}]',
            '[{"A":"1"},\n{"B":"2"}]',
        ],
    )
    def test_a_json_list_of_flat_objects_is_kept_as_sent(self, text: str) -> None:
        assert flight(f"<VIPF>{text}</VIPF>") == {"set": {"VIPF": text}}

    @pytest.mark.parametrize(
        "text",
        [
            "[{",
            "[{x",
            '[{"A":1}]',
            '[{"A":null}]',
            '[{"A":NaN}]',
            '[{"A":{"B":"1"}}]',
            '[{"A":["1"]}]',
            '[{"A":"1"},"x"]',
            '[{"A":"1"},[]]',
            '[{"A":"1"}] x',
            '[{"A":"\\u0000"}]',
            '[{"\\u0000":"A"}]',
            '[{"A":"\\ud800"}]',
            '[{"\\udc00":"A"}]',
            '[{"A":"1","A":"2"}]',
            '[{"A":"a\tb"}]',
            '[{"A":' + "9" * 5000 + "}]",
            '[{"A":' * 20_000,
        ],
    )
    def test_what_only_looks_like_json_is_wrapped(self, text: str) -> None:
        value = flight(f"<VIPF>{text}</VIPF>")["set"]["VIPF"]
        assert json.loads(value) == [{"TEXT": text}]
        assert value == canonical_json([{"TEXT": text}])

    def test_the_same_child_twice_or_another_value_is_refused(self) -> None:
        for body, reason in (
            ("<SRVT><A>1</A><A>1</A></SRVT>", "SRVT/A twice in one element"),
            ("<SRVT A='1'><A>2</A></SRVT>", "SRVT/A: attribute and element differ"),
            ("<SRVT TEXT='1'>2</SRVT>", "SRVT: its own text and its key TEXT differ"),
        ):
            assert refused(flop(body)) == f"FLOP record 1 (FLID CA100): {reason}"

    def test_deeper_structure_is_unknown(self) -> None:
        assert flight("<SRVT><X A='1'>t<Y><Z/></Y></X></SRVT>") == {
            "set": {"SRVT": '[{"X":"t"}]'},
            "unknown": ["SRVT/X/@A", "SRVT/X/Y"],
        }


class TestNamespaces:
    def test_elements_and_attributes_count_by_local_name(self) -> None:
        fields = "<STD>1</STD><GTDT GTNO='1'><GATE>A</GATE></GTDT><FDIV DDES='H'/><SRVT><A>1</A></SRVT><Q/>"
        plain = flop(fields, " REMC='r'")
        assert run(plain.replace("<MSG>", "<MSG xmlns='urn:sis'>")) == run(plain)
        prefixed = plain.replace("</", "\0").replace("<", "<s:").replace("\0", "</s:").replace(" GTNO", " s:GTNO")
        prefixed = prefixed.replace(" REMC", " s:REMC").replace("<s:MSG>", "<s:MSG xmlns:s='urn:sis'>")
        assert run(prefixed) == run(plain)

    def test_schema_instance_attributes_are_ignored_everywhere(self) -> None:
        xsi = " xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='x' i:nil='true'"
        fields = "<FLID>A</FLID><STD>1</STD><GTDT/><FDIV/><SRVT>x</SRVT><DELY><CODE>1</CODE></DELY>"
        plain = f"<MSG>{meta()}<FLOP>{fields}</FLOP></MSG>"
        noisy = plain
        for tag in ("MSG", "META", "TYPE", "FLOP", "FLID", "STD", "SRVT", "DELY", "CODE"):
            noisy = noisy.replace(f"<{tag}>", f"<{tag}{xsi}>")
        noisy = noisy.replace("<GTDT/>", f"<GTDT{xsi}/>").replace("<FDIV/>", f"<FDIV{xsi}/>")
        assert noisy.count("i:nil") == 11
        assert run(noisy) == run(plain)
        schedule = f"<MSG>{meta('SCHD')}<SCHD{xsi}><RECS{xsi}>0</RECS></SCHD></MSG>"
        assert run(schedule)["schedule"] == {"RECS": "0"}
        assert "unknown" not in run(schedule)

    @pytest.mark.parametrize(
        "body", ["<GTDT xmlns:a='u' GATE='1' a:GATE='1'/>", "<GTDT xmlns:a='u' a:GATE='1' GATE='2'/>"]
    )
    def test_one_local_name_twice_is_refused(self, body: str) -> None:
        assert refused(flop(body)).endswith("attribute GATE twice in one element")

    def test_other_prefixed_attributes_are_not_ignored(self) -> None:
        assert flight("<STD xml:lang='en'>1</STD>")["unknown"] == ["STD/@lang"]

    def test_an_unbound_prefix_is_refused(self) -> None:
        assert refused(flop("<x:STD>1</x:STD>")).endswith("unbound prefix")


# -- properties ------------------------------------------------------------------------------------------

_VALUE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=8)
_TRIMMED = _VALUE.map(lambda value: value.strip(" \t\r\n"))
_GOOD = (
    f"<?xml version='1.0' encoding='UTF-8'?>\n<MSG>{meta('SCHD', 'DNLD')}<SCHD><RECS>2</RECS>"
    "<FLTR><FLID>A</FLID><STD>1</STD><GTDT GTNO='1'><GATE>登</GATE></GTDT>"
    "<FDIV DDES='H'>t</FDIV><SRVT A='1'/></FLTR><FLTR FLID='B'><DELY/><ERUT RTNO='0'/></FLTR></SCHD></MSG>"
).encode()


def check_shape(command: dict[str, Any]) -> None:
    """What every answer of the decoder has in common."""
    assert set(command) <= {"meta", "error", "schedule", "flights", "unknown"}
    assert command["meta"]["TYPE"]
    assert command["meta"]["STYP"]
    if "error" in command:
        assert set(command) == {"meta", "error"}
        assert command["error"]["reason"]
        assert len(command["error"]["reason"].encode()) <= 4096
        return
    for record in command.get("flights", []):
        assert 1 <= len(record["FLID"]) <= 20
        assert all(record.values()), "empty members are left out"
        assert not set(record.get("set", {})) & set(record.get("clear", []))
        assert not set(record.get("replace", {})) & set(record.get("clear", []))
    canonical_json(command).encode()


def attempt(payload: bytes, encoding: str = "bytes", max_bytes: int = MAX_BYTES) -> dict[str, Any] | None:
    try:
        command = run(payload, encoding, max_bytes)
    except DecodeError as error:
        refusal = error
    else:
        check_shape(command)
        return command
    assert refusal.reason
    assert len(refusal.reason.encode()) <= 4096
    return None


@given(st.binary(max_size=300), st.sampled_from(["bytes", "text"]), st.integers(0, 300))
def test_arbitrary_bytes_raise_nothing_but_decode_error(payload: bytes, encoding: str, max_bytes: int) -> None:
    attempt(payload, encoding, max_bytes)


@given(st.data())
def test_a_damaged_message_raises_nothing_but_decode_error(data: st.DataObject) -> None:
    payload = bytearray(data.draw(st.sampled_from([_GOOD, _GOOD.decode().replace("UTF-8", "UTF-16").encode("utf-16")])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 6))] = data.draw(
            st.binary(max_size=3)
            | st.sampled_from([b"<GTDT/>", b"</FLTR>", b"<META>", b"<!--", b"]]>", b"&#0;", b'"', b">"])
        )
    attempt(bytes(payload), data.draw(st.sampled_from(["bytes", "text"])))


_TAGS = "META TYPE STYP SCHD FLTR FLOP FDEL FLID RECS STD GTDT GATE GTNO DELY TEXT FDIV DDES SRVT QQQQ"
_ANY_TAG = st.sampled_from(_TAGS.split())
_ANY_ATTRIBUTES = st.dictionaries(_ANY_TAG, st.sampled_from(["", "0", "A"]), max_size=2)
_ANY_TREE: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["", " ", "x", "0"]),
    lambda inner: st.lists(
        st.builds(
            lambda tag, attrs, body: (
                f"<{tag}{''.join(f' {k}={quoteattr(v)}' for k, v in attrs.items())}>{body}</{tag}>"
            ),
            _ANY_TAG,
            _ANY_ATTRIBUTES,
            inner,
        ),
        max_size=4,
    ).map("".join),
    max_leaves=12,
)


@given(_ANY_TREE, st.sampled_from(["SCHD", "FLOP", "FDEL", "LDM"]), st.integers(0, 2))
def test_any_tree_gives_an_answer_and_never_loses_meta(tree: str, kind: str, place: int) -> None:
    body = {"SCHD": "<SCHD><FLTR>{}</FLTR></SCHD>", "FDEL": "<FDEL>{}</FDEL>"}.get(kind, "<FLOP>{}</FLOP>").format(tree)
    parts = [[meta(kind), body, tree], [body, meta(kind), tree], [tree, meta(kind), body]][place]
    document = f"<MSG>{''.join(parts)}</MSG>".encode()
    command = attempt(document)
    if b"<META" not in document.replace(meta(kind).encode(), b"") and b"<META" not in tree.encode():
        assert command is not None


@given(st.integers(0, len(_GOOD) - 1))
def test_a_message_that_breaks_off_is_never_a_command(length: int) -> None:
    command = attempt(_GOOD[:length])
    assert command is None or "error" in command


@given(_ANY_TREE, st.integers(1, 40))
def test_the_size_of_the_pieces_makes_no_difference(tree: str, piece: int) -> None:
    document = flop(tree).encode()
    whole = attempt(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "_PIECE", piece)
        assert attempt(document) == whole
        assert attempt(_GOOD) == run(_GOOD)


def _rendered(tag: str, pairs: dict[str, str], as_attributes: set[str], own: str = "") -> str:
    attributes = "".join(f" {key}={quoteattr(value)}" for key, value in pairs.items() if key in as_attributes)
    elements = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in pairs.items() if key not in as_attributes)
    return f"<{tag}{attributes}>{own}{elements}</{tag}>"


@given(st.data())
def test_attributes_and_elements_say_the_same(data: st.DataObject) -> None:
    scalars = data.draw(st.dictionaries(st.sampled_from(_SCALARS.split()), _TRIMMED, max_size=4))
    tag = data.draw(st.sampled_from(list(_COLLECTIONS)))
    keys = sorted(CATALOGUE[tag].attrs - {CATALOGUE[tag].seq_tag})
    items = data.draw(st.lists(st.dictionaries(st.sampled_from(keys), _TRIMMED, min_size=1), max_size=3))
    diversion = data.draw(st.dictionaries(st.sampled_from(["DDES", "DDIR", "TEXT"]), _TRIMMED))

    def some(pairs: dict[str, str]) -> set[str]:
        return data.draw(st.sets(st.sampled_from(sorted(pairs)))) if pairs else set()

    fields = "".join(_rendered(tag, item, some(item)) for item in items) + _rendered("FDIV", diversion, some(diversion))
    pairs = {"FLID": "F1", **scalars}
    document = f"<MSG>{meta()}{_rendered('FLOP', pairs, some(pairs), fields)}</MSG>"

    sets: dict[str, Any] = dict(scalars)
    if any(diversion.values()):
        sets["FDIV"] = diversion
    expected: dict[str, Any] = {"FLID": "F1"}
    if sets:
        expected["set"] = sets
    if not any(diversion.values()):
        expected["clear"] = ["FDIV"]
    if items:
        expected["replace"] = {tag: items}
    assert run(document)["flights"] == [expected]


@given(_VALUE)
def test_every_encoding_gives_the_same_command(value: str) -> None:
    document = flop(f"<REMC>{escape(value)}</REMC><SRVT A={quoteattr(value)}/>")
    expected = run(document)
    assert run(document, "text") == expected
    assert run(f"<?xml version='1.0' encoding='utf-16'?>{document}".encode("utf-16")) == expected
    assert run(f"<?xml version='1.0' encoding='GB18030'?>{document}".encode("gb18030")) == expected


@given(_ANY_TREE)
def test_reasons_never_show_values(tree: str) -> None:
    secret = "S3CRET"
    fields = tree.replace('"A"', f'"{secret}"').replace(">x<", f">{secret}<").replace(">0<", f">{secret}{secret}<")
    for document in (flop(fields), flop(fields) + "</", flop(fields).replace("</FLOP>", "&s;</FLOP>")):
        command = run(document)
        assert secret not in command.get("error", {}).get("reason", "")


@given(_VALUE)
def test_a_text_that_looks_like_json_is_json(value: str) -> None:
    for text in (value, "[{" + value, '[{"A":"' + value + '"}]'):
        stored = flight(f"<MAFL>{escape(text)}</MAFL>")["set"]["MAFL"]
        if stored.startswith("[{"):
            assert all(isinstance(leaf, str) for item in json.loads(stored) for leaf in item.values())
        else:
            assert stored == text.strip(" \t\r\n")
