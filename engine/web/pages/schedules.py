"""Pages of schedules."""

from functools import partial
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.web import month_view, rendering, rule_form
from lodger.engine.web.listing import listing
from lodger.engine.web.page import Reader, Values
from lodger.engine.web.pages import operations

#: Runs in the list of a schedule, and in a sparkline.
RUNS, SPARK_RUNS = 30, 20
#: Slots that are listed.
SLOTS = 8


def schedules(reader: Reader) -> tuple[str, Values]:
    """Return the page with the list of schedules: its template and values."""
    listed = listing(reader, "schedules", ("state",))
    recent = reader.ask(
        "schedules.recent", **reader.tenant, schedule_ids=[each.id for each in listed.entries], runs=SPARK_RUNS
    )
    return "schedules.html", {
        "listed": listed,
        "recent": {each.schedule_id: each.runs for each in recent},
    }


def new(reader: Reader) -> tuple[str, Values]:
    """Return the page on which a schedule is created."""
    scripts, offered = reader.together(("scripts.list", reader.tenant | {"limit": 1000}), ("scripts.offered", {}))
    return "new_schedule.html", {
        "builder": rule_form.fields_of(None),
        "more": operations.form(reader, "schedules.create"),
        "scripts": scripts,
        "offered": offered,
        "chosen": reader.request.query_params.get("script", ""),
    }


def schedule(reader: Reader) -> tuple[str, Values]:
    """Return the page of one schedule: its template and values."""
    tenant, name = reader.tenant, reader.request.path_params["schedule"]
    schedule = reader.ask("schedules.get", **tenant, schedule=name)
    of = tenant | {"schedule": schedule.id}
    runs, calendar, revisions, slots = reader.together(
        ("actions.list", of | {"limit": RUNS}),
        ("schedules.calendar", of),
        ("schedules.revisions", of | {"limit": 10}),
        partial(_preview, reader, schedule),
    )
    coming = {each.day.isoformat(): each.slots for each in calendar.coming}
    durations = [each for each in map(rendering.took, reversed(runs)) if each is not None]
    return "schedule.html", {
        "schedule": schedule,
        "runs": runs,
        "durations": durations,
        "preview": slots,
        "days": month_view.coming(coming) | month_view.past(calendar.past),
        "complete": calendar.complete,
        "builder": rule_form.fields_of(schedule.rules),
        "revisions": revisions,
        "pause": operations.form(reader, "schedules.pause", {"schedule": schedule.name}),
        "now": reader.now,
    }


def _preview(reader: Reader, schedule: Any) -> Any:
    """Return the next slots of a schedule; None for one that has none."""
    if schedule.state != "armed" or not schedule.next_at:
        return None
    try:
        return reader.ask("schedules.preview", **reader.tenant, **schedule.rules.arguments, n=SLOTS)
    except InputError:  # rules that were valid once
        return None
