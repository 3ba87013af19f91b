"""``lodger script``: scripts and their versions."""

from typing import Annotated

import typer

from lodger.engine.cli import place
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.output import inputs, script_files
from lodger.engine.output.result_output import Database, Group, TenantId, say, write_result

ScriptName = Annotated[str, typer.Argument(metavar="SCRIPT", help="Name of the script.")]
app = Group(no_args_is_help=True)


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
    present(to_jsonable(ended) | {"walls": {}}, text, name)


@app.command()
def module(
    tenant: TenantId,
    name: ScriptName,
    out: Annotated[typer.FileBinaryWrite, typer.Option("--out", help="Output file; - writes to stdout.")],
    version: Annotated[int | None, typer.Option(help="Version number. Default: the latest.")] = None,
    db: Database = None,
) -> None:
    """Write a WebAssembly module's bytes to a file."""
    with opened(db) as engine:
        content = engine.scripts.module(tenant, name, version)
    out.write(content)
    if out.name != "<stdout>":
        write_result({"bytes": len(content)})
        say(f"{len(content)} bytes")
