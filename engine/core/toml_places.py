"""TOML with places: the line and column of each key of a text, and the text of values."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

#: Position of a key: 1-based line and column.
Position = tuple[int, int]
_HEADER = re.compile(r"\s*\[\[?(.+?)\]\]?\s*(#.*)?$")
#: Possessive: a line that is no key is left after one look at each character.
_KEY = re.compile(r"""\s*+((?:"(?:[^"\\]|\\.)*+"|'[^']*+'|[A-Za-z0-9_.-]++|[ \t]++)++)=""")
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_ERROR_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def places(text: str) -> dict[tuple[str, ...], Position]:
    """Return the position of every table and key of a TOML text by its path; the first one of an array of tables."""
    found: dict[tuple[str, ...], Position] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        column = len(line) - len(line.lstrip()) + 1
        if header := _HEADER.fullmatch(line):
            table = _path(f"[{header[1]}]") or table
            for depth in range(1, len(table) + 1):
                found.setdefault(table[:depth], (number, column))
        elif key := _KEY.match(line):
            path = table + _path(f"{key[1]} = 0")
            for depth in range(len(table) + 1, len(path) + 1):
                found.setdefault(path[:depth], (number, column))
    return found


def _path(text: str) -> tuple[str, ...]:
    """Return the keys of a header or of the left side of a line; none if they are not TOML, as inside a long text."""
    try:
        body: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    keys = []
    while isinstance(body, dict) and body:
        key, body = next(iter(body.items()))
        keys.append(key)
    return tuple(keys)


def error_place(error: tomllib.TOMLDecodeError, text: str) -> tuple[str, Position]:
    """Return the message of a syntax error without its place, and the place."""
    message = str(error)
    found = _ERROR_PLACE.search(message)
    if found is None:
        return message, (1, 1)
    line, column = (int(found[1]), int(found[2])) if found[1] else (text.count("\n") + 1, 1)
    return message[: found.start()], (line, column)


def as_json(value: Any, *, marked: bool = False) -> Any:
    """Return a TOML value as JSON: dates and times are text in RFC 3339, with ``marked`` instants are tagged as in documents."""
    if isinstance(value, Mapping):
        return {key: as_json(each, marked=marked) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json(each, marked=marked) for each in value]
    if marked and isinstance(value, datetime) and value.tzinfo is not None:
        return {"$instant": as_json(value)}
    if isinstance(value, datetime | date | time):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number of JSON")
    return value


def has_null(value: Any) -> bool:
    """Whether a JSON value has null in it, which TOML cannot say."""
    if isinstance(value, Mapping):
        return any(has_null(each) for each in value.values())
    return any(has_null(each) for each in value) if isinstance(value, list | tuple) else value is None


def toml_text(value: Any) -> str:
    """Return a value as TOML, on one line: JSON without null, and dates."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_text(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def toml_key(key: str) -> str:
    """Return a key as TOML."""
    return key if _BARE.fullmatch(key) else toml_text(key)
