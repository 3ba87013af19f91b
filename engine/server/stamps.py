"""When tokens and sessions were last used, written beside the answers: no request waits for the writer to say that it was made.

Written before each answer, as it was, a minute's first request of every token waited for a transaction of its own behind those of all
others, and of a token that asked a hundred times at once each one wrote.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable

from anyio import CapacityLimiter, to_thread
from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.store.context import Books

Write = Callable[[Connection], object]
_log = logging.getLogger("lodger.api")


class Stamps:
    """What waits to be written, all of it in the next transaction. Belongs to the event loop that writes first."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._due: dict[Hashable, Write] = {}
        self._under_way: dict[Hashable, Write] = {}
        self._alone: asyncio.Lock | None = None
        self._thread: CapacityLimiter | None = None

    def note(self, key: Hashable, write: Write) -> None:
        """Let this be written soon, unless the same is on its way."""
        if key not in self._due and key not in self._under_way:
            self._due[key] = write

    @property
    def due(self) -> int:
        """Give how many wait for the next transaction."""
        return len(self._due)

    async def write(self) -> None:
        """Write what waits. A ledger that takes nothing at the moment is not this request's concern: the next use says it again."""
        self._alone = self._alone or asyncio.Lock()
        self._thread = self._thread or CapacityLimiter(1)
        async with self._alone:
            self._under_way, self._due = self._due, {}
            try:
                if self._under_way:
                    await to_thread.run_sync(self._write, list(self._under_way.values()), limiter=self._thread)
            except Unavailable as error:
                _log.warning("when tokens were used is not written: %s", error)
            finally:
                self._under_way = {}

    def _write(self, writes: list[Write]) -> None:
        with self._books.database.write() as connection:
            for write in writes:
                write(connection)
