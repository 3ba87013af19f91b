"""Scripts of attacks, in files of their own language beside the module whose cases they are.

A comment at the start of a line begins each piece (``//`` in JavaScript, ``;;`` in WebAssembly's text, ``#`` in others):
``//= TABLE``, then for each row ``//- NAME: MECHANISM`` and its script, and ``//+ PART`` before each further part of the row. A comment
between a table's line and its first row is for people.
"""

import re
from pathlib import Path
from typing import Any

_MARKS = {".js": "//", ".wat": ";;", ".txt": "#"}


def attacks(module: str, suffix: str = ".js") -> dict[str, list[tuple[Any, ...]]]:
    """Return the tables of a module's file by name, as rows of name, mechanism and script.

    A row has no mechanism if the file names none. In a table with further parts, each row ends with a dict of them.
    """
    mark = re.escape(_MARKS[suffix])
    _, *pieces = re.split(rf"^{mark}= (.+)\n", Path(module).with_suffix(suffix).read_text("utf-8"), flags=re.MULTILINE)
    return {name: _rows(text, mark) for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def _rows(text: str, mark: str) -> list[tuple[Any, ...]]:
    """Return the rows of an attack table from its text; ``mark`` begins a comment."""
    _, *pieces = re.split(rf"^{mark}- (.+)\n", text, flags=re.MULTILINE)
    rows = []
    for head, body in zip(pieces[::2], pieces[1::2], strict=True):
        script, *parts = re.split(rf"^{mark}\+ (.+)\n", body, flags=re.MULTILINE)
        more = {name: part.strip() for name, part in zip(parts[::2], parts[1::2], strict=True)}
        rows.append((*head.split(": ", 1), script.strip(), more))
    has_parts = any(row[-1] for row in rows)
    return rows if has_parts else [row[:-1] for row in rows]
