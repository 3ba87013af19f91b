"""Texts of the demo's items, for the screen and for plain lines."""

import json
from datetime import datetime

from lodger.engine.demo.story import Missed, Run, Upcoming
from lodger.engine.service.humanize import humanize_duration

_REASONS = {
    "missed": "missed while the engine was off",
    "overlap": "an earlier run had not ended",
}


def late(run: Run) -> str:
    """How late a run started: in milliseconds when live, as a length of time when it was missed."""
    if run.slot is None:
        return "requested"
    if run.missed:
        return f"missed {humanize_duration(run.late_s)} ago"
    return f"{max(0.0, run.late_s) * 1000:.0f} ms late"


def missed(gap: Missed) -> str:
    """A gap row in one sentence."""
    reason = _REASONS.get(gap.reason, gap.reason.replace("_", " "))
    if gap.first == gap.last:
        return f"slot {moment(gap.first)} did not run: {reason}"
    return f"slots {moment(gap.first)} to {moment(gap.last)} did not run: {reason}; one gap row in the ledger"


def moment(instant: datetime) -> str:
    """An instant to the second, UTC."""
    return f"{instant:%d %b %H:%M:%S}"


def soon(item: Upcoming, now: datetime) -> str:
    """When a schedule's next slot comes."""
    if item.next_at is None:
        return item.state if item.state != "armed" else "no further slot"
    seconds = (item.next_at - now).total_seconds()
    return "now" if seconds <= 0 else f"in {humanize_duration(seconds)}" if seconds >= 1 else "in 1 s"


def result(text: str | None) -> str:
    """A result's JSON without the quotes of its keys, for reading only."""
    if text is None:
        return ""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    return _value(value)


def _value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
