"""``lodger demo``: the engine at work on two made-up shops, a line for each event."""

import contextlib
import logging
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.core.errors import InputError, Usage
from lodger.engine.output.result_output import is_for_program, say, write_result

KEPT = Path("lodger-demo")


def demo(
    lasting: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="Stop after this time, such as 30s or 2m. Default: run until Ctrl-C."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help=f"Keep the ledger in ./{KEPT}, and continue with it the next time.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep the engine and its dashboard up after --for, until Ctrl-C.")
    ] = False,
) -> None:
    """Run a demonstration with two shops, ten schedules of nine scripts, and slots that were missed during a hundred days."""
    for_s = None if lasting is None else seconds(lasting)
    with contextlib.ExitStack() as stack:
        folder = KEPT if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lodger-demo-")))
        _play(folder, for_s, serve=serve)
        if keep:
            say(f"The ledger is kept; list its actions with: lodger action list bluebird --db {folder / 'ledger.db'}")


def seconds(text: str) -> float:
    """Parse a duration such as ``30s`` or ``2m``.

    Raises:
        Usage: it is no duration, or zero.
    """
    from lodger.engine.recurrence.duration import DAY_US, SECOND_US, parse_duration

    try:
        length_us = parse_duration(text)
    except InputError:
        length_us = 0
    if not 0 < length_us <= 365 * DAY_US:
        raise Usage("length_invalid", text=text)
    return length_us / SECOND_US


def _play(folder: Path, for_s: float | None, *, serve: bool) -> None:
    """Run the demonstration in a folder."""
    import asyncio

    from lodger.engine.core.errors import Unavailable
    from lodger.engine.demo.run import play
    from lodger.engine.demo.summary import shown

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable("folder_unwritable", folder=str(folder), reason=error.strerror or "") from None
    # What the node notes is told among the demo's lines.
    logging.getLogger("lodger.node").propagate = False
    logging.getLogger("lodger.node").addHandler(logging.NullHandler())
    summary = asyncio.run(play(folder, for_s, say, serve=serve, dashboard=serve or not is_for_program()))
    write_result(summary)
    say()
    shown(summary, say)
