"""Carries the ledger's synchronous functions to threads: one that writes, one that reads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from sqlalchemy import Connection

from lodger.engine.ledger.database import Database
from lodger.engine.ledger.patience import PATIENCE_S, Line

T = TypeVar("T")


class Pen:
    """One writer thread, because SQLite has one writer; reads never wait behind a write.

    Attributes:
        line: how long a server may keep either thread waiting.
    """

    def __init__(self, database: Database, patience_s: float = PATIENCE_S) -> None:
        self._database = database
        self.line = Line(patience_s)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lodger-writer", initializer=self.line.adopt)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lodger-reader", initializer=self.line.adopt)
        self._witness = database.witness()
        self._stood: dict[object, tuple[int, object, Callable[[Connection], object]]] = {}

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction of the writer thread. Cancelling the wait does not undo the work."""

        def transaction() -> T:
            with self._database.write() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._writer, transaction)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work on one snapshot in the reader thread."""

        def transaction() -> T:
            with self._database.read() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._reader, transaction)

    @property
    def sees(self) -> bool:
        """Whether :meth:`version` tells of commits."""
        return self._witness is not None

    def version(self) -> int | None:
        """Give a number that changes with every commit of anybody; None when the database has no such thing."""
        return None if self._witness is None else self._witness.version()

    async def standing(self, key: object, work: Callable[[Connection], T]) -> T:
        """Read what only a commit can change: asked anew when there was one, or when nobody can tell.

        Args:
            key: stands for the question, with all that the answer depends on beside the ledger; no two questions share one.
        """
        version = self.version()
        stood = self._stood.get(key)
        if stood is not None and version is not None and stood[0] == version:
            return cast("T", stood[1])
        answer = await self.read(work)
        if version is not None:
            self._stood[key] = version, answer, work
        return answer

    async def refresh(self) -> None:
        """Ask every question of :meth:`standing` again whose answer stands no more, all in one transaction."""
        version = self.version()
        stale = {key: work for key, (stood, _answer, work) in self._stood.items() if stood != version}
        if version is None or not stale:
            return
        answers = await self.read(lambda connection: {key: work(connection) for key, work in stale.items()})
        for key, answer in answers.items():
            self._stood[key] = version, answer, stale[key]

    def close(self) -> None:
        """End both threads after what they hold; safe to call twice."""
        if self._witness is not None:
            self._witness.close()
        self._writer.shutdown()
        self._reader.shutdown()
