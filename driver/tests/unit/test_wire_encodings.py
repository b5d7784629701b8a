"""Bytes to text: BOM, declaration, UTF-16, the Chinese encodings, and no guess anywhere (contract §1)."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgx_driver.wire.encodings import EncodingError, decode_text

BODY = "<MSG>登机口 𠀀</MSG>"
GBK_BODY = "<MSG>登机口</MSG>"


def declared(name: str, body: str = BODY) -> str:
    return f'<?xml version="1.0" encoding="{name}"?>{body}'


def refusal(payload: bytes, encoding: str = "bytes") -> EncodingError:
    with pytest.raises(EncodingError) as caught:
        decode_text(payload, encoding)
    return caught.value


@pytest.mark.parametrize(
    "payload",
    [
        BODY.encode(),
        codecs.BOM_UTF8 + BODY.encode(),
        declared("UTF-8").encode(),
        declared("utf-8").encode(),
        codecs.BOM_UTF8 + b"\r\n \t\n" + declared("UTF-8").encode(),
        b"\n\n" + declared("UTF-8").encode(),
        b'<?xml version="1.0"?>' + BODY.encode(),
        b"<?xml version='1.1' standalone='yes' ?>" + BODY.encode(),
        b"<?xml\n version = '1.0'\tencoding = 'UTF-8'\r\nstandalone='no'?>" + BODY.encode(),
        declared("GB18030").encode("gb18030"),
        declared("gb18030").encode("gb18030"),
        declared("GBK").encode("gb18030"),
        declared("Gb2312").encode("gb18030"),
        b"\r\n" + declared("gbk").encode("gb18030"),
        b"\r\n" * 2000 + declared("GBK").encode("gb18030"),
        ("\n" * 2000 + declared("UTF-16")).encode("utf-16"),
        codecs.BOM_UTF16_LE + BODY.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + BODY.encode("utf-16-be"),
        BODY.encode("utf-16-le"),
        BODY.encode("utf-16-be"),
        codecs.BOM_UTF16_LE + declared("UTF-16").encode("utf-16-le"),
        codecs.BOM_UTF16_BE + ("\n" + declared("utf-16")).encode("utf-16-be"),
        declared("UTF-16LE").encode("utf-16-le"),
        ("\r\n" + declared("UTF-16BE")).encode("utf-16-be"),
    ],
)
def test_the_text_is_the_same_whatever_the_encoding(payload: bytes) -> None:
    text = decode_text(payload, "bytes")
    assert text.strip() == BODY
    assert "<?xml" not in text


@pytest.mark.parametrize("name", ["GBK", "gbk", "GB2312", "gb2312", "GB18030"])
def test_plain_gbk_bytes_are_read_as_gb18030(name: str) -> None:
    assert decode_text(declared(name, GBK_BODY).encode("gbk"), "bytes").strip() == GBK_BODY


def test_us_ascii_is_ascii_and_nothing_else() -> None:
    assert decode_text(declared("US-ASCII", "<MSG/>").encode(), "bytes").strip() == "<MSG/>"
    prefix = declared("us-ascii", "<MSG>")
    assert refusal(prefix.encode() + "登".encode()).reason == (f"the bytes at offset {len(prefix)} are not US-ASCII")


@pytest.mark.parametrize("name", ["ISO-8859-1", "windows-1252", "Big5", "Shift_JIS", "UTF-7", "UTF-32", "cp037"])
def test_another_encoding_is_refused_by_name_and_never_guessed(name: str) -> None:
    error = refusal(declared(name, "<MSG/>").encode())
    assert error.reason == f"encoding {name} is not accepted"
    assert error.prefix == ""


@pytest.mark.parametrize("name", ["UTF-16", "utf-16le", "UTF-16BE"])
def test_eight_bit_text_that_declares_utf_16_is_refused(name: str) -> None:
    assert refusal(declared(name).encode()).reason == f"the XML declaration says {name}, the bytes are not UTF-16"


@pytest.mark.parametrize("name", ["UTF-8", "GBK", "UTF-16BE"])
def test_utf_16_that_declares_something_else_is_refused(name: str) -> None:
    payload = codecs.BOM_UTF16_LE + declared(name).encode("utf-16-le")
    assert refusal(payload).reason == f"the bytes are UTF-16, the XML declaration says {name}"


def test_a_utf_8_mark_before_a_gbk_declaration_is_refused() -> None:
    payload = codecs.BOM_UTF8 + declared("GBK").encode("gb18030")
    assert refusal(payload).reason == "the byte order mark says UTF-8, the XML declaration says GBK"


@pytest.mark.parametrize("codec", ["utf-32-le", "utf-32-be"])
def test_utf_32_is_refused_by_name(codec: str) -> None:
    assert refusal(("\ufeff" + BODY).encode(codec)).reason == "encoding UTF-32 is not accepted"


@pytest.mark.parametrize(
    "declaration",
    [
        "<?xml?>",
        "<?xml encoding='UTF-8'?>",
        "<?xml version='1.0' encoding='UTF 8'?>",
        "<?xml version='1.0' encoding='UTF-8\"?>",
        "<?xml version='2.0'?>",
        "<?xml version='1.0' standalone='maybe'?>",
        "<?xml version='1.0' encoding='UTF-8' version='1.0'?>",
        "<?xml version='1.0'" + " " * 1100 + "?>",
        "<?xml version='1.0'",
    ],
)
@pytest.mark.parametrize("encoding", ["bytes", "text"])
def test_a_malformed_declaration_is_refused(declaration: str, encoding: str) -> None:
    assert refusal((declaration + BODY).encode(), encoding).reason == "the XML declaration is malformed"


def test_another_instruction_is_no_declaration() -> None:
    text = "<?xml-stylesheet href='x'?><MSG/>"
    assert decode_text(text.encode(), "bytes") == text


def test_the_declaration_becomes_blanks_so_that_lines_and_columns_stay_true() -> None:
    text = decode_text(b"\n<?xml version='1.0'\nencoding='UTF-8'?><MSG/>", "bytes")
    assert text == "\n" + " " * 19 + "\n" + " " * 18 + "<MSG/>"


@pytest.mark.parametrize(
    ("start", "codec", "bad", "label"),
    [
        (b"", "utf-8", b"\xff", "UTF-8"),
        (b"", "utf-8", b"\xc0\xaf", "UTF-8"),
        (b"", "utf-8", b"\xed\xa0\x80", "UTF-8"),
        (b"", "utf-8", b"\xe7\x99", "UTF-8"),
        (codecs.BOM_UTF8, "utf-8", b"\xff", "UTF-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", b"\x00\xd8<\x00", "UTF-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", b"\xdc\x00\x00<", "UTF-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", b"\x00", "UTF-16"),
        (b'<?xml version="1.0" encoding="GBK"?>', "gb18030", b"\xff<", "GB18030"),
        (b'<?xml version="1.0" encoding="GB2312"?>', "gb18030", b"\x81", "GB18030"),
    ],
)
def test_undecodable_bytes_are_reported_with_their_offset_and_the_text_before_them(
    start: bytes, codec: str, bad: bytes, label: str
) -> None:
    good = start + "<MSG>登机口".encode(codec)
    error = refusal(good + bad)
    assert error.reason == f"the bytes at offset {len(good)} are not {label}"
    assert error.prefix.lstrip() == "<MSG>登机口"
    assert "<?xml" not in error.prefix


@pytest.mark.parametrize("name", ["GBK", "UTF-16", "ISO-8859-1", "no-such-encoding"])
def test_text_that_was_decoded_before_ignores_its_declaration(name: str) -> None:
    assert decode_text(("\n" + declared(name)).encode(), "text").strip() == BODY
    assert decode_text(codecs.BOM_UTF8 + declared(name).encode(), "text").strip() == BODY


def test_text_that_was_decoded_before_is_still_utf_8() -> None:
    prefix = declared("GBK", "<MSG>")
    error = refusal(prefix.encode() + "登".encode("gbk"), "text")
    assert error.reason == f"the bytes at offset {len(prefix)} are not UTF-8"
    assert error.prefix.strip() == "<MSG>"


def test_an_unknown_kind_of_payload_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="unknown message encoding"):
        decode_text(b"", "latin-1")


@given(st.binary(max_size=200), st.sampled_from(["bytes", "text"]))
def test_arbitrary_bytes_decode_or_are_refused(payload: bytes, encoding: str) -> None:
    try:
        text = decode_text(payload, encoding)
    except EncodingError as error:
        text = error.prefix
    text.encode()
