"""``lodger grant``: permissions of a tenant's scripts."""

from collections.abc import Sequence
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.output.result_output import AsJson, Database, TenantId, say, table, write_json

app = typer.Typer(name="grant", help="Manage grants: permissions of a tenant's scripts.", no_args_is_help=True)

Words = Annotated[
    list[str], typer.Argument(metavar="GRANT...", help="Grants in the form that `lodger grant table` shows.")
]


@app.command("table")
def show_table(as_json: AsJson = False) -> None:
    """List every grant, what it allows, and whether tenants have it by default."""
    from lodger.engine.core.access.grants import GRANTS

    if as_json:
        write_json({"grants": [{"form": spec.form, "default": spec.default, "help": spec.help} for spec in GRANTS]})
        return
    table(
        ("grant", "by default", "description"),
        ((spec.form, "yes" if spec.default else "", spec.help) for spec in GRANTS),
    )


@app.command("list")
def show_all(tenant: TenantId, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's grants, and its own people."""
    with opened(db) as engine:
        held = engine.grants.list(tenant)
        found = engine.tenants.get(tenant)
    if as_json:
        write_json({"tenant": tenant, "grants": held, "own": found.grants is not None, "people": found.people})
        return
    _show(tenant, held)
    if found.grants is None:
        say(
            "these are the defaults of the setting LODGER_GRANTS; `lodger grant give` gives the tenant grants of its own"
        )
    say("people: " + (", ".join(found.people) or "none"))


@app.command()
def give(tenant: TenantId, grants: Words, db: Database = None, as_json: AsJson = False) -> None:
    """Grant permissions to a tenant, for runs that start from now on."""
    with opened(db) as engine:
        held = engine.grants.give(tenant, *grants)
    _show(tenant, held, as_json=as_json)


@app.command()
def take(tenant: TenantId, grants: Words, db: Database = None, as_json: AsJson = False) -> None:
    """Revoke permissions, named as in `lodger grant list`; running attempts keep theirs."""
    with opened(db) as engine:
        held = engine.grants.take(tenant, *grants)
    _show(tenant, held, as_json=as_json)


@app.command()
def reset(tenant: TenantId, db: Database = None, as_json: AsJson = False) -> None:
    """Reset a tenant to the grants of the setting LODGER_GRANTS, now and later."""
    with opened(db) as engine:
        held = engine.grants.keep(tenant, None)
    _show(tenant, held, as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Set the tenant's own people, to which its scripts may send mail without further grants."""
    with opened(db) as engine:
        found = engine.grants.people(tenant, addresses or [])
    if as_json:
        write_json({"tenant": tenant, "people": found.people})
    else:
        say(f"people of {tenant}: " + (", ".join(found.people) or "none"))


def _show(tenant: str, held: Sequence[str], *, as_json: bool = False) -> None:
    """Print the grants that a tenant holds."""
    from lodger.engine.core.access.grants import meaning

    if as_json:
        write_json({"tenant": tenant, "grants": held})
    else:
        table((f"grants of {tenant}", "allow its scripts to"), ((each, meaning(each)) for each in held))
