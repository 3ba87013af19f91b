"""Pages of scripts."""

from collections.abc import Awaitable, Callable
from typing import Any

from lodger.engine.core.serialization import to_jsonable
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
SECTIONS: list[tuple[Callable[[Reader, str], Awaitable[Any]], str]] = []


async def scripts(reader: Reader) -> tuple[str, Values]:
    """Return the list of scripts."""
    return "scripts.html", {"listed": await listing(reader, "scripts"), "now": reader.now}


async def new(reader: Reader) -> tuple[str, Values]:
    """Return the page on which a script is created."""
    sets = await reader.ask("scripts.sets", **reader.tenant)
    return "new_script.html", {"modules": {"main.js": EXAMPLE}, "sets": to_jsonable(sets)}


async def script(reader: Reader) -> tuple[str, Values]:
    """Return one version of a script, and the difference of two versions."""
    tenant, name = reader.tenant, reader.request.path_params["script"]
    version = await reader.ask("scripts.get", **tenant, name=name, version=_number(reader, "version"))
    versions = await reader.ask("scripts.versions", **tenant, name=name, limit=VERSIONS)
    newer = _number(reader, "newer") or version.version
    older = _number(reader, "older") or newer - 1
    diff = None
    if older > 0 and not version.wasm_bytes:
        diff = await reader.ask("scripts.diff", **tenant, name=name, older=older, newer=newer)
    return "script.html", {
        "version": version,
        "versions": versions,
        "latest": versions[0].version if versions else version.version,
        "diff": diff,
        "sections": [
            {"template": template, "found": found}
            for load, template in SECTIONS
            if (found := await load(reader, name)) is not None
        ],
        "sets": to_jsonable(await reader.ask("scripts.sets", **tenant)),
        "now": reader.now,
    }


def _number(reader: Reader, name: str) -> int | None:
    """Return a query parameter that is a number; None without it."""
    text = reader.request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
