"""Classes 59 to 61: texts of a tenant that would become part of an SQL statement. Identifiers come from a list, values are bound."""

from lodger.escape.attack_files import attacks
from lodger.escape.cases.tenants.data import asking, attack, nothing_foreign
from lodger.escape.evidence import Escaped, Trial, value_of

_SCRIPTS = attacks(__file__)

_STORY = "No text of a tenant becomes part of a statement: names come from a list, values are bound."

#: Patterns that are plain text here, which no row contains.
PATTERNS = (
    ("percent", "a wildcard for any text", "%"),
    ("underscore", "a wildcard for one character", "_ine"),
    ("long", "many wildcards for any text", "%%%%%%%%%%%%%%%%%%%%%%"),
)


def _matches_nothing(trial: Trial) -> str:
    """Check that no row was found by a wildcard."""
    found = value_of(trial.report)
    rows = found["rows"] if isinstance(found, dict) and "rows" in found else found
    if isinstance(rows, list) and rows:
        raise Escaped(f"{len(rows)} rows were found by a wildcard")
    return f"answered {(trial.report.result or '')[:80]}"


CASES = [
    *(
        attack(f"D{name}", "bound_values", mechanism, asking(more["call"], arguments), nothing_foreign, _STORY)
        for name, mechanism, arguments, more in _SCRIPTS["injections"]
    ),
    *(
        attack(
            f"D61-{name}",
            "bound_values",
            mechanism,
            asking("db.find", f"{{ set: 'orders', filter: {{ note: {{ contains: '{sign}' }} }} }}"),
            _matches_nothing,
            "Search text is matched literally.",
        )
        for name, mechanism, sign in PATTERNS
    ),
]
