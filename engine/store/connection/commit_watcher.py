"""Tells whether anybody has committed anything since, without a transaction of ours: what lets an idle node ask nothing else."""

import sqlite3
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which transactions somebody sees: those numbered below ``end`` but for those that are under way."""

    end: int
    under_way: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Snapshot":
        """Read what PostgreSQL writes: ``xmin:xmax:number,number,…``."""
        _least, end, under_way = text.split(":")
        return cls(int(end), frozenset(map(int, filter(None, under_way.split(",")))))

    def sees_beyond(self, before: "Snapshot", own: Collection[int]) -> bool:
        """Whether it sees any transaction that an earlier one does not, beside these."""
        if self.end < before.end or self.end - before.end > len(own) + len(self.under_way):
            return True
        fresh = {*range(before.end, self.end), *before.under_way} - self.under_way
        return not fresh <= set(own)

    def sees(self, number: int) -> bool:
        """Whether it sees what this transaction did, if it did anything."""
        return number < self.end and number not in self.under_way


#: Behind a pooler the same connection may lead to another server; when it was started tells servers apart.
_ASKED = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()"


class ServerWitness:
    """A connection to PostgreSQL that never writes. Not for two threads at once.

    Whatever changes anything has a number, so each commit, of anybody in the cluster, makes the next snapshot another one, and one
    that is the same sees the same. Works behind a transaction pooler: each question is a transaction by itself. Numbers are one
    server's: of another one, such as a replica that was behind and has taken over, nothing is known.

    Args:
        connect: makes a connection that commits each statement by itself.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._connection: Any = None
        self._server: object = None
        self._before: Snapshot | None = None
        self._number = 0
        self._own: set[int] = set()
        self._noting = threading.Lock()

    def overlook(self, number: int) -> None:
        """Let this transaction, which has not ended yet, be nothing new; called from any thread."""
        with self._noting:
            self._own.add(number)

    def version(self) -> int | None:
        """Give a number that is another one after each commit; None when the server cannot be asked just now."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            text, server = self._connection.execute(_ASKED).fetchone()
        except Exception:  # noqa: BLE001 - whatever keeps it from seeing: whoever asks looks by himself then
            self.close()
            return None
        now = Snapshot.of(text)
        with self._noting:
            if self._before is None or server != self._server or now.sees_beyond(self._before, self._own):
                self._number += 1
            self._before, self._server = now, server
            self._own = {number for number in self._own if not now.sees(number)}
        return self._number

    def close(self) -> None:
        """Let go of the connection; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
