"""Chapter D, through host calls: rows, keys, columns and secrets of another tenant, and exceeding the tenant's own budgets."""

import json

from lodger.escape.attack_files import cases_of
from lodger.escape.cases.tenants.world import CANARY, ROWS, TenantHost
from lodger.escape.evidence import Check, Escaped, Trial, within_limits
from lodger.sandbox.outcome import Outcome


def nothing_foreign(trial: Trial) -> str:
    """Check that there is no text of the other tenant and no more rows than the tenant has."""
    measured = within_limits(trial)
    result = trial.report.result or ""
    if CANARY in result:
        raise Escaped(f"it read the other tenant's: {result[:200]}")
    return f"answered {result[:120]}; {measured}"


def at_most(rows: int) -> Check:
    """Return a check of a count: at most the tenant's rows, or null if the call was refused."""

    def check_count(trial: Trial) -> str:
        """Raise Escaped if the script counted more rows than the tenant has."""
        value = json.loads(trial.report.result or "null")
        if isinstance(value, (int, float)) and value > rows:
            raise Escaped(f"it counted {value} rows, the tenant has {rows}")
        return f"answered {trial.report.result}"

    return check_count


def refused(trial: Trial) -> str:
    """Check that every call was refused with a code only."""
    if trial.facts.get("answered") != "0":
        raise Escaped(f"{trial.facts.get('answered')} calls were answered: {(trial.report.result or '')[:200]}")
    return f"refused: {(trial.report.result or '')[:120]}"


def spends(maximum: int) -> Check:
    """Return a check that no more calls were answered than the budget allows."""

    def check_spent(trial: Trial) -> str:
        """Raise Escaped if more calls were answered than the budget allows."""
        found = int(trial.facts.get("answered", "0"))
        if found > maximum:
            raise Escaped(f"{found} calls were answered, the budget has {maximum}")
        return f"{found} of at most {maximum} calls were answered; {within_limits(trial)}"

    return check_spent


def unchanged(trial: Trial) -> str:
    """Check that a change of another tenant's row was refused or found no row."""
    value = json.loads(trial.report.result or "null")
    if value is not False and not (isinstance(value, dict) and "code" in value):
        raise Escaped(f"the other's row was taken for its own: {trial.report.result}")
    return f"told {trial.report.result}"


#: Common fields of scripts with the real host of an attempt.
SCRIPTS = {
    "expect": (Outcome.OK, Outcome.SCRIPT_ERROR, Outcome.CALL_LIMIT),
    "limits": {"wall_ms": 20_000, "cpu_ms": 1000, "host_calls": 10_000},
    "host": TenantHost,
}
_CHECKS = {
    "nothing_foreign": nothing_foreign, "own_rows": at_most(ROWS), "refused": refused, "spends": spends, "unchanged": unchanged,
}  # fmt: skip

CASES = [*cases_of(__file__, checks=_CHECKS, common=SCRIPTS)]
