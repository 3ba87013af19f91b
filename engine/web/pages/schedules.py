"""Pages of schedules."""

from typing import Any

from lodger.engine.web import rendering
from lodger.engine.web.page import PAGE, Reader, Values

#: Runs in a sparkline.
RUNS = 30


async def schedules(reader: Reader) -> tuple[str, Values]:
    """Return the list of schedules."""
    asked = reader.chosen("state", "cursor")
    found = await reader.ask("schedules.list", **reader.tenant, limit=PAGE, **asked)
    return "schedules.html", {"schedules": found}


async def schedule(reader: Reader) -> tuple[str, Values]:
    """Return one schedule."""
    tenant, name = reader.tenant, reader.request.path_params["schedule"]
    schedule = await reader.ask("schedules.get", **tenant, schedule=name)
    runs = await reader.ask("actions.list", **tenant, schedule=schedule.id, limit=RUNS)
    durations = [each for each in map(rendering.took, reversed(runs)) if each is not None]
    slots: Any = None
    if schedule.state == "armed" and schedule.rules.rules:
        rules = schedule.rules
        with_rules = {"rules": list(rules.rules), "exclusions": list(rules.exclusions), "tz": schedule.tz}
        slots = await _preview(reader, with_rules)
    return "schedule.html", {
        "schedule": schedule,
        "runs": runs,
        "durations": durations,
        "preview": slots,
        "revisions": await reader.ask("schedules.revisions", **tenant, schedule=schedule.id, limit=10),
    }


async def _preview(reader: Reader, rules: Values) -> Any:  # noqa: ANN401 - a preview or None
    try:
        return await reader.ask("schedules.preview", **rules, n=10)
    except Exception:  # noqa: BLE001 - a rule on changes has no preview
        return None
