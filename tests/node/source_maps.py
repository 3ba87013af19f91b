"""Source maps that a test writes."""

import json
from typing import Any

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


#: By line of main.js: (column, source, line, column), all from 0.
Segments = list[list[tuple[int, int, int, int]]]


def vlq(value: int) -> str:
    """Return a number as a source map writes it: base64 VLQ."""
    rest, found = (-value << 1 | 1) if value < 0 else value << 1, ""
    while True:
        found += _DIGITS[rest & 31 | (32 if rest > 31 else 0)]
        rest >>= 5
        if not rest:
            return found


def source_map(lines: Segments, **more: Any) -> str:
    """Return a source map with these segments."""
    last, parts = [0, 0, 0], []
    for line in lines:
        at, segments = 0, []
        for column, *place in line:
            segments.append(vlq(column - at) + "".join(vlq(new - old) for new, old in zip(place, last, strict=True)))
            at, last = column, list(place)
        parts.append(",".join(segments))
    sources = ["../src/sum.ts", "../src/main.ts"]
    return json.dumps({"version": 3, "sources": sources, "mappings": ";".join(parts), "names": []} | more)
