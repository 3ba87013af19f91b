"""How far work is that takes long: whoever waits for a verb may listen; a verb that nobody listens to tells nobody.

It holds for the present task or thread and what the engine does on its behalf, as
:mod:`lodger.engine.core.access.audit_context` does; a server tells its clients nothing of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Called with how many are done so far.
Listener = Callable[[int], object]
#: Done between two times that it is told.
STEP = 500

_listener: ContextVar[Listener | None] = ContextVar("lodger_under_way", default=None)


@contextmanager
def report_progress_to(listener: Listener) -> Iterator[None]:
    """Be told, inside the block, how many rows the verb that runs there has dealt with."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class ProgressCounter:
    """Counts what a verb has dealt with, and tells it now and then; the listener is whoever listened when it was made."""

    def __init__(self) -> None:
        self._listener = _listener.get()
        self._done = self._reported = 0

    def add(self, many: int = 1) -> None:
        """Count more."""
        self._done += many
        if self._listener is not None and self._done - self._reported >= STEP:
            self._reported = self._done
            self._listener(self._done)
