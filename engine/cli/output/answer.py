"""How a verb answers: one JSON object for programs, or a table for people."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TextIO

import typer

#: Characters that could repaint a terminal, turn its line, or cannot be written.
UNSEEN = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object, for programs.")]
Database = Annotated[
    str | None,
    typer.Option("--db", metavar="PLACE", help="The ledger: a SQLite file or a database URL. [env: LODGER_DATABASE]"),
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.")]


def say(text: str = "") -> None:
    """Write a line for people, plain: text of strangers passes here, so control characters are made visible."""
    sys.stdout.write(visible(text) + "\n")


def visible(text: str) -> str:
    """Replace what could repaint or turn a terminal's line, or cannot be written; line ends and tabs stay.

    Control characters (escape sequences), controls of direction (a line that reads backwards), halves of surrogate pairs.
    """
    return re.sub(UNSEEN, "�", text)


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


def write_json(body: Any, out: TextIO | None = None) -> None:  # noqa: ANN401 - anything that JSON can say
    """Write one line of JSON; with escapes where the stream's encoding lacks a letter, or it is half of a pair."""
    stream = out or sys.stdout
    text = json.dumps(body, ensure_ascii=False, default=_plain)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(body, default=_plain)
    # A program reads the same letters; a terminal that shows the line to a person is not repainted by them.
    stream.write(re.sub(UNSEEN, _escaped, text) + "\n")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _plain(value: object) -> Any:  # noqa: ANN401 - anything that JSON can say
    if isinstance(value, datetime):
        return zulu(value)
    for name in ("as_dict", "_asdict"):
        if hasattr(value, name):
            return getattr(value, name)()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return sorted(value) if not isinstance(value, tuple) else list(value)
    return str(value)


def zulu(instant: datetime) -> str:
    """Write an aware instant as RFC 3339 with Z, without empty fractions."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
