"""Tells nodes of other processes that something was changed, so that they look at once; PostgreSQL only, and a hint only.

A NOTIFY is delivered when its transaction commits, takes a lock of the whole cluster to do so, and is lost on whoever does not
listen. So none is sent for work that nodes make themselves, at most one in a while by each process, and nobody relies on them:
every node polls as well.
"""

from sqlalchemy import Connection

CHANNEL = "lodger_changed"
#: Least time between two hints of one process. Who hears one looks once more after it, for what was changed meanwhile.
WINDOW_S = 0.02


class Hints:
    """What one process sends."""

    def __init__(self) -> None:
        self._sent_s = float("-inf")

    def send(self, connection: Connection, elapsed_s: float) -> None:
        """Send one with this transaction, unless one has just been sent."""
        if connection.dialect.name == "sqlite" or 0 <= elapsed_s - self._sent_s < WINDOW_S:
            return
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")
        self._sent_s = elapsed_s
