"""Chapter D, through host calls: rows, keys, columns and secrets of another tenant, and exceeding the tenant's own budgets."""

import json

from lodger.escape.attack_files import attacks
from lodger.escape.case import Case
from lodger.escape.cases.tenants.world import CANARY, ROWS, TenantHost
from lodger.escape.evidence import Check, Escaped, Trial, within_limits
from lodger.sandbox.outcome import Outcome

_SCRIPTS = attacks(__file__)

_LIMITS = {"wall_ms": 20_000, "cpu_ms": 1000, "host_calls": 10_000}


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


def asking(call: str, arguments: str) -> str:
    """Return a script that makes one call and returns the reply."""
    return f"try {{ return await bridge.call('{call}', {arguments}); }} catch (e) {{ return {{ code: e.code ?? e.name }}; }}"


_IDS = (
    ("row", "orders", "2"),
    ("row-odd", "orders", "4.0"),
    ("document", "things", "'victim-1'"),
)
_COUNTS = (
    ("count", "db.count", "{ set: 'orders', filter: {} }", "return found"),
    ("count-not", "db.count", "{ set: 'orders', filter: { not: { id: { lt: 0 } } } }", "return found"),
    ("documents", "db.count", "{ set: 'things', filter: {} }", "return found"),
    ("groups", "db.aggregate", "{ set: 'orders', filter: {}, groupBy: ['state'] }", "return found[0].count"),
    ("sum", "db.aggregate", "{ set: 'orders', filter: {}, max: ['total'] }", "return found[0].count"),
)
_KEYS = (
    ("same", "a key that both have", "'shared'"),
    ("foreign", "a key of the other's", "'key-1'"),
    ("colon", "the other's name before the key", "'victim:key-1'"),
    ("slash", "a path to the other's", "'../victim/key-1'"),
    ("nul", "a NUL between", "'victim\\u0000key-1'"),
    ("scope", "the scope before the key", "'/key-1'"),
)
_BEYOND = (
    ("secret", "secrets.read", "{ name: 'api' }"),
    ("secret-foreign", "secrets.read", "{ name: 'victim_api' }"),
    ("column", "db.find", "{ set: 'orders', filter: { margin: { contains: 'canary' } } }"),
    ("column-order", "db.find", "{ set: 'orders', order: [{ margin: 'asc' }] }"),
    ("column-sum", "db.aggregate", "{ set: 'orders', filter: {}, groupBy: ['margin'] }"),
    ("column-write", "db.insert", "{ set: 'orders', values: { state: 'x', total: 1, note: 'y', margin: 'mine' } }"),
)


def spends(maximum: int) -> Check:
    """Return a check that no more calls were answered than the budget allows."""

    def check_spent(trial: Trial) -> str:
        """Raise Escaped if more calls were answered than the budget allows."""
        found = int(trial.facts.get("answered", "0"))
        if found > maximum:
            raise Escaped(f"{found} calls were answered, the budget has {maximum}")
        return f"{found} of at most {maximum} calls were answered; {within_limits(trial)}"

    return check_spent


_CHANGES = (
    ("update", "db.update", "changes: { state: 'mine' }"),
    ("increment", "db.increment", "amounts: { total: 5 }"),
    ("delete", "db.delete", ""),
)


def unchanged(trial: Trial) -> str:
    """Check that a change of another tenant's row was refused or found no row."""
    value = json.loads(trial.report.result or "null")
    if value is not False and not (isinstance(value, dict) and "code" in value):
        raise Escaped(f"the other's row was taken for its own: {trial.report.result}")
    return f"told {trial.report.result}"


def attack(name: str, wall: str, mechanism: str, script: str, seen: Check, story: str) -> Case:
    """Return a case of a script with the real host of an attempt."""
    return Case(
        name,
        wall,
        mechanism,
        script,
        (Outcome.OK, Outcome.SCRIPT_ERROR, Outcome.CALL_LIMIT),
        seen=seen,
        story=story,
        limits=_LIMITS,
        host=TenantHost,
    )


CASES = [
    *(
        attack(
            f"D58-{name}-{kind}",
            "tenant_predicate",
            f"{mechanism}, asked of {kind}",
            asking("db.find", f"{{ set: '{kind}', filter: {question}, limit: 100 }}")
            .replace("NUMBER", number)
            .replace("TEXT", text),
            nothing_foreign,
            "A filter can only restrict the rows of the tenant.",
        )
        for name, mechanism, question in _SCRIPTS["questions"]
        for kind, number, text in (("orders", "total", "note"), ("things", "rank", "text"))
    ),
    *(
        attack(
            f"D57-get-{name}",
            "tenant_predicate",
            f"the other's {name} by its id",
            asking("db.get", f"{{ set: '{kind}', id: {key} }}"),
            nothing_foreign,
            "An id of another tenant is treated as unknown.",
        )
        for name, kind, key in _IDS
    ),
    *(
        attack(
            f"D57-{name}",
            "tenant_predicate",
            f"{name} of the other's row",
            asking(verb, f"{{ set: 'orders', id: 2, {more}}}"),
            unchanged,
            "An id of another tenant is treated as unknown.",
        )
        for name, verb, more in _CHANGES
    ),
    *(
        attack(
            f"D67-{name}",
            "tenant_predicate",
            f"counting by {verb}: {name}",
            f"try {{ const found = await bridge.call('{verb}', {arguments}); {answer}; }} catch {{ return null; }}",
            at_most(ROWS),
            "Counts, sums and groups include the tenant's rows only.",
        )
        for name, verb, arguments, answer in _COUNTS
    ),
    *(
        attack(
            f"D63-{name}",
            "tenant_keys",
            mechanism,
            asking("kv.get", f"{{ key: {key} }}"),
            nothing_foreign,
            "Keys belong to the tenant, whatever characters they contain.",
        )
        for name, mechanism, key in _KEYS
    ),
    *(
        attack(
            f"D{64 if verb.startswith('secrets') else 62}-{name}",
            "grants",
            f"{verb} of a {name.replace('-', ' of ', 1)} that was not granted",
            asking(verb, arguments),
            refused,
            "Columns that are not exposed are refused in every position.",
        )
        for name, verb, arguments in _BEYOND
    ),
    *(
        attack(
            f"C55-{name}",
            "budgets",
            mechanism,
            script,
            spends(int(more["maximum"])),
            "Budgets are counted by the host, one call after the other.",
        )
        for name, mechanism, script, more in _SCRIPTS["floods"]
    ),
]
