"""Output of results: one JSON object for programs, or a table for people."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TextIO

import typer

#: What could repaint or turn a line of a terminal, or stands in it unseen: control and format characters (escape sequences, direction, zero
#: width), separators of lines and paragraphs, fillers, halves of surrogate pairs, tags. Line feeds and tabs stay.
UNSEEN = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")]
Database = Annotated[
    str | None,
    typer.Option("--db", metavar="PLACE", help="SQLite file or database URL of the ledger. [env: LODGER_DATABASE]"),
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="ID of the tenant.")]


def say(text: str = "") -> None:
    """Write a plain line for people; it may quote scripts, so invisible characters are escaped."""
    sys.stdout.write(visible(text) + "\n")


def visible(text: str) -> str:
    """Return text with its invisible and control characters escaped as in JSON."""
    return re.sub(UNSEEN, _escaped, text)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Write a table for people; cells are plain text, never markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", header_style="bold", pad_edge=False)
    for column in columns:
        # On a narrow terminal cells fold: a table that hides what it cannot show says something else than the ledger.
        grid.add_column(column, overflow="fold", no_wrap=column == "id")
    for row in rows:
        grid.add_row(
            *(cell if isinstance(cell, Text) else Text(visible("" if cell is None else str(cell))) for cell in row)
        )
    Console(highlight=False).print(grid)


def write_json(body: Any, out: TextIO | None = None) -> None:  # noqa: ANN401 - anything that JSON can say
    """Write one line of JSON; invisible characters and those that the stream's encoding lacks are escaped."""
    stream = out or sys.stdout
    text = json.dumps(body, ensure_ascii=False, default=_json_default)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(body, default=_json_default)
    stream.write(visible(text) + "\n")  # to a program the escapes are the same characters


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _json_default(value: object) -> Any:  # noqa: ANN401 - anything that JSON can say
    """Return a JSON form of a value that the encoder does not know."""
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
