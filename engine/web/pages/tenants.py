"""Pages of tenants, and the audit log."""

from typing import Any

from lodger.engine.policy.budget_table import ALLOWANCES, BUDGETS
from lodger.engine.server.operation_call import etag
from lodger.engine.web.listing import listing
from lodger.engine.web.page import Reader, Values
from lodger.engine.web.pages import operations
from lodger.engine.web.texts import _
from lodger.sandbox.limits import LIMITS

#: Changes shown on the page of a tenant.
CHANGES = 10


#: The limits that a tenant may have of its own, by group.
LIMIT_GROUPS: dict[str, list[Any]] = {
    "One attempt": list(LIMITS),
    "Budgets of one attempt": [each for each in BUDGETS if each.attempt is not None],
    "The whole tenant": list(ALLOWANCES),
}
#: Operations whose lists a tenant's settings show, each with the form of what is new; wings add theirs.
SECTIONS = ["secrets.list", "tokens.list"]
#: Operations that a tenant's settings lead to, each with its title.
LINKS: list[tuple[str, str]] = [("collections.list", "Collections")]


def tenants(reader: Reader) -> tuple[str, Values]:
    """Return the page with the list of tenants: its template and values."""
    return "tenants.html", {"listed": listing(reader, "tenants")}


def settings(reader: Reader) -> tuple[str, Values]:
    """Return what a tenant may do and has: limits, budgets, grants, secrets, tokens, changes, and the sections of wings."""
    mine, role = reader.tenant, reader.caller.role
    names = [each for each in SECTIONS if role.covers(reader.table.routes_of(each)[0].role)]
    tenant, account, grants, entries, *found = reader.together(
        *((each, mine) for each in ("tenants.get", "tenants.usage", "grants.list")),
        ("audit.list", mine | {"limit": CHANGES}),
        *((each, mine) for each in names),
    )
    sections = {
        name.partition(".")[0]: operations.records(reader, name, each) for name, each in zip(names, found, strict=True)
    }
    forms = {noun: [operations.form(reader, f"{noun}.{verb}") for verb in ("put", "create")] for noun in sections}
    people = {"addresses": list(tenant.people), "_match": etag(tenant)}
    return "settings.html", {
        "subject": tenant,
        "match": etag(tenant),
        "others": LINKS,
        "limits": LIMIT_GROUPS,
        "unit": _unit,
        "helps": {each.name: each.help for group in LIMIT_GROUPS.values() for each in group},
        "budgets": account.budgets,
        "grants": grants,
        "give": operations.form(reader, "grants.give"),
        "people": operations.form(reader, "grants.people", people),
        "sections": sections,
        "forms": forms,
        "entries": entries,
    }


def _unit(name: str) -> str:
    """Return the unit of a limit or budget in words; "" for a plain number."""
    units = {"ms": _("milliseconds"), "s": _("seconds"), "bytes": _("bytes"), "days": _("days")}
    return units.get(name.removesuffix("_per_day").rpartition("_")[2], "")


def audit(reader: Reader) -> tuple[str, Values]:
    """Return the page with the audit log: its template and values."""
    asked = reader.chosen("verb", "target", "actor") | ({"oldest": True} if reader.chosen("oldest") else {})
    return "audit.html", {"listed": listing(reader, "audit", asked=reader.tenant | asked), "asked": asked}
