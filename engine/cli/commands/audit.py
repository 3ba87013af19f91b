"""``lodger audit``: the audit log of changes: actor, time, channel and reason."""

from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.core.progress import STEP
from lodger.engine.output import inputs
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import Database, Group, say, write_json

app = Group(no_args_is_help=True)


@app.command(as_json=False)
def export(
    tenant: Annotated[
        str | None,
        typer.Argument(help="Only changes of this tenant. Default: changes of all tenants and of the platform."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Only changes at or after this instant, such as -24h.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only changes before this instant.")] = None,
    out: Annotated[typer.FileTextWrite | None, typer.Option("--out", help="Output file. Default: stdout.")] = None,
    db: Database = None,
) -> None:
    """Write every change as a line of JSON, oldest first."""
    start, end = (
        None if each is None else inputs.instant(name, each) for name, each in (("--since", since), ("--until", until))
    )
    count = 0
    # Lines that go to a terminal show by themselves how far it is.
    with opened(db) as engine, bar("exporting the audit log", "entries", quiet=out is None) as progress:
        for entry in engine.audit.export(tenant, since=start, until=end):
            write_json(entry, out)
            count += 1
            if count % STEP == 0:
                progress(count)
    if out is not None:
        say(f"{count} entries")
