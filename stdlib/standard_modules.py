"""Modules that every script can import by name: ``import { parse } from "csv"``."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

NAMES = ("csv", "decimal", "html", "markdown", "markup", "stats", "testing")
IMPORT = re.compile(rf"""(?:\bfrom|\bimport)\s{{0,20}}\(?\s{{0,20}}["']({"|".join(NAMES)})["']""")


#: What sources import, by their hash and length: every run asks, and the pattern takes 15 µs for a KB.
_known: dict[tuple[int, int], tuple[str, ...]] = {}
_MAX_KNOWN = 10_000


@cache
def source(name: str) -> str:
    """Return the text of a standard module."""
    return (files("lodger.stdlib") / "modules" / f"{name}.js").read_text()


def imported(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the standard modules that these sources import, with those that they import; a script's own file of that name wins."""
    found: dict[str, str] = {}
    texts = list(modules.values())
    while texts:
        for name in _named(texts.pop()):
            if name not in found and name not in modules:
                found[name] = source(name)
                texts.append(found[name])
    return found


def _named(text: str) -> tuple[str, ...]:
    """Return the standard modules that a source names in its imports."""
    key = hash(text), len(text)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        found = _known[key] = tuple(dict.fromkeys(IMPORT.findall(text)))
    return found
