"""Progress of long operations, reported to a listener of the current task or thread, if there is one.

Applies to the engine's work for that task or thread, as :mod:`lodger.engine.core.access.audit_context` does; a server
does not pass it on to its clients.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar

from lodger.engine.core.context_values import holding

#: Called with how many are done so far.
Listener = Callable[[int], object]
#: Done between two times that it is told.
STEP = 500

_listener: ContextVar[Listener | None] = ContextVar("lodger_under_way", default=None)


def report_progress_to(listener: Listener) -> AbstractContextManager[None]:
    """Call the listener with the number of rows that operations inside the block have processed."""
    return holding(_listener, listener)


class ProgressCounter:
    """Counts processed rows and reports the count now and then to the listener that was set when the counter was made."""

    def __init__(self) -> None:
        self._listener = _listener.get()
        self._done = self._reported = 0

    def add(self, many: int = 1) -> None:
        """Count further processed rows, and report the sum when enough have come together."""
        self._done += many
        if self._listener is not None and self._done - self._reported >= STEP:
            self._reported = self._done
            self._listener(self._done)
