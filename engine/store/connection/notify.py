"""Notifies nodes of other processes of a change, so that they look at once, where the database can notify; a hint only.

A notification is delivered when its transaction commits, takes a lock of the whole cluster to do so, and is lost on a node that does
not listen. So none is sent for work that nodes make themselves, at most one in a while by each process, and no node relies on
them: every node polls as well.
"""

from sqlalchemy import Connection

from lodger.engine.store.stores import driver_of

CHANNEL = "lodger_changed"
#: Least time between two hints of one process. A node that hears one looks once more after it, for what was changed meanwhile.
WINDOW_S = 0.02


class Hints:
    """What one process sends."""

    def __init__(self) -> None:
        self._sent_s = float("-inf")

    def send(self, connection: Connection, elapsed_s: float) -> None:
        """Send one with this transaction, unless one has just been sent."""
        driver = driver_of(connection)
        if not driver.has_notifications or 0 <= elapsed_s - self._sent_s < WINDOW_S:
            return
        driver.notify(connection, CHANNEL)
        self._sent_s = elapsed_s
