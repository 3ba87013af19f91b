"""Commits on a PostgreSQL server: whether there was any since the last look, and notifications of them."""

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The transactions that a session sees: those numbered below ``end`` except those under way."""

    end: int
    under_way: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Snapshot":
        """Parse what PostgreSQL writes: ``xmin:xmax:number,number,…``."""
        _minimum, end, under_way = text.split(":")
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


#: Behind a pooler the same connection may lead to another server; its start time tells servers apart.
_LOOK = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()"
#: The present transaction's.
_NUMBER = "SELECT pg_current_xact_id()::text"


class ServerWatcher:
    """A connection that never writes; see :class:`lodger.engine.store.stores.features.ServerWatcher`.

    Every change has a transaction number, so each commit in the cluster makes the next snapshot another one, and one
    that is the same sees the same. Works behind a transaction pooler: each look is a transaction by itself. Numbers are one
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

    def overlook(self, connection: Connection) -> None:
        """Ignore the commit of the transaction of this connection; called from any thread."""
        number = int(connection.exec_driver_sql(_NUMBER).scalar_one())
        with self._noting:
            self._own.add(number)

    def version(self) -> int | None:
        """Return a number that differs after each commit; None when the server does not answer."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            text, server = self._connection.execute(_LOOK).fetchone()
        except Exception:  # noqa: BLE001 - whatever keeps it from seeing, callers then look by themselves
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
        """Close the connection; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()


class Subscription:
    """A connection of psycopg's that listens to a channel; see :class:`lodger.engine.store.stores.features.Subscription`."""

    def __init__(self, connection: Any, channel: str) -> None:  # noqa: ANN401 - psycopg's connection
        self._connection = connection
        self._listen = f"LISTEN {channel}"
        try:
            connection.execute(self._listen)
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return int(self._connection.fileno())

    def probe(self) -> None:
        """Listen once more, which changes nothing for a session that listens, and repairs one that does not."""
        self._connection.pgconn.send_query(self._listen.encode())
        self._connection.pgconn.flush()

    def received(self) -> tuple[bool, bool]:
        """Read what has arrived."""
        wire = self._connection.pgconn
        wire.consume_input()
        notified = answered = False
        while wire.notifies() is not None:
            notified = True
        if not wire.is_busy():
            while wire.get_result() is not None:
                answered = True
        return notified, answered

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
