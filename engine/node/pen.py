"""Carries the ledger's synchronous functions to threads: one that writes, one that reads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection

from lodger.engine.ledger.database import Database

T = TypeVar("T")


class Pen:
    """One writer thread, because SQLite has one writer; reads never wait behind a write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lodger-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lodger-reader")

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

    def close(self) -> None:
        """End both threads after what they hold; safe to call twice."""
        self._writer.shutdown()
        self._reader.shutdown()
