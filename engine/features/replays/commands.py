"""``lodger action replay-locally`` and ``lodger script rehearse``."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.output import groups, inputs, views
from lodger.engine.output.progress import bar, to_stderr
from lodger.engine.output.result_output import Database, TenantId, write_json, write_result


def _add_replays(app: typer.Typer, opened: groups.Opened) -> None:
    """Add the command ``replay-locally`` to the group of actions."""

    @app.command("replay-locally")
    def replay_locally(
        tenant: Annotated[str | None, typer.Argument(help="ID of the tenant; not with --file.")] = None,
        action: Annotated[
            str | None, typer.Argument(metavar="ACTION", help="ID of the action; not with --file.")
        ] = None,
        attempt: Annotated[
            int | None, typer.Option(help="Number of the attempt. Default: the last recorded one.")
        ] = None,
        file: Annotated[
            Path | None, typer.Option(help="File that lodger action record wrote; no ledger is needed.")
        ] = None,
        script: Annotated[Path | None, typer.Option(help="Edited source to run instead: a file or a folder.")] = None,
        db: Database = None,
    ) -> None:
        """Run a recorded attempt again on this machine, in the sandbox, with the recorded answers.

        Nothing is read from the tenant's data, sent or changed. Exit code 1 if the attempt ends differently.
        """
        from lodger.engine.features.replays import local_replays, replay_views

        if (file is None) == (tenant is None or action is None):
            raise Usage("usage.action")
        if file is not None:
            found = local_replays.read_file(file)
        else:
            assert tenant is not None
            assert action is not None
            with opened(db) as engine:
                found = engine.actions.record(tenant, action, attempt)
        edited = None if script is None else local_replays.edited_source(script)
        replayed = local_replays.run(found, edited, to_stderr)
        write_result(replayed)
        source = found.modules if edited is None else edited
        replay_views.show(replayed, source if isinstance(source, dict) else {})
        if replayed.verdict == "departs":
            raise typer.Exit(1)


def _add_rehearsals(app: typer.Typer, opened: groups.Opened) -> None:
    """Add the command ``rehearse`` to the group of scripts."""

    @app.command()
    def rehearse(
        tenant: TenantId,
        name: Annotated[str, typer.Argument(metavar="SCRIPT", help="Name of the script.")],
        last: Annotated[
            str, typer.Option(metavar="TIME", help="Take the runs of this time, such as 7d or 12h.")
        ] = "7d",
        file: Annotated[
            str | None, typer.Option(metavar="FILE", help="Source to compare with what ran: a file or a folder.")
        ] = None,
        version: Annotated[int | None, typer.Option(help="Stored version to compare. Default: the latest.")] = None,
        limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Maximum number of runs.")] = 100,
        db: Database = None,
    ) -> None:
        """Run recorded runs of a script again with another version, in the sandbox of this machine, and compare both.

        Nothing is read from the tenant's data, sent or changed. Exit code 1 if a run differs, 3 if none could be compared.
        """
        from lodger.engine.features.replays import local_replays, replay_views

        if file is not None and version is not None:
            raise Usage("usage.exclusive")
        since = inputs.ago("--last", last)
        new = version if file is None else local_replays.edited_source(Path(file))
        with opened(db) as engine, bar(f"rehearsing {name}", "runs") as done:
            found = local_replays.rehearse(engine, tenant, name, since, new, limit, done=done, progress=to_stderr)
        counted = local_replays.summary(found)
        write_result({"summary": counted, "runs": found})
        replay_views.show_rehearsal(found)
        if counted["differs"]:
            raise typer.Exit(1)
        if not counted["agrees"]:
            raise typer.Exit(3)


groups.COMMANDS["action"].append(_add_replays)
groups.COMMANDS["script"].append(_add_rehearsals)
views.VIEWS["actions.record"] = write_json
