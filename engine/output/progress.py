"""A progress bar on a terminal; nothing in a pipe and for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    what: str, unit: str = "", *, total: int | None = None, as_json: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr during the block; yields the function to call with the number of finished items.

    Args:
        what: the work, such as ``exporting acme``.
        unit: the counted items; empty for none.
        total: number of items, if known.
        as_json: whether the output is for a program.
    """
    if as_json or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from lodger.engine.core.plain_text import visible

    text = TextColumn(escape(visible(what)))
    counted = (TextColumn(f"{{task.completed:.0f}} {unit}"),) if unit else ()
    columns = (text, BarColumn(), MofNCompleteColumn()) if total is not None else (SpinnerColumn(), text, *counted)
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)


def to_stderr(text: str) -> None:
    """Show on stderr what takes long."""
    sys.stderr.write(f"{text} …\n")
