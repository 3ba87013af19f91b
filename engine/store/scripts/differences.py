"""Differences between two versions of a script or two revisions of a schedule, with bounded work on hostile text."""

import difflib
from collections.abc import Mapping

from lodger.engine.store.records import Change, FileDiff, Json

#: Maximum product of both sides' lines for a comparison by lines; longer texts are shown as one replaced block.
MAX_PAIRS = 2_000_000
CONTEXT = 3


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
    return "\n".join(_moved(line, skip) for line in given[2:])


def _moved(line: str, by: int) -> str:
    """Return the head of a diff's hunk with its line numbers moved."""
    if not line.startswith("@@ ") or not by:
        return line
    parts = line.split(" ")
    return " ".join([parts[0], _shifted(parts[1], by), _shifted(parts[2], by), *parts[3:]])


def _shifted(span: str, by: int) -> str:
    """Return the line numbers in a hunk's head, such as ``12,3``, moved by so many lines."""
    start, _, length = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}" + (f",{length}" if length else "")


def of_fields(older: Mapping[str, Json], newer: Mapping[str, Json]) -> tuple[Change, ...]:
    """Return the fields that differ, in the order of the newer object."""
    names = [*newer, *(name for name in older if name not in newer)]
    return tuple(Change(name, older.get(name), newer.get(name)) for name in names if older.get(name) != newer.get(name))
