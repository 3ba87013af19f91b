"""Notifications of changes to the nodes in other processes, where the database supports them; a hint only.

A notification is delivered when its transaction commits, takes a lock of the whole cluster, and is lost on a node that
does not listen. Therefore none is sent for work that nodes create themselves, each process sends at most one per
``WINDOW_S``, and every node polls as well.
"""

from sqlalchemy import Connection

from lodger.engine.store.drivers import driver_of

CHANNEL = "lodger_changed"
#: Minimum time between two notifications of one process. A node that receives one checks again after this time.
WINDOW_S = 0.02


class Hints:
    """The notifications of one process."""

    def __init__(self) -> None:
        self._sent_s = float("-inf")

    def send(self, connection: Connection, elapsed_s: float) -> None:
        """Send a notification with this transaction, unless one was sent within ``WINDOW_S``."""
        driver = driver_of(connection)
        if not driver.is_remote or 0 <= elapsed_s - self._sent_s < WINDOW_S:
            return
        driver.notify(connection, CHANNEL)
        self._sent_s = elapsed_s
