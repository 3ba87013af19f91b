"""``lodger bundle``: one file of a script with the packages of npm that it imports."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.output.result_output import AsJson, say, write_json
from lodger.engine.store.scripts import source_maps
from lodger.engine.workbench import bundle as bundles


def bundle(
    entry: Annotated[Path, typer.Argument(help="JavaScript or TypeScript file with the script's default export.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write main.js and its source map to.")] = Path(
        "bundle"
    ),
    as_json: AsJson = False,
) -> None:
    """Make one file of a script and the npm packages that it imports, with a source map; store the folder as the script."""
    made = bundles.bundle(entry, out)
    if as_json:
        write_json({"folder": str(out), "files": made.sizes, "warnings": made.warnings})
        return
    if made.warnings:
        say(made.warnings)
    size = made.sizes[source_maps.MAPPED]
    say(f"{out / source_maps.MAPPED}: {size} bytes, with {source_maps.FILE} beside it")
