"""Strict JSON between sandbox and host: no duplicate keys, no NaN, bounded depth and size, no NUL, no lone surrogates.

Values that JSON lacks are objects with one key: ``{"$instant": "2026-11-21T09:00:00.000000Z"}`` (always UTC, always six
digits, so that text order is time order) and ``{"$bytes": "<base64>"}``. An object of the author's own that has a key
beginning with ``$`` is wrapped as ``{"$object": {...}}``, so every value goes there and back unchanged.
"""

import base64
import binascii
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from lodger.engine.core.refusal import CallRefused, bad_request

INSTANT = "$instant"
BYTES = "$bytes"
OBJECT = "$object"
#: What a filter holds where the script's value is undefined; everywhere else it is left out.
UNDEFINED = {"$undefined": True}
SAFE_INTEGER = 2**53 - 1
MAX_NODES = 100_000
_MAX_DIGITS = 40
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def parse(text: str, *, depth: int = 64, nodes: int = MAX_NODES) -> Any:
    """Read hostile JSON text into dicts, lists, str, int, float, bool and None.

    Raises:
        CallRefused: ``bad_request``, saying which rule the text breaks.
    """
    _scan(text, depth, nodes)
    try:
        value = (_LOOKING if _looks_large(text) else _PLAIN).decode(text)
    except (ValueError, RecursionError):
        raise bad_request("the arguments are not JSON") from None
    if "\\u" in text:
        _characters(value)
    return value


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump(value: Any) -> str:
    """Write a value as compact JSON text. Raises ValueError for NaN and Infinity, which are bugs of the caller."""
    return _ENCODER.encode(value)


def instant_text(instant: datetime) -> str:
    """Write an aware instant in the one form that sorts: UTC, microseconds, ``Z``."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_instant(value: Any) -> datetime:
    """Read a tagged instant or an ISO 8601 text with an offset; digits below a microsecond are cut.

    Raises:
        CallRefused: it is neither, or outside the years 1 to 9999.
    """
    if isinstance(value, dict) and len(value) == 1:
        value = value.get(INSTANT)
    match = _ISO.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise bad_request("an instant must be a Date, an Instant, or text with an offset, like 2026-11-21T09:00:00Z")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
        offset = timedelta()
        if zone != "Z":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
        return local + timedelta(microseconds=int((fraction or "")[:6].ljust(6, "0"))) - offset
    except (ValueError, OverflowError):
        raise bad_request("this date or time does not exist") from None


def tag_instant(instant: datetime) -> dict[str, str]:
    """Return the wire form of an instant."""
    return {INSTANT: instant_text(instant)}


def tag_bytes(value: bytes) -> dict[str, str]:
    """Return the wire form of bytes."""
    return {BYTES: base64.b64encode(value).decode()}


def read_bytes(value: Any) -> bytes:
    """Read tagged bytes.

    Raises:
        CallRefused: it is not the tag, or not base64.
    """
    text = value.get(BYTES) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(text, str):
        raise bad_request("bytes must be a Uint8Array")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("bytes must be a Uint8Array") from None


def normal(value: Any) -> Any:
    """Return a document's value as it is stored: tags in canonical spelling, numbers as JavaScript doubles.

    Raises:
        CallRefused: an unknown tag, or a tag with a value of the wrong form.
    """
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        if any(name.startswith("$") for name in value):
            return _tag(value)
        return {name: normal(item) for name, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
        return float(value)
    return value


def _tag(value: dict[str, Any]) -> Any:
    """Return a tagged value in its one spelling; an object with a key that begins with $ is always a tag."""
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key == INSTANT:
            return tag_instant(read_instant(value))
        if key == BYTES:
            return tag_bytes(read_bytes(value))
        if key == OBJECT and isinstance(inner, dict):
            return {OBJECT: {name: normal(item) for name, item in inner.items()}}
    raise bad_request("an object with a key that begins with $ is reserved for tags")


def _scan(text: str, depth: int, nodes: int) -> None:
    """Bound nesting and values before anything recursive sees the text; a megabyte of anything costs a few milliseconds."""
    commas, opened = text.count(","), text.count("[") + text.count("{")
    if opened <= min(depth, nodes) and commas <= nodes:
        return
    # Each text is a value, or the name of one. A quote behind a backslash is perhaps none.
    if (text.count('"') - text.count('\\"')) // 2 > 2 * nodes + 1:
        raise _too_many(nodes)
    bare = _STRING.sub("", text)
    if max(bare.count(","), bare.count("[") + bare.count("{")) > nodes:
        raise _too_many(nodes)
    steps = bare.encode("ascii", "ignore").translate(_STEP, _OTHER)
    if len(steps) > depth and max(accumulate(memoryview(steps).cast("b"))) > depth:
        raise bad_request(f"the arguments are nested more than {depth} levels deep")


def _too_many(nodes: int) -> CallRefused:
    return bad_request(f"the arguments have more than {nodes} values")


#: A text that does not end runs to the end of all: the quotes in it are not tried one after another.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_OTHER = bytes(set(range(256)) - set(b"[]{}"))
_STEP = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
#: Digits, exponents and all the rest, each as one letter; signs of exponents left out.
_SHAPE = bytes(ord("0") if 48 <= each <= 57 else ord("e") if each in b"eE" else ord(" ") for each in range(256))
_LONG, _FAR = b"0" * _MAX_DIGITS, b"0e000"


def _looks_large(text: str) -> bool:
    """Whether the text may contain an integer with many digits or a number beyond a double; only then each number is checked."""
    shape = text.encode("utf-8", "surrogatepass").translate(_SHAPE, b"+")
    return _LONG in shape or _FAR in shape


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise bad_request("an object has a duplicate key")
    return found


def _constant(_name: str) -> Any:
    raise bad_request("NaN and Infinity are not JSON")


def _integer(digits: str) -> int | float:
    if len(digits) > _MAX_DIGITS:
        return _number(digits)
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if value - value != 0:
        raise bad_request("a number is too large")
    return value


_PLAIN = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
_LOOKING = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_number
)


def _characters(value: Any) -> None:
    """Refuse NUL and lone surrogates in any text; PostgreSQL stores neither."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise bad_request("text must not have NUL characters")
            if not item.isascii():
                try:
                    item.encode()
                except UnicodeEncodeError:
                    raise bad_request("text has a lone surrogate") from None
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def plain(value: Any) -> Any:
    """Return a value for readers that know no tags: instants and bytes as their texts, wrapped objects as they are."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key in (INSTANT, BYTES):
                return inner
            if key == OBJECT:
                return {name: plain(item) for name, item in inner.items()}
        return {name: plain(item) for name, item in value.items()}
    return value
