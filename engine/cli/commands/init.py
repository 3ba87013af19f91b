"""``lodger init``: a folder of scripts that an editor understands: types, an example with its test and schedule, README."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from lodger.engine.cli.platform import Expose, File, preparation
from lodger.engine.core.errors import Unavailable
from lodger.engine.output import script_files
from lodger.engine.output.result_output import Database, say, write_result
from lodger.stdlib import declarations, npm_packages

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

TYPES = "lodger-types"
#: The files of a new folder. The example is written into a folder without scripts and without schedules.toml only.
NEW_FOLDER = files("lodger.engine.workbench") / "new_folder"
JSCONFIG = "jsconfig.json"
EXAMPLE = ("report.js", "report.test.js", "schedules.toml", "README.md")


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the scripts; created if it does not exist.")] = Path(),
    expose: Expose = None,
    platform: File = None,
    db: Database = None,
) -> None:
    """Write the types of everything that a script can name, and into an empty folder an example. Keeps your files."""
    place = folder / TYPES
    script_files.refuse_link(place)
    place.mkdir(parents=True, exist_ok=True)
    types = {declarations.FILE: declarations.text()}
    if (prepare := preparation(expose, platform)) is not None:
        types["sets.d.ts"] = _sets(prepare, db)
    for name, text in (types | {f"npm/{path}": text for path, text in npm_packages.declarations().items()}).items():
        script_files.put(folder, f"{TYPES}/{name}", text.encode())
    written = [name for name, text in _own(folder).items() if _write(folder / name, text)]
    write_result(
        {
            "folder": str(folder),
            "types": list(types),
            "jsconfig": JSCONFIG in written,
            "written": written,
        }
    )
    say(f"{place}: {', '.join(types)}")
    say(f"{folder}: {', '.join(written)}" if written else f"{folder}: nothing else to write")


def _own(folder: Path) -> dict[str, str]:
    """Return the files to write, by path, that become the author's own: settings of the editor, and an example unless there are
    scripts."""
    started = (folder / "schedules.toml").exists() or any(_is_script(each) for each in folder.iterdir())
    names = (JSCONFIG,) if started else (JSCONFIG, *EXAMPLE)
    return {name: (NEW_FOLDER / name).read_text("utf-8") for name in names}


def _is_script(path: Path) -> bool:
    return script_files.is_script(path) if path.is_dir() else path.suffix in (".js", ".ts", ".wasm")


def _write(path: Path, text: str) -> bool:
    """Write a file that does not exist; return whether it did not."""
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


@contextmanager
def _some_ledger(db: str | None) -> Iterator["Engine"]:
    """Open the ledger, or where there is none an empty one for the block: the types of sets need no more."""
    from lodger.engine.cli.ledger import opened
    from lodger.engine.sync import Engine

    with ExitStack() as stack:
        try:
            engine = stack.enter_context(opened(db))
        except Unavailable as absent:
            if absent.code != "not_a_ledger":
                raise
            folder = stack.enter_context(TemporaryDirectory())
            engine = stack.enter_context(Engine.open(f"{folder}/ledger.db"))
        yield engine


def _sets(prepare: "Callable[[Engine], None]", db: str | None) -> str:
    """Return the TypeScript declarations of the tables and functions that ``prepare`` gives the engine."""
    from lodger.engine.data.sets.typescript import declarations as of_sets

    with _some_ledger(db) as engine:
        prepare(engine)
        links = {name: about["links"] for name, about in engine.datasets.described().items()}
        return of_sets(engine.datasets, links, engine.datasets.functions)
