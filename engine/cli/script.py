"""``lodger script``: what runs."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli import given
from lodger.engine.cli.answer import AsJson, Database, say, table, write_json
from lodger.engine.cli.ledger import opened

app = typer.Typer(name="script", help="What runs: sources and their versions.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]


@app.command()
def put(
    tenant: Tenant,
    name: Annotated[str, typer.Argument(help="The script's name.")],
    file: Annotated[Path, typer.Argument(help="Its source, UTF-8; - is stdin.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Store a script's next version."""
    source = given.text(file)
    with opened(db) as engine:
        made = engine.scripts.put(tenant, name, source)
    if as_json:
        write_json(made)
    else:
        say(f"script {name} of {tenant}: version {made.version}")


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's scripts."""
    with opened(db) as engine:
        found = engine.scripts.list(tenant)
    if as_json:
        write_json({"scripts": found})
    else:
        table(("script", "version"), ((each.name, each.version) for each in found))
