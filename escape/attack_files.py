"""Attacks in files of their own language beside the module that reads them.

A mark at the start of a line (``//`` in JavaScript, ``;;`` in WebAssembly's text, ``#`` in others) begins each piece:

======================  ==============================================================================================================
``//= GROUP WALL``      a table: its cases are called GROUP-NAME and stopped by WALL
``//= NAME``            a table that a module reads by its name
``//- NAME: MECHANISM``  a row of the table, followed by its text
``//: FIELD JSON``      after a table's line a field of all its cases, after a row's line one of that case
``//+ PART``            a further part of the row
======================  ==============================================================================================================

``«TEXT×COUNT»`` in a text or a part stands for so many repetitions, with their numbers in the place of ``#``.

Fields are those of :class:`Case`. Besides, ``script`` is the script of all with each text in the place of ``ATTACK``; ``put`` maps words of
the script to others; ``says`` is the mechanism of all with the row's in the place of ``{}``; ``mark`` ends all names; ``made`` names what
makes fields of a text; ``seen`` maps checks to their arguments; ``again`` lists fields of further cases of the same rows, which may be of
another ``group``. Other comments are for people.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lodger.escape import evidence
from lodger.escape.case import Case
from lodger.sandbox.outcome import Outcome

_REPEATED = re.compile("«(.+?)×([0-9]+)»", re.DOTALL)
_MARKS = {".js": "//", ".wat": ";;", ".txt": "#"}


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table: its name, mechanism, text, further parts and fields."""

    name: str
    mechanism: str
    text: str
    parts: dict[str, str]
    fields: dict[str, Any]


def texts(module: str, table: str, suffix: str = ".js") -> dict[str, str]:
    """Return the texts of the rows of a table of a module's file by their names."""
    return {row.name: row.text for name, _, rows in _tables(module, suffix) if name == table for row in rows}


def cases_of(
    module: str,
    suffix: str = ".js",
    *,
    checks: Mapping[str, Any] | None = None,
    common: Mapping[str, Any] | None = None,
    **made: Callable[..., dict[str, Any]],
) -> Iterator[Case]:
    """Yield the cases of the tables of a module's file that name a group and a wall.

    Args:
        checks: further checks by name, beside those of :mod:`lodger.escape.evidence`.
        common: fields of all cases.
        made: by name, what makes fields of a row's text and its parts.
    """
    for head, fields, rows in _tables(module, suffix):
        group, _, wall = head.partition(" ")
        if not wall:
            continue
        for more in ({}, *fields.pop("again", ())):
            for row in rows:
                yield _case(
                    group,
                    {**(common or {}), "wall": wall} | fields | more | row.fields,
                    row,
                    made,
                    vars(evidence) | dict(checks or {}),
                )


def _case(
    group: str,
    fields: dict[str, Any],
    row: _Row,
    made: Mapping[str, Callable[..., dict[str, Any]]],
    checks: Mapping[str, Any],
) -> Case:
    """Return the case of a row with these fields."""
    name = f"{fields.pop('group', group)}-{row.name}{fields.pop('mark', '')}"
    mechanism = fields.pop("says", "{}").replace("{}", row.mechanism or row.name)
    text = fields.pop("script", "ATTACK").replace("ATTACK", row.text)
    for word, other in fields.pop("put", {}).items():
        text = text.replace(word, other)
    maker = fields.pop("made", None)
    fields |= made[maker](text, **row.parts) if maker else {"script": text}
    if isinstance(seen := fields.get("seen"), dict):
        every = [checks[check](*given) if isinstance(given, list) else checks[check] for check, given in seen.items()]
        fields["seen"] = every[0] if len(every) == 1 else evidence.both(*every)
    for kind, of in (("expect", Outcome), ("behind", str), ("runtimes", str)):
        if kind in fields:
            fields[kind] = tuple(map(of, fields[kind]))
    return Case(name, mechanism=mechanism, **fields)


def _tables(module: str, suffix: str) -> Iterator[tuple[str, dict[str, Any], list[_Row]]]:
    """Yield name, fields and rows of each table of a module's file."""
    mark = re.escape(_MARKS[suffix])
    text = Path(module).with_suffix(suffix).read_text("utf-8")
    _, *pieces = re.split(rf"^{mark}= (.+)\n", text, flags=re.MULTILINE)
    for name, table in zip(pieces[::2], pieces[1::2], strict=True):
        head, *rows = re.split(rf"^{mark}- (.+)\n", table, flags=re.MULTILINE)
        yield name, _fields(head, mark)[0], [_row(*row, mark) for row in zip(rows[::2], rows[1::2], strict=True)]


def _row(head: str, body: str, mark: str) -> _Row:
    """Return a row from its line and what follows it."""
    name, _, mechanism = head.partition(": ")
    text, *parts = re.split(rf"^{mark}\+ (.+)\n", body, flags=re.MULTILINE)
    fields, text = _fields(text, mark)
    more = {part: _repeated(each) for part, each in zip(parts[::2], parts[1::2], strict=True)}
    return _Row(name, mechanism, _repeated(text), more, fields)


def _repeated(text: str) -> str:
    """Return a text without blanks around it, with its repetitions written out."""

    def write_out(found: re.Match[str]) -> str:
        """Return the repetitions of a part."""
        part, count = found[1], int(found[2])
        return "".join(part.replace("#", str(each)) for each in range(count)) if "#" in part else part * count

    return _REPEATED.sub(write_out, text.strip())


def _fields(text: str, mark: str) -> tuple[dict[str, Any], str]:
    """Return the fields at the start of a text, and the rest of it."""
    found = re.match(rf"(?:{mark}: .+\n)*", text)
    lines = found[0].splitlines() if found else []
    pairs = (line.split(" ", 2)[1:] for line in lines)
    return {name: json.loads(value) for name, value in pairs}, text[found.end() if found else 0 :]
