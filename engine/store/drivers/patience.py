"""Time limits for answers of a server ("patience").

A frozen server, or a network that drops packets while a balancer or pooler still accepts them, closes nothing: the
kernel's own timeouts see an end that acknowledges. Without a limit a waiting thread would wait for ever, as would the
one thread by which a node writes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lodger.engine.core.clock import SystemClock

#: Longer than any statement of Lodger takes, waits for locks included.
PATIENCE_S = 60.0
#: During a schema change: creating an index of a large history takes long.
UPGRADE_S = 3600.0

_thread = threading.local()
_clock = SystemClock()


class Patience:
    """The time limit of a thread.

    Attributes:
        patience_s: maximum time to wait for an answer before the connection is closed.
        silent_since_s: since when the server has been silent, on the system's clock of durations; None while no answer is awaited.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.silent_since_s: float | None = None

    def silent_s(self) -> float:
        """Return how long the answer that is awaited has not come, seconds."""
        since_s = self.silent_since_s
        return 0.0 if since_s is None else _clock.elapsed_s() - since_s


def adopt(patience_s: float = PATIENCE_S) -> Patience:
    """Use this limit for the present thread; return it."""
    _thread.patience = own = Patience(patience_s)
    return own


def of_thread() -> Patience | None:
    """Return the present thread's limit; None if it has none of its own."""
    return getattr(_thread, "patience", None)


@contextmanager
def waiting(patience_s: float) -> Iterator[None]:
    """Use this limit for the present thread during a block."""
    before = of_thread()
    adopt(patience_s)
    try:
        yield
    finally:
        _thread.patience = before
