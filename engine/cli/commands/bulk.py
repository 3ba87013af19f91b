"""``lodger action bulk`` and ``lodger schedule bulk``: change what matches a filter, after its number is confirmed, with a progress."""

from typing import Annotated

import typer

from lodger.engine.cli.ledger import opened
from lodger.engine.cli.operations import confirm
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import Database, Yes, say, write_result

#: What can be done to actions and to schedules.
VERBS = {"actions": "retry, cancel or replay", "schedules": "pause, resume or run_now"}


def add(noun: str, app: typer.Typer) -> None:
    """Add the command ``bulk`` to the commands of a noun."""

    @app.command("bulk")
    def bulk(
        do: Annotated[str, typer.Argument(metavar="VERB", help=f"{VERBS[noun]}.".capitalize())],
        matching: Annotated[str, typer.Option("--filter", metavar="FILTER", help="Filter, as of list.")],
        tenant: Annotated[str | None, typer.Option(help="ID of the tenant. Default: all tenants.")] = None,
        why: Annotated[str | None, typer.Option(help="Reason, for the audit log.")] = None,
        yes: Yes = False,
        db: Database = None,
    ) -> None:
        """Change everything that matches a filter; the number is shown and confirmed first."""
        with opened(db) as engine:
            verbs = getattr(engine, noun)
            found = verbs.count(tenant, filter=matching)
            about = f"{found.count}{'' if found.complete else ' or more'} {noun}"
            confirm(f"{do} {about}", {}, yes=yes)
            with bar(f"{do} {about}", noun) as progress:
                result = verbs.bulk(tenant, do, filter=matching, why=why)
                while result.next:
                    progress(result.done)
                    result = verbs.bulk(tenant, do, filter=matching, why=why, cursor=result.next)
        write_result(result)
        say(f"{result.done} of {result.matched} {noun}: {do}")
        for code, number in sorted(result.refused.items()):
            say(f"  {number} refused: {code} (lodger errors {code})")
        if result.refused:
            raise typer.Exit(1)
