"""``lodger mcp``: the MCP server on standard input and output."""

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.cli.place import server_said
from lodger.engine.core.errors import Usage
from lodger.engine.output.result_output import Database, say

#: The tenant of the throw-away ledger.
_DRAFTS = "drafts"


def mcp(
    tenant: Annotated[
        str | None,
        typer.Argument(
            help="ID of the tenant. Default: only check scripts and rules, in a ledger that is thrown away."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also offer tools that store scripts, change schedules and start runs.")
    ] = False,
    skill: Annotated[
        bool, typer.Option("--skill", help="Print the guide for assistants, a skill file, and exit.")
    ] = False,
    db: Database = None,
) -> None:
    """Offer types, checks, dry runs, rules and a tenant's runs to assistants, over the Model Context Protocol.

    The server speaks on standard input and output. It changes nothing unless --write is given.
    """
    try:
        from lodger.engine.cli.assistants import tools
    except ModuleNotFoundError as missing:
        raise Usage("extra_missing.mcp", name=missing.name) from None
    if skill:
        say(*tools.skill().rstrip().splitlines())
        return
    if tenant is None and (write or db is not None or server_said() is not None):
        raise Usage("usage.tenant")
    with ExitStack() as stack:
        if tenant is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            db = str(Path(folder) / "drafts.db")
        engine = stack.enter_context(opened(db, creates=tenant is None))
        if tenant is None:
            engine.tenants.create(_DRAFTS)
        else:
            engine.tenants.get(tenant)
        if sys.stdin.isatty():
            sys.stderr.write("lodger mcp waits for an assistant on standard input; Ctrl-C ends it\n")
        tools.serve(engine, tenant or _DRAFTS, drafts=tenant is None, write=write).run("stdio")
