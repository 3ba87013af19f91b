"""Strict JSON between sandbox and host: no duplicate keys, no NaN, bounded depth and size, no NUL, no lone surrogates.

Values that JSON lacks are objects with one key: ``{"$instant": "2026-11-21T09:00:00.000000Z"}`` (always UTC, always six
digits, so that text order is time order) and ``{"$bytes": "<base64>"}``. An object of the author's own that has a key
beginning with ``$`` is wrapped as ``{"$object": {...}}``, so every value goes there and back unchanged.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lodger.engine.core.refusal import bad_request
from lodger.sandbox import prescan

INSTANT = "$instant"
BYTES = "$bytes"
OBJECT = "$object"
#: What a filter holds where the script's value is undefined; everywhere else it is left out.
UNDEFINED = {"$undefined": True}
SAFE_INTEGER = 2**53 - 1
MAX_NODES = 100_000
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def parse(text: str, *, depth: int = 64, nodes: int = MAX_NODES) -> Any:
    """Read hostile JSON text into dicts, lists, str, int, float, bool and None.

    Raises:
        CallRefused: ``bad_request``, saying which rule the text breaks.
    """
    try:
        prescan.require(
            text.encode("utf-8", "surrogatepass"), max_depth=depth, max_values=nodes + 1, counts_names=False
        )
        value = prescan.decode(text)
    except prescan.JsonRefused as refused:
        said = {
            "too_many_values": f"the arguments have more than {nodes} values",
            "too_deep": f"the arguments are nested more than {depth} levels deep",
            "not_json": "the arguments are not JSON",
        }
        raise bad_request(said.get(refused.code, str(refused))) from None
    if "\\u" in text:
        _characters(value)
    return value


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump(value: Any) -> str:
    """Write a value as compact JSON text. Raises ValueError for NaN and Infinity, which are bugs of the caller."""
    return _ENCODER.encode(value)


def dump_input(value: Any) -> str:
    """Write what a script is given; halves of surrogate pairs, which a result may hold and UTF-8 does not, stay as escapes."""
    return dump(value).encode("utf-8", "backslashreplace").decode()


def instant_text(instant: datetime) -> str:
    """Write an aware instant in the one form that sorts: UTC, microseconds, ``Z``."""
    instant = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return f"{instant.isoformat(timespec='microseconds')[:-6]}Z"


def read_instant(value: Any) -> datetime:
    """Read a tagged instant or an ISO 8601 text with an offset; digits below a microsecond are cut.

    Raises:
        CallRefused: it is neither, or outside the years 1 to 9999.
    """
    if isinstance(value, dict) and len(value) == 1:
        value = value.get(INSTANT)
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        raise bad_request("an instant must be a Date, an Instant, or text with an offset, like 2026-11-21T09:00:00Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_request("this date or time does not exist") from None


def tag_instant(instant: datetime) -> dict[str, str]:
    """Return the wire form of an instant."""
    return {INSTANT: instant_text(instant)}


def tag_bytes(value: bytes) -> dict[str, str]:
    """Return the wire form of bytes."""
    return {BYTES: base64.b64encode(value).decode()}


def read_bytes(value: Any) -> bytes:
    """Return the bytes of a value with the tag for bytes.

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
    """Return a tagged value (an instant, bytes or a wrapped object) in its one spelling; an object with a key that begins with $ is
    always a tag."""
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key == INSTANT:
            return tag_instant(read_instant(value))
        if key == BYTES:
            return tag_bytes(read_bytes(value))
        if key == OBJECT and isinstance(inner, dict):
            return {OBJECT: {name: normal(item) for name, item in inner.items()}}
    raise bad_request("an object with a key that begins with $ is reserved for tags")


def _characters(value: Any) -> None:
    """Refuse NUL and lone surrogates in any text of a JSON value: PostgreSQL stores neither."""
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


def plain(value: Any, instant: Callable[[str], str] = str) -> Any:
    """Return a value for readers that know no tags: instants and bytes as their texts, wrapped objects as they are.

    Args:
        instant: returns the text of an instant for these readers, from its text on the wire.
    """
    if isinstance(value, list):
        return [plain(item, instant) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key in (INSTANT, BYTES):
                return instant(inner) if key == INSTANT else inner
            if key == OBJECT:
                value = inner
        return {name: plain(item, instant) for name, item in value.items()}
    return value
