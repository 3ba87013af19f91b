"""How long the other end of a connection may be silent while it owes an answer.

A server that is frozen, or a network that swallows what is sent while a balancer or pooler on the way still takes it, closes
nothing: the kernel's own timeouts see an end that acknowledges. A thread that waits there would wait for ever, and so would the one
thread by which a node writes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Longer than any statement of ours takes, locks included.
PATIENCE_S = 60.0
#: While the schema is changed: an index of a large history takes its time.
UPGRADE_S = 3600.0

_thread = threading.local()


class Patience:
    """The patience of some threads; it can be changed while they wait.

    Attributes:
        patience_s: seconds of silence, after which a connection that owes an answer is closed.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s

    def adopt(self) -> None:
        """Make it the present thread's."""
        _thread.patience = self


def of_thread() -> Patience | None:
    """Return the present thread's patience; None when it has none of its own."""
    return getattr(_thread, "patience", None)


@contextmanager
def waiting(patience_s: float) -> Iterator[None]:
    """Let the present thread be so patient for a block."""
    before = of_thread()
    _thread.patience = Patience(patience_s)
    try:
        yield
    finally:
        _thread.patience = before
