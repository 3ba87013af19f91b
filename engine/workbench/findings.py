"""Findings about a folder of scripts: the fault, its place, and the text to write instead."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``level`` is error, which makes a deployment impossible, or warning; ``line`` and ``column`` are 1-based, None if it
    concerns the whole file."""

    level: str
    file: str
    code: str
    message: str
    fix: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(each) for each in (self.file, self.line, self.column) if each is not None)
        return f"{place}: {self.level}: {self.message}  [{self.code}]"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the advice that names the nearest known word, or all of them if none is near."""
    names = sorted(known)
    near = similar(word, names)
    return f"did you mean {near}?" if near else "one of: " + ", ".join(names)


def similar(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like another one; None if none is near."""
    return next(iter(difflib.get_close_matches(word[:100], sorted(known), 1)), None)
