"""Differences between two versions of a script or two revisions of a schedule, with bounded work on hostile text."""

import difflib
import re
from collections.abc import Mapping

from lodger.engine.store.records import Change, FileDiff, Json

#: Maximum product of both sides' lines for a comparison by lines; longer texts are shown as one replaced block.
MAX_PAIRS = 2_000_000
CONTEXT = 3
#: The line numbers at the head of a hunk, such as ``@@ -12,3 +12,4 @@``.
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)")


def of_files(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[FileDiff, ...]:
    """Return the files that differ, each as a unified diff."""
    found = []
    for file in [*older, *(file for file in newer if file not in older)]:
        before, after = older.get(file), newer.get(file)
        if before == after:
            continue
        text = unified(before or "", after or "")
        found.append(FileDiff(file, "added" if before is None else "removed" if after is None else "changed", text))
    return tuple(found)


def unified(before: str, after: str) -> str:
    """Return a unified diff without its two lines of file names.

    Equal lines at the beginning and the end are removed first. The rest is compared by lines, unless it is so long that
    the quadratic comparison would take seconds: then it is one replaced block.
    """
    old, new = before.split("\n"), after.split("\n")
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = len(old) - head - tail, len(new) - head - tail
    if middle_old * middle_new > MAX_PAIRS:
        lead = max(0, head - CONTEXT)
        lines = [
            f"@@ -{lead + 1},{len(old) - lead - max(0, tail - CONTEXT)} +{lead + 1},{len(new) - lead - max(0, tail - CONTEXT)} @@"
        ]
        lines += [" " + line for line in old[lead:head]]
        lines += ["-" + line for line in old[head : len(old) - tail]]
        lines += ["+" + line for line in new[head : len(new) - tail]]
        lines += [" " + line for line in old[len(old) - tail : len(old) - tail + min(tail, CONTEXT)]]
        return "\n".join(lines)
    # Distant lines cannot change how near ones are matched: they are removed and added to the line numbers again.
    skip = max(0, head - CONTEXT)
    end = max(0, tail - CONTEXT)
    given = list(difflib.unified_diff(old[skip : len(old) - end], new[skip : len(new) - end], lineterm="", n=CONTEXT))
    return "\n".join(
        _HUNK.sub(lambda head: f"@@ -{int(head[1]) + skip}{head[2] or ''} +{int(head[3]) + skip}", line)
        if line.startswith("@@ ")
        else line
        for line in given[2:]
    )


def of_fields(older: Mapping[str, Json], newer: Mapping[str, Json]) -> tuple[Change, ...]:
    """Return the fields that differ, in the order of the newer object."""
    names = [*newer, *(name for name in older if name not in newer)]
    return tuple(Change(name, older.get(name), newer.get(name)) for name in names if older.get(name) != newer.get(name))
