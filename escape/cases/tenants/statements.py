"""Classes 59 to 61: texts of a tenant that would become part of an SQL statement. Identifiers come from a list, values are bound."""

from lodger.escape.cases.tenants.data import asking, attack, nothing_foreign
from lodger.escape.evidence import Escaped, Trial, value_of

_STORY = "No text of a tenant becomes part of a statement: names come from a list, values are bound."
_ALL = "1=1 OR 1=1 OR"

#: class, name, mechanism, call, arguments
INJECTIONS = (
    (59, "value", "a value that ends its quotes", "db.find", "{ set: 'orders', filter: { state: \"x' OR '1'='1\" } }"),
    (
        59,
        "value-comment",
        "a value that comments the rest away",
        "db.find",
        "{ set: 'orders', filter: { state: \"x' OR 1=1 --\" } }",
    ),
    (
        59,
        "value-union",
        "a value that asks a second question",
        "db.find",
        "{ set: 'orders', filter: { state: \"x' UNION SELECT id, note, note, note, note, note FROM orders --\" } }",
    ),
    (59, "id", "an id that ends its quotes", "db.get", "{ set: 'orders', id: \"0' OR '1'='1\" }"),
    (
        59,
        "field",
        "a field's name that is a condition",
        "db.find",
        f"{{ set: 'orders', filter: {{ '{_ALL} id': 1 }} }}",
    ),
    (
        59,
        "operator",
        "an operator that is a condition",
        "db.find",
        "{ set: 'orders', filter: { id: { '> 0 OR id >': 0 } } }",
    ),
    (
        59,
        "operator-raw",
        "an operator of the database's own",
        "db.find",
        "{ set: 'orders', filter: { note: { 'IS NOT NULL OR note <>': 'x' } } }",
    ),
    (59, "set", "a set's name that is a statement", "db.find", "{ set: 'lodger_kv WHERE 1=1 --', filter: {} }"),
    (
        59,
        "set-schema",
        "the catalogue of the database",
        "db.find",
        "{ set: 'sqlite_master WHERE 1=1 UNION ALL SELECT note, note, note, note, note FROM orders --', filter: {} }",
    ),
    (
        59,
        "group",
        "a group that asks a second question",
        "db.aggregate",
        "{ set: 'orders', filter: {}, groupBy: ['state UNION SELECT 1, note, 1, 1, 1, 1 FROM orders'] }",
    ),
    (
        59,
        "count",
        "a count that counts everybody's",
        "db.find",
        "{ set: 'orders', filter: { 'org_id LIKE \\'%\\' OR 1=1 OR total': 1 } }",
    ),
    (60, "path", "a path that ends its quotes", "db.find", f"{{ set: 'things', filter: {{ '{_ALL} body': 1 }} }}"),
    (
        60,
        "path-value",
        "a value that ends its quotes",
        "db.find",
        "{ set: 'things', filter: { id: \"x' OR 1=1 --\" } }",
    ),
)
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
        attack(f"D{number}-{name}", "bound_values", mechanism, asking(call, arguments), nothing_foreign, _STORY)
        for number, name, mechanism, call, arguments in INJECTIONS
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
