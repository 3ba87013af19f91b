"""Empties the outbox of one kind: takes due rows, one receiver beside another, and writes their results."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

from sqlalchemy import Row

from lodger.engine.core.clock import Clock
from lodger.engine.core.errors import Unavailable
from lodger.engine.node.service import Loop
from lodger.engine.store.connection.database import Database
from lodger.engine.store.queue import outbox
from lodger.engine.store.queue.outbox import Failure, Lane, RetryPolicy

T = TypeVar("T")

#: Called with a row and its new state after each try.
Marked = Callable[[Row[Any], str, Failure | None], None]


class Sender(Loop):
    """A service that delivers rows; a subclass says of which kind and how. ``start`` and ``stop`` are safe to call twice.

    Args:
        database: the ledger's.
        clock: for leases and pauses.

    Attributes:
        poll_s: how often the outbox is looked at without a call of :meth:`wake`, seconds.
        on_mark: called with each row and its new state.
        on_fault: called after a round that failed; it is tried again.
    """

    #: Kind of the rows; receivers served at once; rows taken of one receiver at once.
    name: ClassVar[str]
    #: Name of the effect that asks for its messages.
    effect: ClassVar[str]
    lanes: ClassVar[int]
    each: ClassVar[int]
    patience: RetryPolicy = RetryPolicy()
    poll_s: float = 5.0
    on_mark: Marked | None = None
    on_fault: Callable[[str, Exception], None] | None = None

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(clock)
        self._database = database
        self._busy: dict[Lane, asyncio.Task[None]] = {}

    async def deliver(self, rows: list[Row[Any]]) -> None:
        """Send the rows of one receiver, one after another, and :meth:`mark` each."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop; a message on the wire may go out again after its lease."""
        await super().stop()
        for each in (running := [*self._busy.values()]):
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._busy.clear()

    def fault(self, error: Exception) -> None:
        """Report that a round of the sender failed."""
        if self.on_fault is not None:
            self.on_fault(self.name, error)
        elif not isinstance(error, Unavailable):
            raise error

    async def round(self) -> float:
        """Begin to deliver due rows; look again at once as long as there are some."""
        return 0.0 if await self._begin() else self.poll_s

    async def send_due(self) -> int:
        """Take the due rows and try each once; return the number of taken rows when all of them have been tried."""
        taken = await self._begin()
        await asyncio.gather(*self._busy.values())
        return taken

    async def _begin(self) -> int:
        """Take the due rows of receivers that are not being served, and begin to deliver them."""
        free = self.lanes - len(self._busy)
        if free <= 0:
            return 0
        rows = await asyncio.to_thread(self._take, free, list(self._busy))
        by_lane: dict[Lane, list[Row[Any]]] = {}
        for row in rows:
            by_lane.setdefault((row.tenant_id, row.target), []).append(row)
        for lane, some in by_lane.items():
            task = self._busy[lane] = asyncio.create_task(self.deliver(some), name=f"sender-{self.name}-{lane[0]}")
            task.add_done_callback(partial(self._over, lane))
        return len(rows)

    def _over(self, lane: Lane, task: asyncio.Task[None]) -> None:
        """Free the lane of a receiver once its rows have been tried, and report a fault of the delivery."""
        self._busy.pop(lane, None)
        self.wake()
        if not task.cancelled() and isinstance(error := task.exception(), Exception) and self.on_fault is not None:
            # The rows it did not mark are taken up again after their lease.
            self.on_fault(self.name, error)

    def _take(self, free: int, busy: list[Lane]) -> list[Row[Any]]:
        """Lease due rows of receivers that are not busy."""
        now_us = self.clock.now_us()
        with self._database.read() as connection:
            lanes = outbox.due_lanes(connection, self.name, now_us, busy, free)
        if not lanes:
            return []
        with self._database.write() as connection:
            return outbox.lease_rows(connection, self.name, lanes, now_us, self.each)

    async def mark(self, row: Row[Any], failure: Failure | None) -> None:
        """Store the result of a delivery, None for a success, and report the row's state."""
        state = await asyncio.to_thread(self._mark, row, failure)
        if self.on_mark is not None:
            self.on_mark(row, state, failure)

    def _mark(self, row: Row[Any], failure: Failure | None) -> str:
        """Store the result of a delivery; return the row's state."""
        with self._database.write() as connection:
            return outbox.record_result(connection, row, failure, self.patience, self.clock.now_us())
