"""A progress bar on a terminal; nothing in a pipe and for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    what: str, unit: str = "", *, total: int | None = None, as_json: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show on stderr what is under way for as long as the block lasts; give what is called with how many are done.

    Args:
        what: what is done, such as ``exporting acme``.
        unit: what is counted; nothing when left out.
        total: how many there will be, where that is known.
        as_json: the answer is for a program.
    """
    if as_json or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from lodger.engine.cli.output.result_output import visible

    text = TextColumn(escape(visible(what)))
    counted = (TextColumn(f"{{task.completed:.0f}} {unit}"),) if unit else ()
    columns = (text, BarColumn(), MofNCompleteColumn()) if total is not None else (SpinnerColumn(), text, *counted)
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.update(task, completed=done)
