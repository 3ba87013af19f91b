"""Pages of scripts."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lodger.engine.data.sets import typescript
from lodger.engine.web.listing import listing
from lodger.engine.web.page import Reader, Values

#: Versions that are listed and can be chosen.
VERSIONS = 30
#: Source of a new script.
EXAMPLE = """export default async ({ action, db, kv, now }) => {
  console.log("runs for the slot", String(action.slot));
  return { at: now };
};
"""


#: Sections that wings add to a script's page: what reads it for a script, None for no section, and the template that shows it.
SECTIONS: list[tuple[Callable[[Reader, str], Any], str]] = []


def scripts(reader: Reader) -> tuple[str, Values]:
    """Return the page with the list of scripts: its template and values."""
    return "scripts.html", {"listed": listing(reader, "scripts")}


def new(reader: Reader) -> tuple[str, Values]:
    """Return the page on which a script is created."""
    return "new_script.html", {"modules": {"main.js": EXAMPLE}, "platform": _platform(reader)}


def script(reader: Reader) -> tuple[str, Values]:
    """Return the page of one version of a script, with the difference of two versions: its template and values."""
    name = reader.request.path_params["script"]
    (version, versions, diff), platform, *found = reader.together(
        partial(_versions, reader, name),
        partial(_platform, reader),
        *(partial(load, reader, name) for load, _template in SECTIONS),
    )
    return "script.html", {
        "version": version,
        "versions": versions,
        "latest": versions[0].version if versions else version.version,
        "diff": diff,
        "sections": [
            {"template": template, "found": each}
            for (_load, template), each in zip(SECTIONS, found, strict=True)
            if each is not None
        ],
        "platform": platform,
    }


def _versions(reader: Reader, name: str) -> tuple[Any, Any, Any]:
    """Return one version of a script, all of them, and the difference of two."""
    of = reader.tenant | {"name": name}
    version, versions = reader.together(
        ("scripts.get", of | {"version": _number(reader, "version")}), ("scripts.versions", of | {"limit": VERSIONS})
    )
    newer = _number(reader, "newer") or version.version
    older = _number(reader, "older") or newer - 1
    if older <= 0 or version.wasm_bytes:
        return version, versions, None
    return version, versions, reader.ask("scripts.diff", **of, older=older, newer=newer)


def _platform(reader: Reader) -> str:
    """Return the TypeScript declarations of the datasets and functions of the platform that the tenant's scripts may use."""
    sets, functions = reader.together(("scripts.sets", reader.tenant), ("scripts.functions", reader.tenant))
    called = ((each.name, each.signature, each.help) for each in functions)
    return typescript.of_tenant({each.name: each.columns for each in sets}, called)


def _number(reader: Reader, name: str) -> int | None:
    """Return a query parameter that is a number; None without it."""
    text = reader.request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
