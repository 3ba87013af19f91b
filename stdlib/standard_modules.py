"""Modules that every script can import by name: ``import { parse } from "csv"``."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

NAMES = ("csv", "decimal", "html", "markdown", "markup", "stats", "testing")
_IMPORT = re.compile(rf"""(?:\bfrom|\bimport)\s{{0,20}}\(?\s{{0,20}}["']({"|".join(NAMES)})["']""")


@cache
def source(name: str) -> str:
    """Return the text of a standard module."""
    return (files("lodger.stdlib") / "modules" / f"{name}.js").read_text()


def imported(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the standard modules that these sources import, with those that they import; a script's own file of that name wins."""
    found: dict[str, str] = {}
    texts = list(modules.values())
    while texts:
        for name in _IMPORT.findall(texts.pop()):
            if name not in found and name not in modules:
                found[name] = source(name)
                texts.append(found[name])
    return found
