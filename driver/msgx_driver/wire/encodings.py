"""Bytes of a message to text (contract §1).

Expat knows no multi-byte codec but UTF-8 and UTF-16, so the bytes are decoded here, strictly: a byte that
does not decode is an error with its offset, never a replacement character. The XML declaration has then
done its work and is blanked out, which keeps every later line and column true.
"""

from __future__ import annotations

import codecs
import re

BLANK = " \t\r\n"

_DECLARATION_START = re.compile(r"<\?xml(?=[ \t\r\n?])")
_DECLARATION = re.compile(
    r"<\?xml"
    r"[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:\"1\.[0-9]+\"|'1\.[0-9]+')"
    r"(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*"
    r"(?P<quote>[\"'])(?P<encoding>[A-Za-z][A-Za-z0-9._-]{0,39})(?P=quote))?"
    r"(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:\"(?:yes|no)\"|'(?:yes|no)'))?"
    r"[ \t\r\n]*\?>"
)
# A declaration is one short line; what is longer is refused rather than searched.
_DECLARATION_MAX = 1024
_NOT_LINE_END = re.compile(r"[^\r\n]")

# Codec -> what a declaration may say about it, lower case.
_WIDE = {"utf-16-le": {"utf-16", "utf-16le"}, "utf-16-be": {"utf-16", "utf-16be"}}
_UTF16: frozenset[str] = frozenset().union(*_WIDE.values())
# Name in a declaration, lower case -> Python codec. GB18030 holds GBK, which holds GB2312.
_EIGHT_BIT = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "gbk": "gb18030",
    "gb2312": "gb18030",
    "gb18030": "gb18030",
}
_LABELS = {
    "utf-8": "UTF-8",
    "ascii": "US-ASCII",
    "gb18030": "GB18030",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}


class EncodingError(Exception):
    """Bytes that are no text in the encoding they claim.

    ``reason`` names the rule and, where it applies, the byte offset in the payload, never bytes of the
    message. ``prefix`` is the text before that offset, empty when the encoding itself is refused.
    """

    def __init__(self, reason: str, prefix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.prefix = prefix


def decode_text(payload: bytes, encoding: str) -> str:
    """Return the text of ``payload`` without byte order mark, its XML declaration replaced by blanks.

    ``encoding`` is the one recorded with the message: ``bytes`` = as received, the bytes say by BOM,
    declaration or UTF-16 pattern what they are; ``text`` = UTF-8 of text that was decoded before, whose
    declaration is ignored. Raises EncodingError; ValueError for another ``encoding``.
    """
    if encoding == "text":
        codec, start = "utf-8", 3 if payload.startswith(codecs.BOM_UTF8) else 0
    elif encoding == "bytes":
        codec, start = _utf16(payload) or _eight_bit(payload)
    else:
        raise ValueError(f"unknown message encoding {encoding!r}: 'bytes' or 'text'")
    data = payload[start:] if start else payload
    failure = None
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        failure = f"the bytes at offset {start + error.start} are not {_LABELS[codec]}"
        text = data[: error.start].decode(codec)
    declared, end = _declaration(text)
    if codec in _WIDE and declared is not None and declared.lower() not in _WIDE[codec]:
        raise EncodingError(f"the bytes are UTF-16, the XML declaration says {declared}")
    if end:
        text = _NOT_LINE_END.sub(" ", text[:end]) + text[end:]
    if failure is not None:
        raise EncodingError(failure, text)
    return text


def _utf16(payload: bytes) -> tuple[str, int] | None:
    """Codec and length of the BOM when the bytes are UTF-16: by BOM, or by the zero half of a character."""
    if payload.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise EncodingError("encoding UTF-32 is not accepted")
    if payload.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if payload.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    if len(payload) >= 2 and (payload[0] == 0) != (payload[1] == 0):
        return ("utf-16-be" if payload[0] == 0 else "utf-16-le"), 0
    return None


def _eight_bit(payload: bytes) -> tuple[str, int]:
    """Codec and length of the BOM of bytes that are not UTF-16: what the declaration says, else UTF-8."""
    start = 3 if payload.startswith(codecs.BOM_UTF8) else 0
    # Latin-1 maps every byte to one character: enough to read a declaration, whose characters are ASCII.
    declared, _ = _declaration(payload[start:].lstrip(BLANK.encode())[:_DECLARATION_MAX].decode("latin-1"))
    if declared is None:
        return "utf-8", start
    if declared.lower() in _UTF16:
        raise EncodingError(f"the XML declaration says {declared}, the bytes are not UTF-16")
    codec = _EIGHT_BIT.get(declared.lower())
    if codec is None:
        raise EncodingError(f"encoding {declared} is not accepted")
    if start and codec == "gb18030":
        raise EncodingError(f"the byte order mark says UTF-8, the XML declaration says {declared}")
    return codec, start


def _declaration(text: str) -> tuple[str | None, int]:
    """Encoding named by the XML declaration of ``text`` and where it ends; (None, 0) when there is none."""
    begin = len(text) - len(text.lstrip(BLANK))
    if not _DECLARATION_START.match(text, begin):
        return None, 0
    found = _DECLARATION.match(text, begin, begin + _DECLARATION_MAX)
    if found is None:
        raise EncodingError("the XML declaration is malformed")
    return found["encoding"], found.end()
