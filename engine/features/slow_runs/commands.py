"""Durations on the command line."""

from typing import Any

from lodger.engine.output import views
from lodger.engine.output.views import step_number
from lodger.engine.service.humanize import humanize_duration


def _flags(each: Any) -> list[str]:
    """Return words for unusual durations of a schedule."""
    found = [str(each.onset)] if each.onset else []
    found += ["slow"] if each.slow and not each.onset else []
    return found + ([f"overruns its interval: {each.overruns} of 5"] if each.overruns else [])


views.COLUMNS["ScheduleDurations"] = (
        ("schedule", "schedule"), ("tenant", "tenant_id"), ("step", step_number), ("runs", lambda each: len(each.runs)),
        ("usually", lambda each: humanize_duration(each.pace.median_ms / 1000)),
        ("now", lambda each: humanize_duration(each.level_ms / 1000)),
        ("change", lambda each: "" if each.change is None else f"×{each.change:.2g}"),
        ("", lambda each: " ".join(_flags(each))),
)  # fmt: skip
