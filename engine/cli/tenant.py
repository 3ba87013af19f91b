"""``lodger tenant``: whose scripts run."""

from typing import Annotated

import typer

from lodger.engine.cli.answer import AsJson, Database, say, table, write_json
from lodger.engine.cli.given import value
from lodger.engine.cli.ledger import opened

app = typer.Typer(name="tenant", help="Whose scripts run.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The tenant's id.")]


@app.command()
def create(
    tenant: Id,
    name: Annotated[str | None, typer.Option(help="Name for people.")] = None,
    limits: Annotated[str | None, typer.Option(help="Limits and budgets as JSON.")] = None,
    grant: Annotated[
        list[str] | None, typer.Option(help="What its scripts may do beside what all may; see `lodger grant table`.")
    ] = None,
    people: Annotated[
        list[str] | None, typer.Option(help="An address, or *@domain, that its scripts may mail without further grant.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant."""
    with opened(db) as engine:
        made = engine.tenants.create(
            tenant, name=name, limits=value("--limits", limits), grants=grant or (), people=people or ()
        )
    if as_json:
        write_json(made)
    else:
        say(f"tenant {tenant} is there")


@app.command("list")
def show_all(db: Database = None, as_json: AsJson = False) -> None:
    """List the tenants."""
    with opened(db) as engine:
        found = engine.tenants.list()
    if as_json:
        write_json({"tenants": found})
    else:
        rows = ((each.id, each.name, each.state, _granted(each.grants)) for each in found)
        table(("tenant", "name", "state", "grants"), rows)


@app.command()
def show(tenant: Id, db: Database = None, as_json: AsJson = False) -> None:
    """Show one tenant: state, limits, grants and people."""
    with opened(db) as engine:
        found = engine.tenants.get(tenant)
        held = engine.grants.list(tenant)
    if as_json:
        write_json(
            {"id": found.id, "name": found.name, "state": found.state, "limits": found.limits, "grants": held,
             "people": found.people, "created_at": found.created_at}
        )  # fmt: skip
        return
    say(f"{found.id}: {found.name}, {found.state}")
    say("limits  " + (", ".join(f"{name} {value}" for name, value in sorted(found.limits.items())) or "the operator's"))
    say("grants  " + " ".join(held))
    say("people  " + (", ".join(found.people) or "none are named"))


def _granted(grants: tuple[str, ...] | None) -> str:
    return "default" if grants is None else " ".join(grants)
