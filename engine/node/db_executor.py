"""Runs the store's synchronous functions in threads: one that writes, one that reads, one that asks a server for commits."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from concurrent.futures import Executor
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from lodger.engine.store.connection.database import Database
from lodger.engine.store.stores.patience import PATIENCE_S, Patience

T = TypeVar("T")
#: Work, and the future of the event loop that gets its result.
_Item = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class OneThread(Executor):
    """A thread that does work in order and answers with futures of the caller's event loop.

    A future of :mod:`concurrent.futures` that is chained to one of the loop costs four times as many calls on the way, which a
    run that comes alone pays six times.

    Args:
        begin: called first in the thread.
    """

    def __init__(self, name: str, begin: Callable[[], None]) -> None:
        self._name, self._begin = name, begin
        self._items: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._closed = False

    def submit(self, work: Callable[[], T], /) -> "asyncio.Future[T]":  # type: ignore[override]  # see the class
        """Return the future of some work; if it is cancelled before the work began, the work is dropped."""
        if self._closed:
            raise RuntimeError(f"the thread {self._name} has ended")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._thread is None:
            self._thread = Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        self._items.put((work, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as inherited
        """End the thread after the work that it holds; safe to call twice."""
        self._closed = True
        self._items.put(None)
        if wait and self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        self._begin()
        while (item := self._items.get()) is not None:
            work, future = item
            if future.cancelled():
                continue
            result = failure = None
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - the waiting task raises it
                failure = error
            with suppress(RuntimeError):  # the loop has closed
                future.get_loop().call_soon_threadsafe(_answer, future, result, failure)
            del item, work, future, result, failure


def _answer(future: "asyncio.Future[Any]", result: object, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)


class DbExecutor:
    """One writer thread, because SQLite has one writer; reads never wait behind a write.

    Attributes:
        timeouts: how long a server may keep either thread waiting.
    """

    def __init__(self, database: Database, patience_s: float = PATIENCE_S) -> None:
        self._database = database
        self.timeouts = Patience(patience_s)
        self._writer = OneThread("lodger-writer", self.timeouts.adopt)
        self._reader = OneThread("lodger-reader", self.timeouts.adopt)
        self._watcher = database.file_watcher()
        self._server_watcher = database.server_watcher()
        # In a thread of its own: a server that does not answer delays neither reads nor writes.
        self._poller = OneThread("lodger-commits", self.timeouts.adopt)
        self._polling: asyncio.Future[int | None] | None = None
        self._seen: int | None = None
        self._invalidations = 0
        self._cached: dict[object, tuple[object, object, Callable[[Connection], object]]] = {}

    async def write(self, work: Callable[[Connection], T], *, quiet: bool = False) -> T:
        """Do the work in one transaction of the writer thread. Cancelling the wait does not undo the work.

        Args:
            quiet: nothing of :meth:`cached_read` depends on it, and :meth:`version` need not tell of it.
        """

        def transaction() -> T:
            with self._database.write(counted=not quiet) as connection:
                done = work(connection)
                if quiet and self._server_watcher is not None:
                    self._server_watcher.overlook(connection)
                return done

        return await asyncio.get_running_loop().run_in_executor(self._writer, transaction)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work on one snapshot in the reader thread."""

        def transaction() -> T:
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
        """Whether :meth:`version` is known."""
        return self._watcher is not None or self._seen is not None

    def version(self) -> object | None:
        """Return a value that changes with every commit, another process's at the next poll; None while it is unknown."""
        if self._watcher is not None:
            return self._watcher.version()
        return None if self._seen is None else (self._seen, self._database.written, self._invalidations)

    async def cached_read(self, key: object, work: Callable[[Connection], T]) -> T:
        """Read what only a commit can change: asked anew after one, or while the version is unknown.

        Args:
            key: identifies the question, with all that its answer depends on beside the ledger.
        """
        version = self.version()
        stood = self._cached.get(key)
        if stood is not None and version is not None and stood[0] == version:
            return cast("T", stood[1])
        answer = await self.read(work)
        if version is not None:
            self._cached[key] = version, answer, work
        return answer

    async def refresh(self) -> None:
        """Ask again, in one transaction, every question of :meth:`cached_read` with an outdated answer."""
        version = self.version()
        stale = {key: work for key, (stood, _answer, work) in self._cached.items() if stood != version}
        if version is None or not stale:
            return
        answers = await self.read(lambda connection: {key: work(connection) for key, work in stale.items()})
        for key, answer in answers.items():
            self._cached[key] = version, answer, stale[key]

    def close(self) -> None:
        """End its threads after what they hold; safe to call twice."""
        if self._watcher is not None:
            self._watcher.close()
        self._poller.shutdown()
        if self._server_watcher is not None:
            self._server_watcher.close()
        self._writer.shutdown()
        self._reader.shutdown()
