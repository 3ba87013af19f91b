"""Host side of ``TextDecoder``: the older encodings of the Encoding standard, by Python's codecs and the labels of ``webencodings``."""

import codecs
from typing import Any

from webencodings import LABELS

from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import CallRefused

#: Python's codec of an encoding, where it has another name.
_CODECS = {
    "big5": "big5hkscs", "euc-jp": "euc_jp", "euc-kr": "cp949", "gbk": "gb18030", "iso-8859-8-i": "iso-8859-8", "macintosh": "mac-roman",
    "shift_jis": "cp932", "windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic", "iso-2022-jp": "iso2022_jp_ext",
}  # fmt: skip
_JIS = str.maketrans("\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")
_GB = str.maketrans("\ue5e5\ue7c7", "\u3000\u1e3f")
#: Characters of the standard where Python's codec has others; Shift_JIS has none where Python has U+F8F0 to U+F8F3.
_OTHERS = {
    "euc-jp": _JIS, "iso-2022-jp": _JIS, "koi8-u": str.maketrans("\u255d\u256c", "\u045e\u040e"),
    "shift_jis": str.maketrans("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd" * 4), "x-mac-cyrillic": str.maketrans("\u00a2\u2202", "\u0490\u0491"),
    "gbk": _GB, "gb18030": _GB,
}  # fmt: skip
#: First bytes of pairs, and characters that Python's codecs lack.
_LEADS = {
    "big5": range(0x81, 0xFF), "euc-kr": range(0x81, 0xFF), "gbk": range(0x81, 0xFF), "gb18030": range(0x81, 0xFF),
    "euc-jp": (0x8E, 0x8F, *range(0xA1, 0xFF)), "iso-2022-jp": range(0x21, 0x7F), "shift_jis": range(0x81, 0xFD),
}  # fmt: skip
_LACKING = {("windows-1255", 0xCA): "\u05ba", ("gbk", 0x80): "€", ("gb18030", 0x80): "€"}
_UNSUPPORTED = ("replacement", "x-user-defined")
_REPLACEMENT = "\ufffd"


async def decode(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle text.decode: return the text, the number of bytes of an unfinished character, and whether all were valid.

    Without bytes, it returns the name of the encoding that a label stands for.
    """
    encoding = LABELS.get(given["label"].lower().strip("\t\n\f\r "))
    if encoding is None or encoding in _UNSUPPORTED:
        raise CallRefused("unknown_encoding", "no encoding of the Encoding standard has this label")
    data = strict_json.read_bytes(given["bytes"])
    with session.computing():
        text, rest, valid = decoded(encoding, data, final=given["final"])
    return {"encoding": encoding, "text": text, "rest": rest, "valid": valid}


def decoded(encoding: str, data: bytes, *, final: bool) -> tuple[str, int, bool]:
    """Decode bytes; return the text, the number of undecoded bytes at the end, and whether all were valid.

    Args:
        encoding: name of the encoding by the standard.
        final: whether no more bytes follow.
    """
    if encoding == "iso-2022-jp" and not final:
        return "", len(data), True  # its meaning depends on all that comes before
    errors = _Errors(encoding)
    name = f"lodger.{encoding}"
    # A codec finds its error handler by name: registering and decoding happen without a switch of threads between them.
    codecs.register_error(name, errors)
    decoder = codecs.getincrementaldecoder(_CODECS.get(encoding, encoding))(name)
    text = decoder.decode(data, final)
    rest = 0 if final else len(decoder.getstate()[0])
    if encoding in _OTHERS:
        text = text.translate(_OTHERS[encoding])
    return text, rest, errors.valid and _REPLACEMENT not in text


class _Errors:
    """Characters for bytes that Python's codec does not know, or that are invalid, as the standard says."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self.valid = True

    def __call__(self, error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        data, at = error.object, error.start
        first, second = data[at], data[at + 1] if at + 1 < len(data) else None
        if (self._encoding, first) in _LACKING:
            return _LACKING[self._encoding, first], at + 1
        leads = _LEADS.get(self._encoding)
        if leads is None:
            if 0x80 <= first < 0xA0:
                return chr(first), at + 1
        elif self._encoding in ("euc-jp", "iso-2022-jp") and second is not None and min(first, second) > 0x20:
            row, cell = ((each & 0x7F) - 0x21 for each in (first, second))
            known = (
                _of_row(row, cell) if min(row, cell) >= 0 and max(row, cell) < 94 and (first ^ second) < 0x80 else None
            )
            if known is not None:
                return known, at + 2
            if first < 0x80:
                self.valid = False
                return _REPLACEMENT, at + 2
        self.valid = False
        # The second byte of an invalid pair is read again only if it is ASCII.
        return _REPLACEMENT, at + 1 + (leads is not None and first in leads and second is not None and second >= 0x80)


def _of_row(row: int, cell: int) -> str | None:
    """Return the character at a row and cell of JIS X 0208 with the extensions of Windows, by way of Shift_JIS; None if there is none."""
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
    found = bytes([lead, trail]).decode("cp932", "replace")
    return None if found[0] in _REPLACEMENT or "\ue000" <= found[0] < "\uf900" else found


HANDLERS = {"text.decode": decode}
