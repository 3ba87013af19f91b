"""Validates the arguments of a host call against the table of calls. Arguments are hostile until they have passed here."""

import binascii
import re
from typing import Any

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.stdlib.calls import HostCall

MAX_KEY = 512
MAX_NAMES = 20
MAX_ROWS = 500
MAX_TEXT = 256 * 1024
MAX_ADDRESSES = 50
MAX_BASE64 = 700_000  # characters, for 512 KiB
_LINE = re.compile(r"[^:\r\n]{1,120}:\d{1,7}", re.ASCII)


def read_arguments(call: HostCall, text: str) -> dict[str, Any]:
    """Parse and validate the arguments of a call.

    Args:
        call: entry of the table of calls.
        text: JSON text from the worker.

    Returns:
        Every argument of the call by name; absent optional ones are None.

    Raises:
        CallRefused: ``bad_request``.
    """
    given = strict_json.parse(text)
    if not isinstance(given, dict):
        raise bad_request(f"{call.name} takes one object of arguments")
    for name in given:
        if name not in call.arguments:
            raise bad_request(
                f"{call.name} has no argument of this name; its arguments are: {', '.join(call.arguments)}"
            )
    made: dict[str, Any] = {}
    for name, argument in call.arguments.items():
        value = given.get(name)
        if value is None and name not in given:
            if not argument.optional:
                raise bad_request(f"{call.name} needs '{name}'")
            made[name] = None
        elif value is None and argument.optional:
            made[name] = None
        else:
            made[name] = CHECKS[argument.type](value, f"{call.name}: '{name}'")
    return made


def _name(value: Any, what: str) -> str:
    """Check that an argument is a name: a text of 1 to 63 characters. ``what`` names the argument in the refusal."""
    if not isinstance(value, str) or not 0 < len(value) <= 63:
        raise bad_request(f"{what} must be a name of at most 63 characters")
    return value


def _id(value: Any, what: str) -> Any:
    """Check the id of a row."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise bad_request(f"{what} must be an id: text or a whole number")
    return value


def _any(value: Any, _what: str) -> Any:
    """Accept any JSON value."""
    return value


def _limit(value: Any, what: str) -> int:
    """Check a maximum number of rows that a script asks for. ``what`` names the argument in the refusal."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
        raise bad_request(f"{what} must be a whole number from 1 to 10000")
    return value


def _text(value: Any, what: str) -> str:
    """Check that an argument is text within its maximum length. ``what`` names the argument in the refusal."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise bad_request(f"{what} must be text of at most {MAX_TEXT} characters")
    return value


def _key(value: Any, what: str) -> str:
    """Check the key of a keyed value."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY:
        raise bad_request(f"{what} must be text of 1 to {MAX_KEY} characters")
    return value


def _names(value: Any, what: str) -> list[str]:
    """Check a list of names; one name is a list of one."""
    names = value if isinstance(value, list) else [value]
    if len(names) > MAX_NAMES or not all(isinstance(name, str) for name in names):
        raise bad_request(f"{what} must be a name or a list of at most {MAX_NAMES} names")
    return names


def _groups(value: Any, what: str) -> list[Any]:
    """Check what an aggregate is grouped by: names of columns, or periods."""
    terms = value if isinstance(value, list) else [value]
    if len(terms) > MAX_NAMES or not all(isinstance(term, str | dict) for term in terms):
        raise bad_request(
            f"{what} must be a name, a period such as {{ day: 'created' }}, or a list of at most {MAX_NAMES}"
        )
    return terms


def _values(value: Any, what: str) -> dict[str, Any]:
    """Check the values of a row."""
    if not isinstance(value, dict) or not value:
        raise bad_request(f"{what} must be an object with at least one property")
    return value


def _rows(value: Any, what: str) -> list[dict[str, Any]]:
    """Check a list of rows."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ROWS:
        raise bad_request(f"{what} must be a list of 1 to {MAX_ROWS} objects")
    return [_values(each, what) for each in value]


def _number(value: Any, what: str) -> int | float:
    """Check a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(f"{what} must be a number")
    return value


def _flag(value: Any, what: str) -> bool:
    """Check that an argument is true or false."""
    if not isinstance(value, bool):
        raise bad_request(f"{what} must be true or false")
    return value


def _addresses(value: Any, what: str) -> list[str]:
    """Check a list of mail addresses; one address is a list of one."""
    found = value if isinstance(value, list) else [value]
    if not 0 < len(found) <= MAX_ADDRESSES or not all(isinstance(item, str) for item in found):
        raise bad_request(f"{what} must be an address or a list of 1 to {MAX_ADDRESSES} addresses")
    return found


def _pairs(value: Any, what: str) -> list[tuple[str, str]]:
    """Check a list of pairs of texts."""
    good = isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in value
    )
    if not good:
        raise bad_request(f"{what} must be a list of pairs of texts")
    return [(name, text) for name, text in value]


def _line(value: Any, what: str) -> str:
    """Check the position of a call in the script, ``file:line``."""
    if not isinstance(value, str) or not _LINE.fullmatch(value):
        raise bad_request(f"{what} must have the form file:line")
    return value


def _base64(value: Any, what: str) -> bytes:
    """Return the bytes of an argument that is base64 text."""
    if not isinstance(value, str) or len(value) > MAX_BASE64 or not value.isascii():
        raise bad_request(f"{what} must be base64 of at most 512 KiB")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        raise bad_request(f"{what} must be base64") from None


CHECKS = {
    "name": _name,
    "id": _id,
    "filter": _any,
    "order": _any,
    "limit": _limit,
    "cursor": _text,
    "names": _names,
    "groups": _groups,
    "values": _values,
    "rows": _rows,
    "text": _text,
    "key": _key,
    "value": _any,
    "number": _number,
    "flag": _flag,
    "addresses": _addresses,
    "pairs": _pairs,
    "line": _line,
    "base64": _base64,
}
