"""``lodger token``: access tokens of the HTTP API."""

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.cli.output import views
from lodger.engine.cli.output.result_output import AsJson, Database, say, write_json

app = typer.Typer(name="token", help="Manage access tokens of the HTTP API.", no_args_is_help=True)


@app.command()
def first(db: Database = None, as_json: AsJson = False) -> None:
    """Create the first administrator's token, as `lodger up` does too; nothing if there ever was a token."""
    with opened(db, local="a server needs a token, and this command creates the first one") as engine:
        made = engine.tokens.first("first administrator")
    if as_json:
        write_json(made)
    elif made is None:
        say("an administrator's token already exists; create another with: lodger token create NAME admin")
    else:
        views.token(made)
