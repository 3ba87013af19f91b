"""``lodger collection``: documents of tenants, and indexes on their paths."""

from typing import Annotated

import typer

from lodger.engine.cli.answer import AsJson, Database, table, write_json
from lodger.engine.cli.ledger import opened
from lodger.engine.data.reading.collections import CollectionInfo

app = typer.Typer(name="collection", help="Documents of tenants, and indexes on their paths.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]
Name = Annotated[str, typer.Argument(help="The collection's name.")]
Path = Annotated[str, typer.Argument(help="The path, as a filter writes it: address.city.")]


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's collections with their indexes."""
    with opened(db) as engine:
        _told(engine.collections.list(tenant), as_json=as_json)


@app.command()
def index(tenant: Tenant, name: Name, path: Path, db: Database = None, as_json: AsJson = False) -> None:
    """Index a path: filters on it no longer look at every document."""
    with opened(db) as engine:
        _told(engine.collections.index(tenant, name, path), as_json=as_json)


@app.command("drop-index")
def drop_index(tenant: Tenant, name: Name, path: Path, db: Database = None, as_json: AsJson = False) -> None:
    """Remove an index."""
    with opened(db) as engine:
        _told(engine.collections.drop_index(tenant, name, path), as_json=as_json)


def _told(found: list[CollectionInfo], *, as_json: bool) -> None:
    if as_json:
        write_json({"collections": found})
    else:
        table(
            ("collection", "documents", "indexes"),
            ((each.name, str(each.documents), ", ".join(each.indexes)) for each in found),
        )
