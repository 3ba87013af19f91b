"""``lodger token``: access tokens of the HTTP API."""

import socket
import sys
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
        settings = engine.context.settings
        found = dashboard_link.link(engine, url or settings.api_url())
    if found is None:
        raise NotFound("token_none")
    if url is None and not _listens(settings.api_host, settings.api_port):
        sys.stderr.write(f"no server listens at {settings.api_url()}; name the address of yours with --url\n")
    write_result({"url": found})
    say(found)


def _listens(host: str, port: int) -> bool:
    """Whether a server listens at an address."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True
