"""The groups of commands to which wings add: the hooks of the command line."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import typer


class Opened(Protocol):
    """Opens the engine of a command, or a client with the same verbs."""

    def __call__(
        self, db: str | None, *, local: str | None = None, creates: bool = False
    ) -> AbstractContextManager[Any]:
        """Open the ledger or server of ``--db`` for a block."""


#: Help of the groups of wings' nouns, by word.
HELP: dict[str, str] = {}
#: What adds commands to the group of a noun, by its word.
COMMANDS: defaultdict[str, list[Callable[[typer.Typer, Opened], None]]] = defaultdict(list)
