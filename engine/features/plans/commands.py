"""Plans on the command line."""

from typing import Any

from lodger.engine.output import groups, views
from lodger.engine.output.result_output import say


def _limits(plan: Any) -> str:
    """Return the limits of a plan in words."""
    return ", ".join(f"{name} {value}" for name, value in sorted(plan.limits.items())) or "the defaults"


def _plan(plan: Any) -> None:
    """Show a plan with its limits."""
    say(f"plan {plan.name}: {_limits(plan)}")


groups.HELP["plan"] = "Manage plans: named sets of limits that tenants refer to."
views.COLUMNS["Plan"] = (("plan", "name"), ("limits", _limits))
views.SHORT_VIEWS["Plan"] = _plan
