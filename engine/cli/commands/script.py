"""``lodger script``: scripts and their versions."""

from typing import Annotated

import typer

from lodger.engine.cli import inputs, place
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.output.result_output import AsJson, Database, TenantId, say, write_json
from lodger.engine.workbench import script_files

ScriptName = Annotated[str, typer.Argument(metavar="SCRIPT", help="Name of the script.")]
app = typer.Typer(name="script", help="Manage scripts and their versions.", no_args_is_help=True)


@app.command("dry-run")
def dry_run(
    tenant: TenantId,
    name: ScriptName,
    input_json: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Input of the run: action.input of the script.")
    ] = None,
    version: Annotated[int | None, typer.Option(help="Version number. Default: the latest.")] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Run this source instead of the stored one."),
    ] = None,
    expose: Expose = None,
    platform: File = None,
    fetches: Annotated[
        bool, typer.Option("--fetches", help="Also send requests that change data elsewhere (POST, PUT, …).")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Send no requests at all, and read no secrets.")] = False,
    now: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Instant that the script sees as now and as its slot.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run a script once on current data; show its changes without applying them."""
    from pathlib import Path

    from lodger.engine.cli.commands.exec import present
    from lodger.engine.core.serialization import to_jsonable

    params = inputs.value("--input", input_json)
    source = None if file is None else script_files.script(Path(file))
    pretended = None if now is None else inputs.instant("--now", now)
    prepare = preparation(expose, platform)
    local = "--expose and --platform are for this process" if expose or platform else None
    with opened(db, local=local) as engine:
        if prepare is not None and place.chosen(db).server is None:
            prepare(engine)
        shown = source if source is not None else engine.scripts.get(tenant, name, version).modules
        ended = engine.scripts.dry_run(
            tenant, name, params, version=version, source=source, fetches=fetches, offline=offline, now=pretended
        )
    files = shown if isinstance(shown, dict) else {}
    text = files.get((ended.error.file if ended.error else None) or next(iter(files), ""), "")
    present(to_jsonable(ended) | {"walls": {}}, text, name, as_json=as_json)


@app.command()
def module(
    tenant: TenantId,
    name: ScriptName,
    out: Annotated[typer.FileBinaryWrite, typer.Option("--out", help="Output file; - writes to stdout.")],
    version: Annotated[int | None, typer.Option(help="Version number. Default: the latest.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write a WebAssembly module's bytes to a file."""
    with opened(db) as engine:
        content = engine.scripts.module(tenant, name, version)
    out.write(content)
    if as_json and out.name != "<stdout>":
        write_json({"bytes": len(content)})
    elif out.name != "<stdout>":
        say(f"{len(content)} bytes")


@app.command()
def rehearse(
    tenant: TenantId,
    name: ScriptName,
    last: Annotated[str, typer.Option(metavar="TIME", help="Take the runs of this time, such as 7d or 12h.")] = "7d",
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Source to compare with what ran: a file or a folder.")
    ] = None,
    version: Annotated[int | None, typer.Option(help="Stored version to compare. Default: the latest.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Maximum number of runs.")] = 100,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run recorded runs of a script again with another version, in the sandbox of this machine, and compare both.

    Nothing is read from the tenant's data, sent or changed. Exit code 1 if a run differs, 3 if none could be compared.
    """
    from pathlib import Path

    from lodger.engine.cli import replay_views as output
    from lodger.engine.core.errors import Usage
    from lodger.engine.output.progress import bar, to_stderr
    from lodger.engine.workbench import replays

    if file is not None and version is not None:
        raise Usage("usage.exclusive")
    since = inputs.instant("--last", f"-{last}")
    new = version if file is None else replays.edited_source(Path(file))
    with opened(db) as engine, bar(f"rehearsing {name}", "runs", as_json=as_json) as done:
        found = replays.rehearse(engine, tenant, name, since, new, limit, done=done, progress=to_stderr)
    counted = replays.summary(found)
    if as_json:
        write_json({"summary": counted, "runs": found})
    else:
        output.show_rehearsal(found)
    if counted["differs"]:
        raise typer.Exit(1)
    if not counted["agrees"]:
        raise typer.Exit(3)
