"""``lodger token``: who may ask over HTTP."""

import typer

from lodger.engine.cli import views
from lodger.engine.cli.answer import AsJson, Database, say, write_json
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.of_verb import Command, add

app = typer.Typer(name="token", help="Who may ask over HTTP.", no_args_is_help=True)

add(
    app,
    Command("create", "tokens.create", ("name", "role"), view=views.token),
    Command("list", "tokens.list", wrap="tokens"),
    Command("show", "tokens.get"),
    Command("revoke", "tokens.revoke", ask="revoke token {token}, with the sessions begun with it"),
)


@app.command()
def first(db: Database = None, as_json: AsJson = False) -> None:
    """Make the first administrator's token, which `lodger up` makes too; nothing when there ever was one."""
    with opened(db, local="who makes the first token has none to show a server") as engine:
        made = engine.tokens.first("first administrator")
    if as_json:
        write_json(made)
    elif made is None:
        say("there has been an administrator's token already: lodger token create NAME admin makes another")
    else:
        views.token(made)
