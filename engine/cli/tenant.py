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
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant."""
    with opened(db) as engine:
        made = engine.tenants.create(tenant, name=name, limits=value("--limits", limits))
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
        table(("tenant", "name", "state"), ((each.id, each.name, each.state) for each in found))
