"""Pages of actions."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from lodger.engine.core.errors import NotFound
from lodger.engine.store.actions.actions import ORIGINS, OUTCOMES, STATES
from lodger.engine.store.records import Action, Schedule
from lodger.engine.store.scripts import source_maps
from lodger.engine.web.listing import listing
from lodger.engine.web.page import Reader, Values
from lodger.engine.web.timeline import timeline

#: Hook of wings: further values of an action's page.
VALUES: list[Callable[[Reader, Action], Values]] = []
CHOICES = {"state": STATES, "outcome": OUTCOMES, "origin": ORIGINS}


def actions(reader: Reader) -> tuple[str, Values]:
    """Return the list of actions.

    Raises:
        InputError: filter_invalid.
    """
    listed = listing(reader, "actions", ("schedule", "script", *CHOICES, "since", "until"))
    return "actions.html", {"listed": listed, "choices": CHOICES}


def action(reader: Reader) -> tuple[str, Values]:
    """Return the page of one action: its template and values."""
    tenant, action_id = reader.tenant, reader.request.path_params["action"]
    action = reader.ask("actions.get", **tenant, action_id=action_id)
    of = tenant | {"action_id": action.id}
    attempts, logs, limits, deliveries, compared, schedule, beside, source, *more = reader.together(
        *((f"actions.{each}", of) for each in ("attempts", "logs", "limits", "deliveries", "compared")),
        *(partial(found, reader, action) for found in (_schedule, _beside, _source, *VALUES)),
    )
    levels, text = (
        reader.request.query_params.get("level", "").split(),
        reader.request.query_params.get("text", "").lower(),
    )
    return "action.html", {
        "action": action,
        "zone": schedule and schedule.tz,
        "input": None if schedule is None else schedule.params,
        "attempts": attempts,
        "files": ("actions.logs", of),
        "logs": logs,
        "shown": [each for each in logs if text in each.text.lower() and each.level in (levels or [each.level])],
        "deliveries": deliveries,
        "timeline": timeline(action, attempts, deliveries, reader.now),
        "beside": beside,
        "compared": compared,
        "usage": _usage(attempts, compared, logs, limits),
        "source": source,
        "calls": (),
        **{name: value for each in more for name, value in each.items()},
        **({} if action.params is None else {"input": action.params}),
    }


def _schedule(reader: Reader, action: Action) -> Schedule | None:
    """Return the schedule of an action; None without one, or when it is gone."""
    if action.schedule_id is None:
        return None
    found = reader.find("schedules.get", tenant_id=action.tenant_id, schedule=action.schedule_id)
    return cast("Schedule | None", found)


def _beside(reader: Reader, action: Action) -> Values:
    """Return the actions of the same schedule that were created before and after an action; None where there is none."""
    if action.schedule_id is None:
        return {"previous": None, "next": None}
    of = {"tenant_id": action.tenant_id, "schedule": action.schedule_id, "limit": 1}
    before, after = reader.together(
        ("actions.list", of | {"before": action.id}),
        ("actions.list", of | {"after": action.id, "filter": "sort:created"}),
    )
    return {"previous": next(iter(before), None), "next": next(iter(after), None)}


def _source(reader: Reader, action: Action) -> str | None:
    """Return the text of the file that an error is in: the script's own, another script's or a library's, or a source of its map."""
    if action.error is None or action.error.line is None or action.script is None:
        return None
    file = action.error.file or "main.js"
    try:
        version = reader.ask("scripts.get", **reader.tenant, name=action.script, version=action.script_version)
        start = next((each for each in version.uses if file.startswith(f"{each}/")), None)
        if start is not None:
            name = start[4:].rpartition("@")[0] if start.startswith("lib:") else start[3:]
            used = reader.ask("scripts.get", **reader.tenant, name=name, version=version.uses[start])
            return cast("str | None", used.modules.get(file[len(start) + 1 :]))
    except NotFound:
        return None
    mapped = version.modules.get(source_maps.FILE)
    return version.modules.get(file) or (None if mapped is None else source_maps.author_source(mapped, file))


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
