"""Pages of actions."""

from lodger.engine.core.errors import NotFound
from lodger.engine.web.page import PAGE, Reader, Values


async def actions(reader: Reader) -> tuple[str, Values]:
    """Return the list of actions."""
    asked = reader.chosen("schedule", "state", "outcome", "origin", "script", "cursor")
    found = await reader.ask("actions.list", **reader.tenant, limit=PAGE, **asked)
    return "actions.html", {"actions": found, "asked": asked}


async def action(reader: Reader) -> tuple[str, Values]:
    """Return one action."""
    tenant, action_id = reader.tenant, reader.request.path_params["action"]
    action = await reader.ask("actions.get", **tenant, action_id=action_id)
    source = None
    if action.error is not None and action.error.line is not None and action.script is not None:
        try:
            version = await reader.ask("scripts.get", **tenant, name=action.script, version=action.script_version)
            source = version.modules.get(action.error.file or "main.js")
        except NotFound:
            source = None
    return "action.html", {
        "action": action,
        "attempts": await reader.ask("actions.attempts", **tenant, action_id=action.id),
        "logs": await reader.ask("actions.logs", **tenant, action_id=action.id),
        "deliveries": await reader.ask("actions.deliveries", **tenant, action_id=action.id),
        "compared": await reader.ask("actions.compared", **tenant, action_id=action.id),
        "source": source,
    }
