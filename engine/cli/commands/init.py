"""``lodger init``: a folder of scripts that an editor understands, without any extension."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.output.result_output import AsJson, Database, say, write_json
from lodger.stdlib import declarations

TYPES = "lodger-types"
JSCONFIG = """{
  "compilerOptions": {
    "checkJs": true,
    "strict": true,
    "target": "es2023",
    "lib": ["es2023"],
    "types": [],
    "moduleDetection": "force",
    "noEmit": true
  },
  "include": ["**/*.js", "lodger-types/*.d.ts"],
  "exclude": ["node_modules"]
}
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the scripts; created if it does not exist.")] = Path(),
    expose: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Function that is called with the engine; types are also written for the tables that it exposes.",
        ),
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write type declarations for scripts, and jsconfig.json if missing, so that editors complete and check them."""
    place = folder / TYPES
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for part in declarations.parts():  # earlier releases wrote each part
        (place / part).unlink(missing_ok=True)
    (place / declarations.FILE).write_text(declarations.text())
    written.append(declarations.FILE)
    if expose is not None:
        (place / "sets.d.ts").write_text(_sets(expose, db))
        written.append("sets.d.ts")
    config = folder / "jsconfig.json"
    fresh = not config.exists()
    if fresh:
        config.write_text(JSCONFIG)
    if as_json:
        write_json({"folder": str(folder), "types": written, "jsconfig": fresh})
        return
    say(f"{place}: {', '.join(written)}")
    say(f"{config}: written" if fresh else f"{config}: unchanged")


def _sets(expose: str, db: str | None) -> str:
    from lodger.engine.cli.ledger import opened
    from lodger.engine.cli.up import named
    from lodger.engine.data.sets.typescript import declarations

    tell = named(expose)
    with opened(db) as engine:
        tell(engine)
        links = {name: about["links"] for name, about in engine.datasets.described().items()}
        return declarations(engine.datasets, links)
