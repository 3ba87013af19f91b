"""Runs the store's synchronous functions in threads: one that writes, one that reads, one that asks a server for commits."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar, overload

from sqlalchemy import Connection

from lodger.engine.store.connection.database import Database
from lodger.engine.store.drivers import patience, prepared

T = TypeVar("T")


class DbExecutor:
    """One writer thread, because SQLite has one writer; reads never wait behind a write. No thread waits longer than a lease."""

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        # A session that is silent for a lease is left for another one: the lease may be renewed by a session that answers.
        adopt = partial(patience.adopt, min(lease_s, patience.PATIENCE_S))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lodger-writer", initializer=adopt)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lodger-reader", initializer=adopt)
        self._watcher = database.file_watcher()
        self._server_watcher = database.server_watcher()
        # In a thread of its own: a server that does not answer delays neither reads nor writes.
        self._poller = ThreadPoolExecutor(1, thread_name_prefix="lodger-commits", initializer=adopt)
        self._polling: asyncio.Future[int | None] | None = None
        self._seen: int | None = None
        #: Number of this node's transactions that its services need not look for.
        self._quiet = 0
        #: Number of its other transactions, as :meth:`version` told it last.
        self._own = 0
        self._invalidations = 0
        self._cached: dict[object, tuple[object, object, Callable[[Connection], object]]] = {}

    async def write(
        self, work: Callable[[Connection], T], *, quiet: bool = False, is_plain: Callable[[T], bool] | None = None
    ) -> T:
        """Do the work in one transaction of the writer thread. Cancelling the wait does not undo the work.

        Args:
            quiet: nothing of :meth:`cached_read` depends on it, and :meth:`version` need not tell of it.
            is_plain: whether the work done was plain; called after the commit, with which the last answers came. A server's version
                tells of it nevertheless: to ask for the number of each of these transactions would cost more than a look now and then.
        """

        done: list[T] = []

        def count_quiet() -> None:
            """Count a transaction about which other services need not be told."""
            # Before the commit is counted: between the two, the version stays as it is.
            self._quiet += quiet or (is_plain is not None and is_plain(done[0]))

        def transaction() -> T:
            """Do the work in a write transaction."""
            with self._database.write(count_quiet) as connection:
                done.append(work(connection))
                if quiet and self._server_watcher is not None:
                    self._server_watcher.overlook(connection)
            return done[0]

        return await asyncio.get_running_loop().run_in_executor(self._writer, transaction)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work on one snapshot in the reader thread."""

        def transaction() -> T:
            """Do the work in a read transaction."""
            with self._database.read() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._reader, transaction)

    async def poll_version(self, patience_s: float) -> None:
        """Ask a database server for its latest commit; does nothing where :meth:`version` knows without asking.

        Without an answer within ``patience_s`` the version is unknown until one comes.
        """
        if self._server_watcher is None:
            return
        if self._polling is None:
            self._polling = asyncio.get_running_loop().run_in_executor(self._poller, self._server_watcher.version)
        answered, _ = await asyncio.wait({self._polling}, timeout=patience_s)
        self._seen = self._polling.result() if answered else None
        if answered:
            self._polling = None

    def invalidate(self) -> None:
        """Drop the answers that :meth:`cached_read` keeps: there may have been a commit."""
        self._invalidations += 1

    @property
    def polls(self) -> bool:
        """Whether :meth:`version` knows of other processes' commits by :meth:`poll_version` alone."""
        return self._server_watcher is not None

    @property
    def sees_commits(self) -> bool:
        """Whether commits of other processes are known without looking: :meth:`version` is not None."""
        return self._watcher is not None or self._seen is not None

    def version(self) -> object | None:
        """Return a value that changes with every commit that is not quiet or plain, another process's at the next poll.

        None while it is unknown.
        """
        own = self._own = max(self._own, self._database.written - self._quiet)
        if self._watcher is not None:
            return (self._watcher.version(), own)
        return None if self._seen is None else (self._seen, own, self._invalidations)

    @overload
    async def cached_read(self, key: object, work: Callable[[Connection], Callable[[], T]]) -> T: ...

    @overload
    async def cached_read(self, key: object, work: Callable[[Connection], T]) -> T: ...

    async def cached_read(self, key: object, work: Callable[[Connection], object]) -> object:
        """Read values that only a commit can change: asked anew after one, or while the version is unknown.

        Args:
            key: identifies the question, with all that its answer depends on beside the ledger.
            work: returns the answer, or sends the question and returns a function that returns its answer: so a server answers
                several questions in one round trip.
        """
        version = self.version()
        stood = self._cached.get(key)
        if stood is not None and version is not None and stood[0] == version:
            return stood[1]
        answer = (await self.read(partial(_answers, {key: work})))[key]
        if version is not None:
            self._cached[key] = version, answer, work
        return answer

    async def refresh(self) -> None:
        """Ask again, in one transaction, every question of :meth:`cached_read` with an outdated answer."""
        version = self.version()
        stale = {key: work for key, (stood, _answer, work) in self._cached.items() if stood != version}
        if version is None or not stale:
            return
        answers = await self.read(partial(_answers, stale))
        for key, answer in answers.items():
            self._cached[key] = version, answer, stale[key]

    def close(self) -> None:
        """End its threads after the work that they hold; safe to call twice."""
        self._poller.shutdown()
        if self._server_watcher is not None:
            self._server_watcher.close()
        self._writer.shutdown()
        self._reader.shutdown()


def _answers(
    questions: Mapping[object, Callable[[Connection], object]], connection: Connection
) -> dict[object, object]:
    """Return the answers to questions by key; a server gets all of them in one round trip."""
    asked = {key: work(connection) for key, work in questions.items()}
    prepared.last(connection)
    return {key: answer() if callable(answer) else answer for key, answer in asked.items()}
