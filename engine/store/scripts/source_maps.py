"""Source maps of a script's main.js: checked and unpacked when they are stored, so that an error is mapped in bounded time.

The unpacked form has a line of JSON with the names of the sources, then for each line of main.js its segments as
``column:source:line:column`` in decimal, separated by commas; all numbers from 0.
"""

import json
from typing import Any

from lodger.engine.core.errors import InputError

#: The file that a map is of, and the name of the map beside it.
MAPPED = "main.js"
FILE = f"{MAPPED}.map"
MAX_SOURCES, MAX_SOURCE_NAME, MAX_SEGMENTS, MAX_LINES = 5_000, 300, 1_000_000, 200_000
#: Maximum of a line or column of a source: larger numbers would make the unpacked form many times larger than the map.
MAX_PLACE = 10_000_000
_DIGITS = {
    character: value
    for value, character in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


def unpacked(text: str) -> str:
    """Return a source map (version 3) in the unpacked form.

    Raises:
        InputError: source_map_invalid.
    """
    try:
        given = json.loads(text)
        sources, mappings = given["sources"], given["mappings"]
        lines = _lines(given["version"], mappings, len(sources))
        names = [_name(source, given.get("sourceRoot")) for source in sources]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise InputError("source_map_invalid", file=FILE, reason=str(error)[:200]) from None
    return "\n".join([json.dumps(names), *lines])


def author_source(text: str, name: str) -> str | None:
    """Return the source that a stored map (version 3) holds under a name of the unpacked form; None if it holds none."""
    try:
        given = json.loads(text)
        for source, held in zip(given["sources"][:MAX_SOURCES], given["sourcesContent"], strict=False):
            if isinstance(held, str) and _name(source, given.get("sourceRoot")) == name:
                return held
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    return None


def _name(source: Any, root: Any) -> str:
    """Return the name of a map's source file, joined with the map's root, as people see it."""
    name = f"{root}/{source}" if isinstance(root, str) and root else str(source)
    return "".join(character if character.isprintable() else "?" for character in name[-MAX_SOURCE_NAME:])


def _lines(version: int, mappings: str, sources: int) -> list[str]:
    """Return the segments of each line; source, line and column continue from one line to the next."""
    if version != 3 or sources > MAX_SOURCES:
        raise ValueError("it is not of version 3, or has too many sources")
    if mappings.count(",") + mappings.count(";") > MAX_SEGMENTS or mappings.count(";") > MAX_LINES:
        raise ValueError("it has too many segments or lines")
    source = line = column = 0
    found = []
    for text in mappings.split(";"):
        at, segments = 0, []
        for segment in text.split(",") if text else ():
            numbers = _numbers(segment)
            at += numbers[0]
            if len(numbers) < 4:
                continue
            source, line, column = source + numbers[1], line + numbers[2], column + numbers[3]
            if min(at, source, line, column) < 0 or source >= sources or max(at, line, column) > MAX_PLACE:
                raise ValueError("a segment lies outside of its file")
            segments.append(f"{at}:{source}:{line}:{column}")
        found.append(",".join(segments))
    return found


def _numbers(segment: str) -> list[int]:
    """Return the numbers of a segment: base 64 digits of five bits, the lowest first, of which the lowest bit is the sign."""
    found, value, shift = [], 0, 0
    for character in segment:
        digit = _DIGITS[character]
        value |= (digit & 31) << shift
        shift += 5
        if shift > 35:
            raise ValueError("a number is too large")
        if not digit & 32:
            found.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    if shift or not 0 < len(found) < 6:
        raise ValueError("a segment is cut")
    return found
