"""Classes 59 to 61: texts of a tenant that would become part of an SQL statement. Identifiers come from a list, values are bound."""

from lodger.escape.attack_files import cases_of
from lodger.escape.cases.tenants.data import SCRIPTS, nothing_foreign
from lodger.escape.evidence import Escaped, Trial, value_of


def _matches_nothing(trial: Trial) -> str:
    """Check that no row was found by a wildcard."""
    found = value_of(trial.report)
    rows = found["rows"] if isinstance(found, dict) and "rows" in found else found
    if isinstance(rows, list) and rows:
        raise Escaped(f"{len(rows)} rows were found by a wildcard")
    return f"answered {(trial.report.result or '')[:80]}"


_CHECKS = {"nothing_foreign": nothing_foreign, "matches_nothing": _matches_nothing}

CASES = [*cases_of(__file__, checks=_CHECKS, common=SCRIPTS)]
