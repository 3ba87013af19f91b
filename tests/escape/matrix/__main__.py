"""``python -m tests.escape.matrix``: the escape suite with and without walls. Filters and reports are those of ``lodger escape``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from tests.console import run
from tests.escape.matrix.runner import Matrix
from tests.everyday_share import runs_all

from lodger.engine.cli import escape
from lodger.engine.output.result_output import Group
from lodger.escape.arena import installed_runtimes


def matrix(
    runtime: Annotated[str | None, typer.Option(help="Run only cases of this runtime.")] = None,
    classes: Annotated[
        list[str] | None, typer.Option("--class", metavar="C", help="Only this class or chapter.")
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--case", metavar="ID", help="Only cases whose id begins so.")
    ] = None,
    wall: Annotated[str | None, typer.Option(help="Run only cases against this wall.")] = None,
    extra: Annotated[Path | None, typer.Option("--with", metavar="FILE", help="Also the CASES of a file.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
) -> None:
    """Run each case behind all walls, behind only its own (must hold) and behind none (must escape).

    Cases of runtime quickjs-native run with --runtime quickjs-native or LODGER_RUNTIMES=all.
    """
    chosen = escape.choose(runtime, classes, ids, wall, extra)
    everyday = tuple(each for each in installed_runtimes() if runs_all() or each != "quickjs-native")
    escape.run(Matrix, chosen, (runtime,) if runtime else everyday, times=2, html=html, junit=junit)


app = Group(add_completion=False)
app.command()(matrix)

if __name__ == "__main__":
    sys.exit(run(app, "python -m tests.escape.matrix", sys.argv[1:]))
