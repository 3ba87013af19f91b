"""How a verb answers: one JSON object for programs, or a table for people."""

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from lodger.engine.cli.json_line import visible as visible
from lodger.engine.cli.json_line import write_json as write_json
from lodger.engine.cli.json_line import zulu as zulu

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object, for programs.")]
Database = Annotated[
    str | None,
    typer.Option("--db", metavar="PLACE", help="The ledger: a SQLite file or a database URL. [env: LODGER_DATABASE]"),
]


def say(text: str = "") -> None:
    """Write a line for people, plain: text of strangers passes here, so what a terminal would not show is escaped."""
    sys.stdout.write(visible(text) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Write a table for people; cells are plain text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", header_style="bold", pad_edge=False)
    for column in columns:
        # On a narrow terminal cells fold: a table that hides what it cannot show says something else than the ledger.
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(
            *(cell if isinstance(cell, Text) else Text(visible("" if cell is None else str(cell))) for cell in row)
        )
    Console(highlight=False).print(grid)
