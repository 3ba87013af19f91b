"""Pages of scripts."""

from lodger.engine.web.page import PAGE, Reader, Values


async def scripts(reader: Reader) -> tuple[str, Values]:
    """Return the list of scripts."""
    asked = reader.chosen("cursor")
    found = await reader.ask("scripts.list", **reader.tenant, limit=PAGE, **asked)
    return "scripts.html", {"scripts": found}


async def script(reader: Reader) -> tuple[str, Values]:
    """Return one version of a script."""
    tenant, name = reader.tenant, reader.request.path_params["script"]
    asked = reader.request.query_params.get("version", "")
    version = await reader.ask("scripts.get", **tenant, name=name, version=int(asked) if asked.isdigit() else None)
    diff = None
    if version.version > 1 and not version.wasm_bytes:
        diff = await reader.ask("scripts.diff", **tenant, name=name, older=version.version - 1, newer=version.version)
    return "script.html", {
        "version": version,
        "versions": await reader.ask("scripts.versions", **tenant, name=name, limit=20),
        "diff": diff,
    }
