"""Pages of tenants, and the audit log."""

from lodger.engine.web.page import PAGE, Reader, Values


async def tenants(reader: Reader) -> tuple[str, Values]:
    """Return the list of tenants."""
    found = await reader.ask("tenants.list", limit=PAGE, cursor=reader.request.query_params.get("cursor"))
    return "tenants.html", {"tenants": found}


async def audit(reader: Reader) -> tuple[str, Values]:
    """Return the audit log."""
    asked = reader.chosen("verb", "target", "actor", "cursor")
    found = await reader.ask("audit.list", **reader.tenant, limit=PAGE, **asked)
    return "audit.html", {"entries": found}
