"""Output of results: one JSON object for programs, or lines and tables for people.

A command writes both, each by its function here; ``--json`` decides which of them appear.
"""

import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lodger.engine.core.clock import zulu
from lodger.engine.core.errors import Explained
from lodger.engine.core.plain_text import marked, one_line, visible

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from rich.console import Console

#: Columns of output that no terminal shows; a column of a table is as wide as its longest cell.
PIPED_WIDTH = 100_000
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PLACE",
        help="SQLite file, database URL, or name in LODGER_LEDGERS of the ledger. [env: LODGER_DATABASE]",
    ),
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ActionId = Annotated[
    str,
    typer.Argument(metavar="ACTION", help="ID of the action; 4 or more characters of its beginning or end are enough."),
]
TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="ID of the tenant.")]


@dataclass(slots=True)
class _Output:
    """The present command's output: for a program or for people, and the zone of times that people chose; None for UTC."""

    as_json: bool = False
    zone: "ZoneInfo | None" = None


_output = _Output()
_AS_JSON = inspect.Parameter(
    "as_json",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[bool, typer.Option("--json", help="Write the result as one JSON object.")],
    default=False,
)


class Group(typer.Typer):
    """Commands that have the option ``--json``."""

    def command(self, name: str | None = None, *, as_json: bool = True, **more: Any) -> Callable[..., Any]:
        """Add a function as a command, without the option if what it writes is a stream; see :class:`typer.Typer`."""
        if not as_json:
            return super().command(name, **more)

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            """Add the function with the option; return it unchanged."""

            @wraps(function)
            def run(as_json: bool, **options: Any) -> None:
                """Call the function with the other options."""
                _output.as_json = as_json
                try:
                    function(**options)
                except Explained as refused:
                    refused.fix = _to_copy(refused.fix, options)
                    raise
                finally:
                    _output.as_json = False

            own = inspect.signature(function, eval_str=True)
            found = own.replace(parameters=[*own.parameters.values(), _AS_JSON])
            run.__signature__ = found  # type: ignore[attr-defined]  # what Typer reads
            run.__annotations__ = {each.name: each.annotation for each in found.parameters.values()}
            super(Group, self).command(name, **more)(run)
            return function

        return add


def _to_copy(fix: str, options: Mapping[str, Any]) -> str:
    """Return a fix whose commands name the tenant and the action that the present command was given."""
    for word in ("TENANT", "ACTION"):
        given = options.get(f"{word.lower()}_id") or options.get(word.lower())
        if isinstance(given, str):
            fix = re.sub(rf"\b{word}\b", shlex.quote(given).replace("\\", r"\\"), fix)
    return fix


def is_for_program() -> bool:
    """Whether the present command writes JSON, because ``--json`` was given."""
    return _output.as_json


def show_zone(name: str | None) -> None:
    """Show times to people in a zone from now on; None for UTC.

    Raises:
        RuleInvalid: zone_unknown.
    """
    _output.zone = None if name is None else _zone(name)


def _zone(name: str) -> "ZoneInfo":
    """Return the time zone of this name."""
    from lodger.engine.recurrence.calendar.zones import python_zone  # few commands show times of other zones

    return python_zone(name)


def shown_instant(instant: datetime, tz: str = "UTC") -> str:
    """Return an instant for people: in the zone that they chose, else in the zone ``tz``."""
    zone = _output.zone or (None if tz == "UTC" else _zone(tz))
    return zulu(instant) if zone is None else instant.astimezone(zone).isoformat()


def say(*lines: str) -> None:
    """Write lines for people, an empty one by default.

    A line may quote scripts: invisible characters are escaped, and what follows a line end in it is marked.
    """
    if not _output.as_json:
        sys.stdout.write("".join(f"{marked(line)}\n" for line in lines or ("",)))


def console() -> "Console":
    """Return the console of standard output. What is piped is as wide as it needs to be: nothing in it is folded or cut."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    return Console(highlight=False, width=width)


def table(columns: Sequence[str], rows: Iterable[Iterable[object]], *, title: str | None = None) -> None:
    """Write a table for people; cells are plain text, never markup."""
    if _output.as_json:
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, title=title, title_justify="left", header_style="bold", pad_edge=False)
    for column in columns:
        # On a narrow terminal cells fold: a table that hides what it cannot show says something else than the ledger.
        grid.add_column(column, overflow="fold", no_wrap=column == "id")
    for row in rows:
        grid.add_row(
            *(cell if isinstance(cell, Text) else Text(one_line("" if cell is None else str(cell))) for cell in row)
        )
    console().print(grid)


def write_result(body: Any) -> None:
    """Write a result as one line of JSON if the output is for a program."""
    if _output.as_json:
        write_json(body)


def write_json(body: Any, out: TextIO | None = None) -> None:
    """Write one line of JSON; invisible characters and those that the stream's encoding lacks are escaped."""
    stream = out or sys.stdout
    text = json.dumps(body, ensure_ascii=False, default=_json_default)
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(body, default=_json_default)
    stream.write(visible(text) + "\n")  # to a program the escapes are the same characters


def _json_default(value: object) -> Any:
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
