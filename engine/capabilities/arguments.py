"""Validates the arguments of a host call against the table of calls. Arguments are hostile until they have passed here."""

import binascii
import re
from collections.abc import Callable
from types import UnionType
from typing import Any, NamedTuple

from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.engine.effects.kv_store import MAX_KEY
from lodger.stdlib.calls import HostCall

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
        if value is None and argument.optional:
            made[name] = None
        elif name not in given:
            raise bad_request(f"{call.name} needs '{name}'")
        else:
            made[name] = _read(argument.type, value, f"{call.name}: '{name}'")
    return made


class Form(NamedTuple):
    """What an argument must be, in words that follow ``must be``; ``listed`` takes a single one for a list of one."""

    holds: Callable[[Any], bool]
    words: str = ""
    listed: bool = False


def _texts(words: str, least: int, most: int) -> Form:
    """Return the form of a text with a number of characters from ``least`` to ``most``."""
    return Form(lambda value: isinstance(value, str) and least <= len(value) <= most, words)


def _some(kinds: type | UnionType, words: str, least: int = 0, most: int = MAX_NAMES, *, listed: bool = True) -> Form:
    """Return the form of a list with ``least`` to ``most`` values of these kinds."""
    return Form(
        lambda value: (
            isinstance(value, list)
            and least <= len(value) <= most
            and all(isinstance(each, kinds) and each != {} for each in value)
        ),
        words,
        listed,
    )


def _is_base64(value: Any) -> bool:
    """Whether a value is base64 text within its maximum length."""
    if not isinstance(value, str) or len(value) > MAX_BASE64 or not value.isascii():
        return False
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        return False
    return True


def _is_pair(value: Any) -> bool:
    """Whether a value is a list of two texts."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)


_ANY = Form(lambda _value: True)
_LONG = _texts(f"text of at most {MAX_TEXT} characters", 0, MAX_TEXT)
#: By the type that the table of calls names. Values come from JSON: a whole number is exactly an int, and no bool.
FORMS = {
    "name": _texts("a name of at most 63 characters", 1, 63),
    "id": Form(lambda value: type(value) in (str, int), "an id: text or a whole number"),
    "filter": _ANY,
    "order": _ANY,
    "limit": Form(lambda value: type(value) is int and 1 <= value <= 10_000, "a whole number from 1 to 10000"),
    "cursor": _LONG,
    "names": _some(str, f"a name or a list of at most {MAX_NAMES} names"),
    "groups": _some(str | dict, f"a name, a period such as {{ day: 'created' }}, or a list of at most {MAX_NAMES}"),
    "values": Form(lambda value: isinstance(value, dict) and value != {}, "an object with at least one property"),
    "rows": _some(dict, f"a list of 1 to {MAX_ROWS} objects, each with at least one property", 1, MAX_ROWS, listed=False),
    "text": _LONG,
    "key": _texts(f"text of 1 to {MAX_KEY} characters", 1, MAX_KEY),
    "value": _ANY,
    "number": Form(lambda value: type(value) in (int, float), "a number"),
    "flag": Form(lambda value: isinstance(value, bool), "true or false"),
    "addresses": _some(str, f"an address or a list of 1 to {MAX_ADDRESSES} addresses", 1, MAX_ADDRESSES),
    "pairs": Form(lambda value: isinstance(value, list) and all(map(_is_pair, value)), "a list of pairs of texts"),
    "line": Form(lambda value: isinstance(value, str) and _LINE.fullmatch(value) is not None, "of the form file:line"),
    "base64": Form(_is_base64, "base64 of at most 512 KiB"),
}  # fmt: skip


def _read(kind: str, value: Any, what: str) -> Any:
    """Return an argument of this type; ``what`` names it in the refusal."""
    form = FORMS[kind]
    if form.listed and not isinstance(value, list):
        value = [value]
    if not form.holds(value):
        raise bad_request(f"{what} must be {form.words}")
    if kind == "base64":
        return binascii.a2b_base64(value)
    return [tuple(pair) for pair in value] if kind == "pairs" else value
