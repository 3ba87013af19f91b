"""Modules that every script can import by name: ``import Papa from "papaparse"``. Only scripts that import them get them."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from lodger.stdlib import npm_packages

#: Modules of Lodger's own, and packages of npm.
OWN = ("csv", "decimal", "html", "markdown", "stats", "testing")
NAMES = (*OWN, *npm_packages.imported())
#: Packages of which each export is a module of its own, too: ``lodash-es/groupBy.js``, ``date-fns/format``.
ONE_BY_ONE = ("date-fns", "lodash-es")
#: Other names of a package's whole.
_WHOLE = {"zod/v4": "zod", "marked/lib/marked.esm.js": "marked", "papaparse/papaparse.js": "papaparse", "mustache/mustache.mjs": "mustache",
          "decimal.js/decimal.mjs": "decimal.js"}  # fmt: skip
_ANY = "|".join(map(re.escape, (*NAMES, *_WHOLE)))
_SUBPATH = rf"(?:{'|'.join(ONE_BY_ONE)})/[A-Za-z_$][\w$]{{0,60}}(?:\.js)?"
IMPORT = re.compile(rf"""(?:\bfrom|\bimport)\s{{0,20}}\(?\s{{0,20}}["']({_ANY}|{_SUBPATH})["']""")
_NAME = re.compile(_ANY)


#: What sources import, by their hash and length: every run asks, and the pattern takes 15 µs for a KB.
_known: dict[tuple[int, int], tuple[str, ...]] = {}
_MAX_KNOWN = 10_000


def is_one(name: str) -> bool:
    """Whether a name is that of a standard module, which scripts can import."""
    package, _, part = name.partition("/")
    if package in ONE_BY_ONE and part:
        return part.removesuffix(".js") in exports(package)
    return _NAME.fullmatch(name) is not None


@cache
def exports(package: str) -> frozenset[str]:
    """Return the names that a package of npm exports: its bundle ends with them; none of another module."""
    if package not in npm_packages.imported():
        return frozenset()
    clause = source(package).rpartition("export{")[2].partition("}")[0]
    return frozenset(each.rpartition(" as ")[2].strip() for each in clause.split(","))


@cache
def source(name: str) -> str:
    """Return the text of a standard module."""
    package, _, part = name.partition("/")
    if whole := _WHOLE.get(name):
        default = "" if whole == "marked" else f'export {{ default }} from "{whole}"; '
        return f'{default}export * from "{whole}";\n'
    if part:
        export = part.removesuffix(".js")
        return f'export {{ {export} as default, {export} }} from "{package}";\n'
    if package in npm_packages.imported():
        return npm_packages.read(package, "index.js")
    return (files("lodger.stdlib") / "modules" / f"{name}.js").read_text()


def imported(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the standard modules that these sources import, with those that they import; a script's own file of that name wins."""
    found: dict[str, str] = {}
    texts = list(modules.values())
    while texts:
        for name in _named(texts.pop()):
            if name not in found and name not in modules:
                found[name] = source(name)
                if name not in npm_packages.imported():
                    texts.append(found[name])
    return found


def _named(text: str) -> tuple[str, ...]:
    """Return the standard modules that a source seems to import."""
    key = hash(text), len(text)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        found = _known[key] = tuple(filter(is_one, dict.fromkeys(IMPORT.findall(text))))
    return found
