"""``lodger bundle``: one file of a script with the packages of npm that it imports."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.core.errors import InputError
from lodger.engine.output.result_output import say, write_result
from lodger.engine.store.scripts import source_maps
from lodger.engine.workbench import bundle as bundles
from lodger.sandbox.limits import Limits


def bundle(
    entry: Annotated[Path, typer.Argument(help="JavaScript or TypeScript file with the script's default export.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write main.js and its source map to.")] = Path(
        "bundle"
    ),
) -> None:
    """Make one file of a script and the npm packages that it imports, with a source map; store the folder as the script."""
    made = bundles.bundle(entry, out)
    size, maximum = made.sizes[source_maps.MAPPED], Limits().source_bytes
    shares = [f"{count} bytes of {name or 'your own files'}" for name, count in made.packages.items()]
    too_large = InputError("source_too_large.bundle", size=size, maximum=maximum, parts="; ".join(shares[:8]))
    body = {"folder": str(out), "files": made.sizes, "packages": made.packages, "warnings": made.warnings}
    write_result(body | ({"too_large": too_large.as_dict()} if size > maximum else {}))
    if made.warnings:
        say(made.warnings)
    say(f"{out / source_maps.MAPPED}: {size} bytes, with {source_maps.FILE} beside it")
    for share in shares[:8]:
        say(f"  {share}")
    if size > maximum:
        say(f"warning: {too_large.what}", f"  why: {too_large.why}", f"  fix: {too_large.fix}")
