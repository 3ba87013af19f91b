"""Time limits for answers of a server ("patience").

A frozen server, or a network that drops packets while a balancer or pooler still accepts them, closes nothing: the
kernel's own timeouts see an end that acknowledges. Without a limit a waiting thread would wait for ever, as would the
one thread by which a node writes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Longer than any statement of Lodger takes, waits for locks included.
PATIENCE_S = 60.0
#: During a schema change: creating an index of a large history takes long.
UPGRADE_S = 3600.0

_thread = threading.local()


class Patience:
    """The time limit of some threads; it can be changed while they wait.

    Attributes:
        patience_s: maximum time to wait for an answer before the connection is closed.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s

    def adopt(self) -> None:
        """Use it for the present thread."""
        _thread.patience = self


def of_thread() -> Patience | None:
    """Return the present thread's limit; None if it has none of its own."""
    return getattr(_thread, "patience", None)


@contextmanager
def waiting(patience_s: float) -> Iterator[None]:
    """Use this limit for the present thread during a block."""
    before = of_thread()
    _thread.patience = Patience(patience_s)
    try:
        yield
    finally:
        _thread.patience = before
