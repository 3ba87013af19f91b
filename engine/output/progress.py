"""A progress bar on a terminal; nothing in a pipe and for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lodger.engine.output.result_output import is_for_program


@contextmanager
def bar(what: str, unit: str, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr during the block; yields the function to call with the number of finished items.

    Args:
        what: the work, such as ``exporting acme``.
        unit: the counted items.
        quiet: show none; nor is it shown beside the output for a program.
    """
    if quiet or is_for_program() or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from lodger.engine.core.plain_text import visible

    text = TextColumn(escape(visible(what)))
    columns = (SpinnerColumn(), text, TextColumn(f"{{task.completed:.0f}} {unit}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done: shown.update(task, completed=done)


def to_stderr(text: str) -> None:
    """Show the name of a long step on stderr."""
    sys.stderr.write(f"{text} …\n")
