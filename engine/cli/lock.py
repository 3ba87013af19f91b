"""``lodger lock``: work of the platform's that one process does at a time."""

from typing import Any

import typer

from lodger.engine.cli.answer import say, zulu
from lodger.engine.cli.of_verb import Command, add

app = typer.Typer(name="lock", help="Work of the platform's that one process does at a time.", no_args_is_help=True)


def _taken(lock: Any) -> None:  # noqa: ANN401 - a lock, or None
    say("another has it" if lock is None else f"{lock.name} is held by {lock.holder} until {zulu(lock.until)}")


def _freed(had: bool) -> None:
    say("free" if had else "that holder did not have it any more")


def _in_vain(answer: Any) -> bool:  # noqa: ANN401 - a lock or None, a bool
    return not answer


add(
    app,
    Command("list", "locks.list", wrap="locks"),
    Command("take", "locks.take", view=_taken, failed=_in_vain),
    Command("free", "locks.free", view=_freed, failed=_in_vain),
)
