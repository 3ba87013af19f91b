"""Checks of untrusted JSON in linear time before it is parsed: size, nesting, number of values, encoding.

Deep text exhausts a recursive parser's stack, and some text takes a parser quadratic time; this scan is safe from both. One regular
expression without backtracking removes strings (an unterminated string extends to the end), the rest is reduced to brackets, and the
nesting is their running sum. Worst case, brackets only: 30 ns per byte.
"""

import json
import re
from collections import Counter
from itertools import accumulate
from typing import Any, NoReturn

#: Bytes that :func:`require` scans at once.
_PIECE = 16 * 1024
#: Most digits of an integer that is read as one.
MAX_DIGITS = 40
_WHOLE = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_OTHER = bytes(set(range(256)) - set(b"[]{}"))
_STEP = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")


class JsonRefused(ValueError):
    """Rejected JSON text; ``code`` is one of too_large, too_many_values, too_deep, not_utf8, not_json, duplicate_key,
    number_out_of_range.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def require(data: bytes, *, max_depth: int, max_values: int | None = None, counts_names: bool = True) -> None:
    """Check the number of values and the nesting; the text need not be JSON.

    Args:
        counts_names: whether names of members count as values, and every text for itself.

    Works in pieces and stops early: one call over a megabyte of brackets would hold the interpreter lock for long. Keys and all strings
    count as values. Raises JsonRefused: too_many_values, too_deep.
    """
    opened, commas, limit = data.count(b"[") + data.count(b"{"), data.count(b","), max_values or 0
    if opened <= max_depth and (max_values is None or (not counts_names and max(opened, commas) < limit)):
        return
    # Each string is a value or a key; a quote after a backslash may not delimit one.
    most = limit if counts_names else 2 * limit
    if max_values is not None and (data.count(b'"') - data.count(b'\\"')) // 2 > most:
        raise JsonRefused("too_many_values", f"the JSON value has more than {max_values} values")
    found, level, at = 1, 0, 0
    while at < len(data):
        # Up to the end of the last whole string in the piece, or to the end of a string longer than it.
        whole = _WHOLE.match(data, at, at + _PIECE)
        end = whole.end() if whole else at
        if end == at:
            longer = STRING.match(data, at)
            end = longer.end() if longer else at + 1
        bare, strings = STRING.subn(b"", data[at:end])
        separators = bare.count(b",") + (bare.count(b":") if counts_names else 0)
        found += max(strings if counts_names else 0, separators, bare.count(b"[") + bare.count(b"{"))
        if max_values is not None and found > max_values:
            raise JsonRefused("too_many_values", f"the JSON value has more than {max_values} values")
        steps = bare.translate(_STEP, _OTHER)
        if level + len(steps) > max_depth:
            sums = tuple(accumulate(memoryview(steps).cast("b"), initial=level))
            if max(sums) > max_depth:
                raise JsonRefused("too_deep", f"the JSON value is nested deeper than {max_depth}")
            level = sums[-1]
        elif steps:
            level += sum(memoryview(steps).cast("b"))
        at = end


def scan(data: bytes, *, max_bytes: int, max_depth: int, max_values: int | None = None) -> str:
    """Return the text if it is UTF-8 within the bounds. Raises JsonRefused."""
    if len(data) > max_bytes:
        raise JsonRefused("too_large", f"{len(data)} bytes of JSON exceed the maximum of {max_bytes}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise JsonRefused("not_utf8", "the JSON text is not UTF-8") from None
    require(data, max_depth=max_depth, max_values=max_values)
    return text


def parse(data: bytes, *, max_bytes: int, max_depth: int, max_values: int | None = None) -> Any:
    """Return the value of strict JSON: without NaN, Infinity, numbers beyond a double and duplicate keys. Raises JsonRefused."""
    return decode(scan(data, max_bytes=max_bytes, max_depth=max_depth, max_values=max_values))


def decode(text: str) -> Any:
    """Return the value of strict JSON text that :func:`require` has accepted; integers of more than 40 digits are floats.

    Raises:
        JsonRefused: not_json, duplicate_key, number_out_of_range.
    """
    try:
        return (_SYNTAX if _LARGE.search(text) is None else _RANGE).decode(text)
    except JsonRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise JsonRefused("not_json", "the text is not JSON") from error


def check(data: bytes, *, max_bytes: int, max_depth: int) -> str:
    """Return the text if it is strict JSON as defined by :func:`parse`. Raises JsonRefused."""
    text = scan(data, max_bytes=max_bytes, max_depth=max_depth)
    decode(text)
    return text


def _constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity."""
    raise JsonRefused("not_json", f"{name} is not JSON")


def _finite(digits: str) -> float:
    """Return a number, if a double can hold it."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise JsonRefused("number_out_of_range", "a number is beyond the range of a double")
    return number


def _integer(digits: str) -> int | float:
    """Return a whole number; a very long one as a double."""
    return _finite(digits) if len(digits) > MAX_DIGITS else int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a JSON text's members; raises JsonRefused if a key is repeated."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise JsonRefused("duplicate_key", f"an object has the key {twice!r:.60} twice")
    return found


#: Matches where an integer has more than 40 digits or a number may be beyond a double; only then is each number checked. Linear: a run of
#: digits is tried once.
_LARGE = re.compile(r"(?<!\d)\d{40}|[eE]\+?0*(?:[2-9]\d\d|\d{4})")
_SYNTAX = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_unique)
_RANGE = json.JSONDecoder(parse_constant=_constant, parse_float=_finite, parse_int=_integer, object_pairs_hook=_unique)
