"""Commit watcher and notifications of PostgreSQL."""

import threading
from collections.abc import Callable, Collection, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table

from lodger.engine.store.drivers.postgresql.connections import has_data


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The transactions visible to a session: those numbered below ``end`` except the unfinished ones."""

    end: int
    under_way: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Snapshot":
        """Parse a ``pg_snapshot``: ``xmin:xmax:number,number,…``."""
        _minimum, end, under_way = text.split(":")
        return cls(int(end), frozenset(map(int, filter(None, under_way.split(",")))))

    def sees_beyond(self, before: "Snapshot", own: Collection[int], beats: Collection[int] = ()) -> bool:
        """Whether a transaction is visible here that was not visible before, other than ``own`` and ``beats``.

        The latter are the lower 32 bits of the numbers of heartbeats.
        """
        if self.end < before.end or self.end - before.end > len(own) + len(beats) + len(self.under_way):
            return True
        fresh = {*range(before.end, self.end), *before.under_way} - self.under_way
        return any(number % 2**32 not in beats for number in fresh - set(own))

    def sees(self, number: int) -> bool:
        """Whether the effects of this transaction are visible."""
        return number < self.end and number not in self.under_way


#: Behind a pooler the same connection may lead to another server; the start time identifies the server. A node's heartbeat is the
#: transaction that wrote the present version of its row (``xmin``) and changed nothing else in it.
_LOOK = """
SELECT pg_current_snapshot()::text, pg_postmaster_start_time(),
    ARRAY(SELECT ARRAY[xmin::text, id::text, concat_ws(' ', {columns})] FROM {table} WHERE state = 'alive')
"""
#: Number of the present transaction.
_NUMBER = "SELECT pg_current_xact_id()::text"


class ServerWatcher:
    """Commit watcher that compares snapshots. Not thread-safe, but for :meth:`overlook`.

    Each change has a transaction number, so that every commit in the cluster changes the next snapshot, and equal
    snapshots see the same data. Works behind a transaction pooler, because each query is a transaction. Numbers of
    different servers, such as a promoted replica, are not comparable.

    Heartbeats of other nodes are overlooked: otherwise each idle node would look at the ledger after each heartbeat of each other.

    Args:
        connect: returns a connection in autocommit mode.
        nodes: the table of nodes.
        heartbeat: columns of it that a heartbeat writes.
    """

    def __init__(self, connect: Callable[[], Any], nodes: Table, heartbeat: Collection[str]) -> None:
        self._connect = connect
        columns = ", ".join(column.name for column in nodes.columns if column.name not in heartbeat)
        self._look = _LOOK.format(columns=columns, table=nodes.name)
        self._nodes: dict[str, str] = {}
        self._connection: Any = None
        self._server: object = None
        self._before: Snapshot | None = None
        self._number = 0
        self._own: set[int] = set()
        self._noting = threading.Lock()

    def overlook(self, connection: Connection) -> None:
        """Ignore the commit of this connection's transaction; thread-safe."""
        number = int(connection.exec_driver_sql(_NUMBER).scalar_one())
        with self._noting:
            self._own.add(number)

    def version(self) -> int | None:
        """Return a number that changes after each commit; None if the server does not answer."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            text, server, rows = self._connection.execute(self._look).fetchone()
        except Exception:  # noqa: BLE001 - without a version callers query the tables themselves
            self.close()
            return None
        now = Snapshot.of(text)
        beats = {int(number) for number, node, values in rows if self._nodes.get(node) == values}
        self._nodes = {node: values for _number, node, values in rows}
        with self._noting:
            if self._before is None or server != self._server or now.sees_beyond(self._before, self._own, beats):
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


#: How often a caller of :func:`notifications` can end it, seconds.
_STEP_S = 0.1


def notifications(connection: Any, channel: str) -> Generator[bool]:
    """Listen to a channel on a psycopg connection, which this closes; see :meth:`lodger.engine.store.drivers.Driver.notifications`.

    LISTEN is repeated as a probe: it is harmless in a listening session, repairs one that is not, and fails if no answer comes.
    """
    with closing(connection):
        is_notified = True
        while True:
            connection.execute(f"LISTEN {channel}")
            for step in range(int(connection.patience_s / _STEP_S)):
                yield is_notified
                # At first some may have come with the answer to LISTEN.
                may_be_notified = has_data(connection, _STEP_S) or step == 0
                is_notified = may_be_notified and bool(list(connection.notifies(timeout=0)))
