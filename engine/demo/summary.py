"""Summary of the demo, with every figure counted from the ledger."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from lodger.engine.service.humanize import humanize_duration
from lodger.engine.store.schema.script_data import outbox

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

#: What a line counts an action as, by the action's state; others wait.
_COUNTED = {"done": "ran", "failed": "failed", "skipped": "gaps"}


def summarise(engine: "Engine", began: datetime, ended: datetime, late_ms: list[float]) -> dict[str, Any]:
    """Return counts and lateness of all runs of a ledger, as ``--json`` shows them.

    Args:
        late_ms: start minus due of each live attempt. The ledger has the planned start.

    Returns:
        ``lines``, one for each schedule or script that was asked for once; actions by ``states`` and by ``outcomes``; ``live_late_ms``
        (p50, p99, worst, number of slots) of the slots that were not missed; ``mails`` of the outbox by state.
    """
    lines: dict[tuple[str, str], dict[str, Any]] = {}

    def line(tenant: str, name: str) -> dict[str, Any]:
        counts = dict.fromkeys(("ran", "failed", "gaps", "waiting"), 0)
        return lines.setdefault(
            (tenant, name), {"tenant": tenant, "name": name, **counts, "last": "", "next_at": None, "text": ""}
        )

    for schedule in engine.schedules.list():
        line(schedule.tenant_id, schedule.name).update(next_at=schedule.next_at, text=schedule.text)
    actions = engine.actions.list(limit=None)
    for action in actions:
        mine = line(action.tenant_id, action.schedule or action.script or "?")
        mine[_COUNTED.get(action.state, "waiting")] += 1
        if action.state in {"done", "failed"}:  # newest first: the first one seen is the last that ran
            mine["last"] = mine["last"] or str(action.outcome or "")
    with engine.context.database.read() as connection:
        rows = connection.execute(select(outbox.c.state, func.count().label("n")).group_by(outbox.c.state)).all()
    return {
        "began": began,
        "ended": ended,
        "lines": [lines[key] for key in sorted(lines)],
        "states": dict(Counter(action.state for action in actions)),
        "outcomes": dict(Counter(action.outcome.value for action in actions if action.outcome)),
        "live_late_ms": _spread(late_ms),
        "mails": {row.state: row.n for row in rows},
    }


def _spread(late: list[float]) -> dict[str, float]:
    """Return the percentiles of latenesses."""
    if not late:
        return {}
    cuts = quantiles(late * 2, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98], "worst": max(late), "slots": len(late)}


def shown(summary: dict[str, Any], write: Callable[[str], None]) -> None:
    """Write the summary for people."""
    write(f"The ledger after {humanize_duration((summary['ended'] - summary['began']).total_seconds())}:")
    subjects = [f"{each['tenant']}/{each['name']}" for each in summary["lines"]]
    width = max(map(len, subjects), default=0)
    for subject, each in zip(subjects, summary["lines"], strict=True):
        words = {"ran": "ran", "failed": "failed", "gaps": "gap" if each["gaps"] == 1 else "gaps", "waiting": "waiting"}
        counts = ", ".join(f"{each[name]} {word}" for name, word in words.items() if each[name]) or "no actions yet"
        last = f" (last: {each['last']})" if each["failed"] else ""
        upcoming = f"; next {each['next_at']:%a %d %b %H:%M:%S} UTC" if each["next_at"] else ""
        write(f"  {subject:{width}}  {counts}{last}{upcoming}")
    if late := summary["live_late_ms"]:
        figures = f"p50 {late['p50']:.1f} ms, p99 {late['p99']:.1f} ms, maximum {late['worst']:.1f} ms"
        write(f"Live slots started {figures} after they were due ({late['slots']:.0f} slots).")
    mails = ", ".join(f"{count} {state}" for state, count in sorted(summary["mails"].items()))
    write(f"Mails: {mails or 'none'}.")
