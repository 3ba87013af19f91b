"""Pages of tenants and nodes, and the audit log."""

from dataclasses import dataclass

from lodger.engine.core.access.roles import Role
from lodger.engine.policy.budget_table import ALLOWANCES, BUDGETS
from lodger.engine.server.operation_call import etag
from lodger.engine.web.listing import in_order, listing
from lodger.engine.web.page import PAGE, Reader, Values
from lodger.engine.web.texts import _
from lodger.sandbox.limits import LIMITS

#: Changes shown on the page of a tenant.
CHANGES = 10


@dataclass(frozen=True, slots=True)
class LimitField:
    """A limit that a tenant may have of its own.

    Attributes:
        value: the tenant's own, None where the operator's setting applies.
    """

    name: str
    help: str
    value: int | None


#: Sections that wings add to a tenant's settings: an operation that lists entries, and the template that shows them.
SECTIONS: list[tuple[str, str]] = []
#: Operations that a tenant's settings lead to, each with its title.
LINKS: list[tuple[str, str]] = [("collections.list", "Collections")]


def tenants(reader: Reader) -> tuple[str, Values]:
    """Return the page with the list of tenants: its template and values."""
    return "tenants.html", {"listed": listing(reader, "tenants")}


def nodes(reader: Reader) -> tuple[str, Values]:
    """Return the page with the list of nodes: its template and values."""
    gone = bool(reader.chosen("gone"))
    return "nodes.html", {"nodes": in_order(reader, reader.ask("nodes.list", gone=gone)), "gone": gone}


def settings(reader: Reader) -> tuple[str, Values]:
    """Return what a tenant may do and has: limits, budgets, grants, secrets, tokens, changes, and the sections of wings."""
    mine = reader.tenant
    reads_tokens = reader.caller.role.covers(Role.TENANT_ADMIN)
    tenant, account, grants, secrets, entries, tokens, *found = reader.together(
        *((each, mine) for each in ("tenants.get", "tenants.usage", "grants.list", "secrets.list")),
        ("audit.list", mine | {"limit": CHANGES}),
        ("tokens.list", mine | {"limit": PAGE}) if reads_tokens else lambda: None,
        *((operation, mine) for operation, _template in SECTIONS),
    )
    return "settings.html", {
        "subject": tenant,
        "match": etag(tenant),
        "others": LINKS,
        "limits": (fields := _limit_fields(tenant.limits)),
        "unit": _unit,
        "helps": {each.name: each.help for group in fields.values() for each in group},
        "budgets": account.budgets,
        "grants": grants,
        "secrets": secrets,
        "sections": [
            {"template": template, "entries": each} for (_, template), each in zip(SECTIONS, found, strict=True)
        ],
        "tokens": tokens,
        "roles": [each.value for each in Role if not each.of_platform],
        "entries": entries,
    }


def _limit_fields(own: Values) -> dict[str, list[LimitField]]:
    """Return a field for every limit that a tenant may have, by group; ``own`` are the tenant's own limits."""
    groups = {
        "One attempt": [(each.name, each.help) for each in LIMITS],
        "Budgets of one attempt": [(each.name, each.help) for each in BUDGETS if each.attempt is not None],
        "The whole tenant": [(each.name, each.help) for each in ALLOWANCES],
    }
    return {group: [LimitField(name, what, own.get(name)) for name, what in limits] for group, limits in groups.items()}


def _unit(name: str) -> str:
    """Return the unit of a limit or budget in words; "" for a plain number."""
    units = {"ms": _("milliseconds"), "s": _("seconds"), "bytes": _("bytes"), "days": _("days")}
    return units.get(name.removesuffix("_per_day").rpartition("_")[2], "")


def asked_audit(reader: Reader) -> tuple[str, Values]:
    """Return the operation that lists the audit log, and its arguments."""
    oldest = {"oldest": True} if reader.chosen("oldest") else {}
    return "audit.list", reader.tenant | reader.chosen("verb", "target", "actor") | oldest


def audit(reader: Reader) -> tuple[str, Values]:
    """Return the page with the audit log: its template and values."""
    _operation, asked = asked_audit(reader)
    return "audit.html", {"listed": listing(reader, "audit", asked=asked), "asked": asked}
