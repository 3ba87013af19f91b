"""The overview: what runs, what is overdue and why, the latest failures, nodes and blocked sessions."""

from lodger.engine.web import rendering
from lodger.engine.web.page import PAGE, Reader, Values


async def overview(reader: Reader) -> tuple[str, Values]:
    """Return the overview of all tenants or of one."""
    tenant = reader.tenant
    everywhere = tenant["tenant_id"] is None
    running = await reader.ask("actions.running", **tenant, limit=PAGE)
    overdue = await reader.ask("actions.overdue", **tenant, limit=PAGE)
    recent = await reader.ask("actions.list", **tenant, limit=200)
    ended = [each for each in recent if each.finished_at is not None]
    late = sorted(each for each in map(rendering.lateness, ended) if each is not None)
    outcomes: dict[str, int] = {}
    for each in ended:
        name = each.outcome.value if each.outcome else each.state
        outcomes[name] = outcomes.get(name, 0) + 1
    return "overview.html", {
        "running": running,
        "overdue": overdue,
        "failed": [each for each in ended if each.state == "failed"][:10],
        "outcomes": sorted(outcomes.items(), key=lambda pair: -pair[1]),
        "ended": len(ended),
        "late": {"p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100]} if late else None,
        "lateness": [each for each in map(rendering.lateness, reversed(ended)) if each is not None],
        "nodes": await reader.ask("nodes.list", gone=False) if everywhere else None,
        "blocked": await reader.ask("metrics.blocked") if everywhere else None,
    }
