"""Places in the author's files instead of places in a bundled ``main.js``. Pure, and bounded however the map lies.

The map is unpacked: a line of JSON with the names of the sources, then for each line of main.js ``column:source:line:column``, from 0.
"""

import json
import re
from dataclasses import replace

from lodger.sandbox.workers.verdict import Verdict

MAPPED = "main.js"
#: Maximum number of places that are mapped.
MAX_PLACES = 50
_PLACE = re.compile(r"\bmain\.js:(\d{1,7}):(\d{1,7})\b")


def mapped(found: Verdict, source_map: str) -> Verdict:
    """Return the verdict with the places of its error in the author's files, as far as the map has them."""
    error = found.error
    if error is None or (error.file != MAPPED and MAPPED not in error.stack):
        return found
    lines = source_map.split("\n")
    try:
        sources = json.loads(lines[0])
    except (ValueError, RecursionError):
        return found
    stack = _PLACE.sub(
        lambda place: _shown(place[0], _place(lines, sources, int(place[1]), int(place[2]))),
        error.stack,
        count=MAX_PLACES,
    )
    place = None
    if error.file == MAPPED and error.line is not None:
        place = _place(lines, sources, error.line, error.column or 1)
    if place is not None:
        error = replace(error, file=place[0], line=place[1], column=place[2] if error.column is not None else None)
    return replace(found, error=replace(error, stack=stack))


def _shown(text: str, place: tuple[str, int, int] | None) -> str:
    """Return the author's place as ``file:line:column``; the text itself without one."""
    return text if place is None else f"{place[0]}:{place[1]}:{place[2]}"


def _place(lines: list[str], sources: object, line: int, column: int) -> tuple[str, int, int] | None:
    """Return the author's place for a line and column of the runnable file."""
    if not 0 < line < len(lines) or not isinstance(sources, list):
        return None
    try:
        last = _segment(lines[line], column)
        if last is None:
            return None
        source, author_line, author_column = last
        name = sources[source]
    except (ValueError, IndexError):
        return None
    return (name[:300], author_line + 1, author_column + 1) if isinstance(name, str) and author_line >= 0 else None


def _segment(text: str, column: int) -> list[int] | None:
    """Return the last segment that begins before a column. Segments are in the order of columns, or the map lies."""
    low, high, found = 0, len(text), None
    while low < high:
        middle = (low + high) // 2
        start, end = max(low, text.rfind(",", low, middle) + 1), text.find(",", middle)
        end = len(text) if end < 0 else end
        at, *rest = map(int, text[start:end].split(":"))
        if at < column:
            low, found = end + 1, rest
        else:
            high = start - 1
    return found
