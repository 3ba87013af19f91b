"""Scripts' queries to the ledger's database, run in threads off the event loop, each in its own short snapshot."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from lodger.engine.core.clock import SystemClock
from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers import driver_of, patience
from lodger.engine.store.drivers.features import StatementTimeout

if TYPE_CHECKING:
    from lodger.engine.data.sets.foreign import ForeignDatabase

T = TypeVar("T")

#: A statement that takes longer is given up: a filter no index helps with may not hold a thread.
STATEMENT_S = 5.0
#: How long after that a server may be silent: a call is given up before the default wall of a run, 10 s, ends the run.
SILENCE_S = 3.0
#: Number of questions that are answered at once.
THREADS = 4
#: A question that takes longer is not counted: silent servers hold no other question up.
BRIEF_S = 1.0
#: Number of threads, those of silent servers included.
MAX_THREADS = 16


class ThreadReads:
    """Runs queries to a database in threads. Satisfies :class:`lodger.engine.capabilities.session.QueryRunner`."""

    def __init__(self, database: "Database | ForeignDatabase") -> None:
        self._database = database
        # A server that says nothing after its own limit has passed says nothing any more.
        adopt = partial(patience.adopt, STATEMENT_S + SILENCE_S)
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="lodger-read", initializer=adopt)
        self._places = asyncio.Semaphore(THREADS)

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``.

        Raises:
            CallRefused: ``too_slow``.
        """
        return await self._in_thread(partial(self._answer, work))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        """Run a function in a thread and await its result; a call longer than BRIEF_S no longer counts towards the maximum at once."""
        await self._places.acquire()
        loop, held = asyncio.get_running_loop(), ExitStack()
        held.callback(self._places.release)
        alarm = loop.call_later(BRIEF_S, held.close)
        try:
            return await loop.run_in_executor(self._pool, function)
        finally:
            alarm.cancel()
            held.close()

    def _answer(self, work: Callable[[Connection], T]) -> T:
        """Run a query in the present thread, within the time limit of queries."""
        with self._database.read() as connection:
            try:
                with driver_of(connection).time_limit(connection, STATEMENT_S, SystemClock().elapsed_s, scans=True):
                    return work(connection)
            except StatementTimeout as error:
                raise CallRefused("too_slow", "the query took too long; ask for less") from error

    async def numbers(self, rows: TableDataset, many: int) -> list[int] | None:
        """Take keys from the sequence of a dataset, so that a script knows its new row's id before it is written.

        Unused ones leave gaps, as is usual with sequences. None if there is no sequence, or values may not be given (GENERATED ALWAYS).
        """

        def take_numbers() -> list[int] | None:
            """Take the keys in a transaction of their own."""
            with (rows.database or self._database).write() as connection:
                return driver_of(connection).take_numbers(connection, rows.origin, rows.key.column.name, many)

        return await self._in_thread(take_numbers)

    def close(self) -> None:
        """End the threads of queries; safe to call twice."""
        self._pool.shutdown(wait=True)
