"""Tells whether anybody has committed anything since, without a transaction: what lets an idle node ask nothing."""

import sqlite3


class Witness:
    """A connection to a SQLite file that never writes. Not for two threads at once."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._unknown = 0

    def version(self) -> int:
        """Give a number that is another one after each commit of any other connection, of this process or not.

        When the file cannot be asked just now, it is one that never was: whoever compares has to look.
        """
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            self._unknown -= 1
            return self._unknown
        return int(version)

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._connection.close()
