"""Questions of scripts to the ledger's database, away from the event loop: a few threads, each question its own short snapshot."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from lodger.engine.core.refusal import CallRefused
from lodger.engine.data.sets.dataset import TableDataset
from lodger.engine.data.sets.numbers import Writable, taken
from lodger.engine.data.values.stored import SQLITE
from lodger.engine.store.connection.timeouts import Line

T = TypeVar("T")

#: A statement that takes longer is given up: a filter no index helps with may not hold a thread.
STATEMENT_S = 5.0
#: How long after that a server may be silent.
SILENCE_S = 10.0
_STEPS = 20_000
#: SQLSTATE of a statement that its time limit ended (PostgreSQL, Appendix A).
_QUERY_CANCELED = "57014"


class Readable(Writable, Protocol):
    """An open database (:class:`lodger.engine.store.connection.database.Database`)."""

    def read(self) -> AbstractContextManager[Connection]:
        """Give one consistent snapshot."""
        ...


class ThreadReads:
    """Answers questions in threads. Satisfies :class:`lodger.engine.capabilities.session.Reads`.

    Args:
        database: where the rows are.
        threads: how many questions are answered at once.
        elapsed_s: a clock that never steps.
        statement_s: most seconds of one question on SQLite, of each statement of it on PostgreSQL.
    """

    def __init__(
        self, database: Readable, *, elapsed_s: Callable[[], float], threads: int = 4, statement_s: float = STATEMENT_S
    ) -> None:
        self._database = database
        self._elapsed_s = elapsed_s
        self._statement_s = statement_s
        # A server that says nothing after its own limit has passed says nothing any more.
        line = Line(statement_s + SILENCE_S)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lodger-read", initializer=line.adopt)

    async def __call__(self, work: Callable[[Connection], T]) -> T:
        """Give what ``work`` answers.

        Raises:
            CallRefused: ``too_slow``.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, work)

    def _answer(self, work: Callable[[Connection], T]) -> T:
        with self._database.read() as connection:
            if connection.dialect.name != SQLITE:
                return self._limited(connection, work)
            return self._bounded(connection, work)

    def _limited(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        # The server's own limit, of each statement, which ends with the transaction.
        connection.execute(text(f"SET LOCAL statement_timeout = {max(1, int(self._statement_s * 1000))}"))
        try:
            return work(connection)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) == _QUERY_CANCELED:
                raise CallRefused("too_slow", "the database took too long to answer; ask for less") from error
            raise

    def _bounded(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        raw = connection.connection.driver_connection
        assert raw is not None
        end = self._elapsed_s() + self._statement_s
        raw.set_progress_handler(lambda: self._elapsed_s() > end, _STEPS)
        try:
            return work(connection)
        except OperationalError as error:
            if self._elapsed_s() > end:
                raise CallRefused("too_slow", "the database took too long to answer; ask for less") from error
            raise
        finally:
            raw.set_progress_handler(None, 0)

    async def numbers(self, rows: TableDataset, many: int) -> list[int] | None:
        """Take keys of a set from its database: :func:`lodger.engine.data.sets.numbers.taken`."""
        database = rows.database or self._database
        return await asyncio.get_running_loop().run_in_executor(self._pool, taken, database, rows, many)

    def close(self) -> None:
        """End the threads; safe to call twice."""
        self._pool.shutdown(wait=True)
