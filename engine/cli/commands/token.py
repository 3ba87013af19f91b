"""``lodger token``: access tokens of the HTTP API."""

from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.core.errors import NotFound
from lodger.engine.output import views
from lodger.engine.output.result_output import Database, Group, say, write_result
from lodger.engine.web import dashboard_link

app = Group(no_args_is_help=True)


@app.command()
def first(db: Database = None) -> None:
    """Create the first administrator's token, as `lodger up` does too; nothing if there ever was a token."""
    with opened(db, local="a server needs a token, and this command creates the first one", creates=True) as engine:
        made = engine.tokens.first("first administrator")
    write_result(made)
    if made is None:
        say("an administrator's token already exists; create another with: lodger token create NAME admin")
    else:
        views.token(made)


@app.command()
def link(
    url: Annotated[
        str | None, typer.Option(help="Address of the dashboard for the browser. Default: that of the settings.")
    ] = None,
    db: Database = None,
) -> None:
    """Print a link to the dashboard that signs in once, as the oldest administrator, and expires after 15 minutes."""
    with opened(db, local="a link signs in without a token, so only the machine of the ledger creates one") as engine:
        found = dashboard_link.link(engine, url or engine.context.settings.api_url())
    if found is None:
        raise NotFound("token_none")
    write_result({"url": found})
    say(found)
