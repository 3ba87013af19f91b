"""``lodger grant``: permissions of a tenant's scripts."""

from collections.abc import Sequence
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.output.result_output import Database, Group, TenantId, say, table, write_result

app = Group(no_args_is_help=True)

Words = Annotated[
    list[str], typer.Argument(metavar="GRANT...", help="Grants in the form that `lodger grant table` shows.")
]


@app.command("table")
def show_table() -> None:
    """List every grant, what it allows, and whether tenants have it by default."""
    from lodger.engine.core.access.grants import GRANTS

    write_result({"grants": [{"form": spec.form, "default": spec.default, "help": spec.help} for spec in GRANTS]})
    table(
        ("grant", "by default", "description"),
        ((spec.form, "yes" if spec.default else "", spec.help) for spec in GRANTS),
    )


@app.command("list")
def show_all(tenant: TenantId, db: Database = None) -> None:
    """List a tenant's grants, and its own people."""
    with opened(db) as engine:
        held = engine.grants.list(tenant)
        found = engine.tenants.get(tenant)
    _show(tenant, held, own=found.grants is not None, people=found.people)
    if found.grants is None:
        say(
            "these are the defaults of the setting LODGER_GRANTS; `lodger grant give` gives the tenant grants of its own"
        )
    say("people: " + (", ".join(found.people) or "none"))


@app.command()
def give(tenant: TenantId, grants: Words, db: Database = None) -> None:
    """Grant permissions to a tenant, for runs that start from now on."""
    with opened(db) as engine:
        held = engine.grants.give(tenant, *grants)
    _show(tenant, held)


@app.command()
def take(tenant: TenantId, grants: Words, db: Database = None) -> None:
    """Revoke permissions, named as in `lodger grant list`; running attempts keep theirs."""
    with opened(db) as engine:
        held = engine.grants.take(tenant, *grants)
    _show(tenant, held)


@app.command()
def reset(tenant: TenantId, db: Database = None) -> None:
    """Reset a tenant to the grants of the setting LODGER_GRANTS, now and later."""
    with opened(db) as engine:
        held = engine.grants.keep(tenant, None)
    _show(tenant, held)


@app.command()
def people(
    tenant: TenantId,
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS...", help="The complete list of addresses; *@example.com means all addresses of a domain."
        ),
    ] = None,
    db: Database = None,
) -> None:
    """Set the tenant's own people, to which its scripts may send mail without further grants."""
    with opened(db) as engine:
        found = engine.grants.people(tenant, addresses or [])
    write_result({"tenant": tenant, "people": found.people})
    say(f"people of {tenant}: " + (", ".join(found.people) or "none"))


def _show(tenant: str, held: Sequence[str], **more: object) -> None:
    """Print the grants that a tenant holds; ``more`` is for programs."""
    from lodger.engine.core.access.grants import meaning

    write_result({"tenant": tenant, "grants": held} | more)
    table((f"grants of {tenant}", "allow its scripts to"), ((each, meaning(each)) for each in held))
