"""Pages of schedules."""

from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.web import heat_map, rendering
from lodger.engine.web.listing import listing, term
from lodger.engine.web.page import Reader, Values

#: Runs in the list of a schedule, and in a sparkline.
RUNS, SPARK_RUNS = 30, 20
#: Slots that are listed.
SLOTS = 8


def terms(reader: Reader) -> str:
    """Return the term of the state that the page is asked for."""
    return " ".join(term(name, value) for name, value in reader.chosen("state").items())


async def schedules(reader: Reader) -> tuple[str, Values]:
    """Return the list of schedules."""
    listed = await listing(reader, "schedules", terms(reader))
    recent = await reader.ask(
        "schedules.recent", **reader.tenant, schedule_ids=[each.id for each in listed.entries], runs=SPARK_RUNS
    )
    return "schedules.html", {
        "listed": listed,
        "recent": {each.schedule_id: each.runs for each in recent},
        "now": reader.now,
    }


async def new(reader: Reader) -> tuple[str, Values]:
    """Return the page on which a schedule is created."""
    return "new_schedule.html", {
        "scripts": await reader.ask("scripts.list", **reader.tenant, limit=1000),
        "offered": await reader.ask("scripts.offered"),
        "chosen": reader.request.query_params.get("script", ""),
    }


async def schedule(reader: Reader) -> tuple[str, Values]:
    """Return one schedule."""
    tenant, name = reader.tenant, reader.request.path_params["schedule"]
    schedule = await reader.ask("schedules.get", **tenant, schedule=name)
    runs = await reader.ask("actions.list", **tenant, schedule=schedule.id, limit=RUNS)
    calendar = await reader.ask("schedules.calendar", **tenant, schedule=schedule.id)
    durations = [each for each in map(rendering.took, reversed(runs)) if each is not None]
    slots = await _preview(reader, schedule) if schedule.state == "armed" and schedule.next_at else None
    return "schedule.html", {
        "schedule": schedule,
        "runs": runs,
        "durations": durations,
        "preview": slots,
        "past": heat_map.past(calendar.past),
        "coming": heat_map.coming(calendar.coming),
        "complete": calendar.complete,
        "rules": to_jsonable(schedule.rules),
        "revisions": await reader.ask("schedules.revisions", **tenant, schedule=schedule.id, limit=10),
        "now": reader.now,
    }


async def _preview(reader: Reader, schedule: Any) -> Any:
    """Return the next slots of a schedule."""
    rules = schedule.rules
    try:
        return await reader.ask(
            "schedules.preview", rules=rules.rules, exclusions=rules.exclusions, tz=rules.tz, dst=rules.dst,
            start=rules.start, end=rules.end, n=SLOTS,
        )  # fmt: skip
    except InputError:  # rules that were valid once
        return None
