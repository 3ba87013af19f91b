"""Ledgers that could not be asked for their part of an answer: noted where they are missed, named by each surface."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lodger.engine.core.context_values import holding

#: Header of an answer of the API from which parts of ledgers are missing.
HEADER = "Lodger-Unreachable"
_noted: ContextVar[set[str] | None] = ContextVar("unreachable", default=None)
_log = logging.getLogger("lodger")


@contextmanager
def unreachable_ledgers() -> Iterator[set[str]]:
    """Collect the names of ledgers whose part is missing in the answers of the block."""
    found: set[str] = set()
    with holding(_noted, found):
        yield found


def note_unreachable(*names: str) -> None:
    """Note ledgers whose part of an answer is missing; without a collector the log says it."""
    found = _noted.get()
    if found is not None:
        found.update(names)
        return
    for name in names:
        _log.warning("the ledger %s cannot be reached: its part is missing in an answer", name)


def sentence(names: set[str]) -> str:
    """Return the sentence for people that names the ledgers whose part of an answer is missing."""
    return f"these ledgers cannot be reached, and their part is missing: {', '.join(sorted(names))}; see lodger ledger list"
