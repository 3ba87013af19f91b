"""Events of a node as ``lodger up`` writes them: a line for people, an object for programs."""

from typing import Any

from lodger.engine.core.clock import from_us
from lodger.engine.core.events import Event
from lodger.engine.core.plain_text import one_line
from lodger.engine.effects.finished import Finished
from lodger.engine.output import views
from lodger.engine.output.result_output import shown_instant
from lodger.engine.service.humanize import humanize_duration

#: Kinds that are written; a tick that found nothing due is not, and a fault has its line in the log.
KINDS = frozenset({
    "skipped", "finished", "lost", "rescued", "paused", "node_lost", "lease_lost", "ledger_replaced", "retimed", "clock_wrong",
    "handed_back",
})  # fmt: skip


def body(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object: its plain details, and of an attempt its duration and its error."""
    plain = {name: value for name, value in event.details.items() if isinstance(value, str | int | float | None)}
    finished = event.details.get("finished")
    if isinstance(finished, Finished):
        plain["took_ms"] = finished.usage.wall_ms
        plain["error"] = views.error(finished.error) if finished.error else None
    names = ("kind", "at_us", "tenant_id", "schedule_id", "action_id")
    return {name: getattr(event, name) for name in names} | plain


def line(event: Event) -> str:
    """Return an event as a line: time, kind, tenant, and non-empty details."""
    details = body(event)
    head = f"{_instant(details.pop('at_us'))}  {details.pop('kind'):8}  {details.pop('tenant_id') or '-'}"
    parts = _attempt(details) if event.kind in {"finished", "lost"} else []
    parts += [f"{name}={text}" for name, text in map(_detail, details, details.values()) if text]
    return one_line("  ".join([head, *parts]))


def _attempt(details: dict[str, Any]) -> list[str]:
    """Return the parts of a line about an attempt: script, outcome, step, duration, error, id. They are removed from the event's
    details."""
    for name in ("next_us", "schedule_id"):
        details.pop(name, None)
    outcome, state = details.pop("outcome", None), details.pop("state", None)
    again, step = details.pop("retry_at_us", None), details.pop("step", 0)
    took_ms, error = details.pop("took_ms", None), details.pop("error", None)
    ended = [str(outcome)] if outcome else []
    if again is not None:
        ended.append(f"next attempt {_instant(again)}")
    elif outcome == "ok" and state == "ready":
        ended.append(f"next step {step + 2}")
    numbers = [f"step {step + 1}"] if step else []
    numbers.append(f"attempt {details.pop('attempt', 1)}")
    slot = details.pop("slot_us", None)
    return [
        text
        for text in (
            details.pop("script", ""),
            f"slot {_instant(slot)}" if slot is not None else "",
            ", ".join(ended),
            ", ".join(numbers),
            humanize_duration(took_ms / 1000) if took_ms is not None else "",
            error,
            f"id {views.short(details.pop('action_id', None))}",
        )
        if text
    ]


def _detail(name: str, value: Any) -> tuple[str, str]:
    """Return the name and the text of a detail, as an event's line shows them."""
    if value in (None, ""):
        return name, ""
    if name.endswith("_us"):
        return name.removesuffix("_us"), _instant(value)
    if name.endswith("_id"):
        return name.removesuffix("_id"), views.short(value)
    return name, str(value)


def _instant(us: int) -> str:
    """Return an instant in whole seconds as text."""
    return shown_instant(from_us(us).replace(microsecond=0))
