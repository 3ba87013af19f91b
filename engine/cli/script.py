"""``lodger script``: what runs."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli import given
from lodger.engine.cli.answer import AsJson, Database, say, table, write_json
from lodger.engine.cli.ledger import opened

app = typer.Typer(name="script", help="What runs: sources and their versions.", no_args_is_help=True)

Tenant = Annotated[str, typer.Argument(help="The tenant's id.")]


@app.command()
def put(
    tenant: Tenant,
    name: Annotated[str, typer.Argument(help="The script's name.")],
    file: Annotated[
        Path, typer.Argument(help="Its source, UTF-8, or a WebAssembly module (WASI preview 1 command); - is stdin.")
    ],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Store a script's next version. A WebAssembly module, known by its first bytes, is compiled first, in a locked worker."""
    source = given.script(file)
    with opened(db) as engine:
        made = engine.scripts.put(tenant, name, source)
    if as_json:
        write_json(made)
    else:
        kind = "" if made.wasm_bytes is None else f", a WebAssembly module of {made.wasm_bytes} bytes"
        say(f"script {name} of {tenant}: version {made.version}{kind}")


@app.command("dry-run")
def dry_run(
    tenant: Tenant,
    name: Annotated[str, typer.Argument(help="The script's name.")],
    input_json: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="What it sees as action.input.")
    ] = None,
    expose: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Called with the engine: expose tables there.")
    ] = None,
    fetches: Annotated[
        bool, typer.Option("--fetches", help="Let requests leave that change something elsewhere (POST, PUT, …), too.")
    ] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run a stored script once against the data of now; show what it would change, and change nothing."""
    from lodger.engine.cli.exec import present
    from lodger.engine.cli.rehearsal import as_dict
    from lodger.engine.cli.up import named

    params = given.value("--input", input_json)
    prepare = named(expose) if expose else None
    with opened(db) as engine:
        if prepare is not None:
            prepare(engine)
        source = engine.scripts.get(tenant, name).modules.get("main.js", "")
        ended = engine.dry_run(tenant, name, params, fetches=fetches)
    present(as_dict(ended), source, name, as_json=as_json)


@app.command("list")
def show_all(tenant: Tenant, db: Database = None, as_json: AsJson = False) -> None:
    """List a tenant's scripts."""
    with opened(db) as engine:
        found = engine.scripts.list(tenant)
    if as_json:
        write_json({"scripts": found})
    else:
        table(("script", "version"), ((each.name, each.version) for each in found))
