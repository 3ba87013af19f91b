"""The overview (what runs, what is due or overdue and why, the last hour, nodes, blocked sessions)."""

from lodger.engine.web.page import PAGE, Reader, Values


async def overview(reader: Reader) -> tuple[str, Values]:
    """Return the overview of all tenants or of one."""
    tenant = reader.tenant
    everywhere = tenant["tenant_id"] is None
    return "overview.html", {
        "activity": await reader.ask("actions.activity", **tenant),
        "running": await reader.ask("actions.running", **tenant, limit=PAGE),
        "overdue": await reader.ask("actions.overdue", **tenant, limit=PAGE),
        "nodes": await reader.ask("nodes.list", gone=False) if everywhere else None,
        "blocked": await reader.ask("metrics.blocked") if everywhere else None,
        "page": PAGE,
    }
