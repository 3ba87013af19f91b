"""Older encodings: the text, the unfinished end and the validity of bytes, as the Encoding standard says."""

import asyncio
import base64
import json
from typing import Any

import pytest
from tests.unit.data.shop import Shop

from lodger.engine.capabilities.computing.text import decoded

TEXTS = {
    "windows-1250": "Příliš žluťoučký kůň", "windows-1251": "Съешь ещё", "windows-1253": "Ξεσκεπάζω", "windows-1254": "Pijamalı",
    "windows-1255": "שלום", "windows-1256": "سلام", "windows-1257": "žąsis", "windows-874": "ไทย",
    "iso-8859-2": "Łódź", "iso-8859-5": "Привет",
    "iso-8859-7": "ψυχή", "iso-8859-15": "€œ", "koi8-r": "Привет", "shift_jis": "日本語ｶﾅ", "euc-jp": "日本語", "euc-kr": "한국어",
    "gbk": "中文", "gb18030": "中文𠀀", "big5": "中文臺灣", "ibm866": "Привет", "macintosh": "é†",
}  # fmt: skip


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_text_is_decoded_whole_and_in_any_two_pieces(encoding: str) -> None:
    text = TEXTS[encoding]
    python = {"windows-874": "cp874", "macintosh": "mac-roman", "big5": "big5"}.get(encoding, encoding)
    data = text.encode(python)
    assert decoded(encoding, data, final=True) == (text, 0, True)
    for at in range(len(data)):
        begun, rest, _ = decoded(encoding, data[:at], final=False)
        assert begun + decoded(encoding, data[at - rest :], final=True)[0] == text


@pytest.mark.parametrize(
    ("encoding", "data", "text", "valid"),
    [
        ("shift_jis", b"\x87\x40", "①", True), ("euc-jp", b"\xad\xa1", "①", True), ("iso-2022-jp", b"\x1b$B-!\x1b(B", "①", True),
        ("shift_jis", b"\x81\x60", "～", True), ("euc-jp", b"\xa1\xc1", "～", True), ("shift_jis", b"\xa0", "\ufffd", False),
        ("gbk", b"\x80", "€", True), ("gbk", b"\xa3\xa0", "\u3000", True), ("euc-kr", b"\xb4\xd9\x81\x41", "다갂", True),
        ("windows-1250", b"\x81", "\x81", True), ("windows-1253", b"\xd2", "\ufffd", False), ("windows-1255", b"\xca", "\u05ba", True),
        ("koi8-u", b"\xae", "ў", True), ("euc-kr", b"\xc9\xa1x", "\ufffdx", False), ("big5", b"\x81A", "\ufffdA", False),
        ("euc-jp", b"\xa4", "\ufffd", False),
    ],
)  # fmt: skip
def test_bytes_that_pythons_codecs_read_otherwise(encoding: str, data: bytes, text: str, valid: bool) -> None:
    assert decoded(encoding, data, final=True) == (text, 0, valid)


def test_labels_are_those_of_the_standard() -> None:
    shop = Shop()
    try:
        for label, encoding in (
            (" Latin2\n", "iso-8859-2"),
            ("sjis", "shift_jis"),
            ("x-gbk", "gbk"),
            ("utf-7", None),
            ("replacement", None),
        ):
            given = {"label": label, "bytes": {"$bytes": base64.b64encode(b"a").decode()}, "final": True}
            reply = asyncio.run(shop.attempt().call("text.decode", json.dumps(given)))
            body: dict[str, Any] = json.loads(reply.json)
            assert body.get("encoding") == encoding
            assert reply.ok or body["code"] == "unknown_encoding"
    finally:
        shop.close()
