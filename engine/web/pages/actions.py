"""Pages of actions."""

from datetime import UTC, datetime
from typing import Any

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.store.actions.actions import ORIGINS, OUTCOMES, STATES
from lodger.engine.web.page import PAGE, Reader, Values

#: Names that the filters for schedules and scripts suggest.
SUGGESTED = 200
CHOICES = {"state": STATES, "outcome": OUTCOMES, "origin": ORIGINS}


async def actions(reader: Reader) -> tuple[str, Values]:
    """Return the list of actions.

    Raises:
        InputError: instant_invalid.
    """
    tenant = reader.tenant
    asked = reader.chosen("schedule", "script", *CHOICES)
    asked |= {name: _instant(text) for name, text in reader.chosen("since", "until").items()}
    found = await reader.ask("actions.list", **tenant, limit=PAGE, **asked, **reader.chosen("cursor"))
    of_tenant = tenant["tenant_id"] is not None
    schedules = await reader.ask("schedules.list", **tenant, limit=SUGGESTED) if of_tenant else []
    scripts = await reader.ask("scripts.list", **tenant, limit=SUGGESTED) if of_tenant else []
    return "actions.html", {
        "actions": found,
        "asked": asked,
        "choices": CHOICES,
        "schedules": sorted({each.name for each in schedules}),
        "scripts": sorted({each.name for each in scripts}),
    }


def _instant(text: str) -> datetime:
    """Return the instant of a field of date and time, which is in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fix = "choose a date and a time, such as 2027-01-31T09:00"
        raise InputError("instant_invalid", f"{text!r} is not an instant", fix=fix) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
    attempts = await reader.ask("actions.attempts", **tenant, action_id=action.id)
    logs = await reader.ask("actions.logs", **tenant, action_id=action.id)
    limits = await reader.ask("actions.limits", **tenant, action_id=action.id)
    compared = await reader.ask("actions.compared", **tenant, action_id=action.id)
    return "action.html", {
        "action": action,
        "attempts": attempts,
        "logs": logs,
        "deliveries": await reader.ask("actions.deliveries", **tenant, action_id=action.id),
        "compared": compared,
        "usage": _usage(attempts, compared, logs, limits),
        "source": source,
    }


def _usage(attempts: list[Any], compared: list[Any], logs: list[Any], limits: list[dict[str, int]]) -> Values | None:
    """Return what the last attempt used beside its limits; None before the first attempt."""
    if not attempts:
        return None
    last = attempts[-1]
    # A running attempt has no usage yet: its lines are all those without an attempt that has ended.
    lines = last.logs if last.outcome else logs[sum(len(each.logs) for each in attempts) :]
    return {
        "limits": limits[min(last.step, len(limits) - 1)],
        "measured": last.outcome is not None,
        "cpu_ms": last.usage.cpu_ms,
        "wall_ms": compared[-1].took_ms if compared else last.usage.wall_ms,
        "memory_bytes": last.usage.memory_peak_bytes,
        "host_calls": last.usage.host_calls,
        "log_bytes": sum(len(line.text.encode()) for line in lines),
    }
