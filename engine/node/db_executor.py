"""Carries the ledger's synchronous functions to threads: one that writes, one that reads, one that looks whether anybody wrote."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from sqlalchemy import Connection

from lodger.engine.store.connection.database import Database
from lodger.engine.store.stores.patience import PATIENCE_S, Patience

T = TypeVar("T")


class Pen:
    """One writer thread, because SQLite has one writer; reads never wait behind a write.

    Attributes:
        line: how long a server may keep either thread waiting.
    """

    def __init__(self, database: Database, patience_s: float = PATIENCE_S) -> None:
        self._database = database
        self.line = Patience(patience_s)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lodger-writer", initializer=self.line.adopt)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lodger-reader", initializer=self.line.adopt)
        self._witness = database.file_watcher()
        self._asked = database.server_watcher()
        # A look waits for nobody, and nobody for it: a server that is silent is silent to each by itself.
        self._looker = ThreadPoolExecutor(1, thread_name_prefix="lodger-lookout", initializer=self.line.adopt)
        self._looking: asyncio.Future[int | None] | None = None
        self._seen: int | None = None
        self._doubts = 0
        self._stood: dict[object, tuple[object, object, Callable[[Connection], object]]] = {}

    async def write(self, work: Callable[[Connection], T], *, quiet: bool = False) -> T:
        """Do the work in one transaction of the writer thread. Cancelling the wait does not undo the work.

        Args:
            quiet: nothing of :meth:`standing` depends on it, and :meth:`version` need not tell of it.
        """

        def transaction() -> T:
            with self._database.write(counted=not quiet) as connection:
                done = work(connection)
                if quiet and self._asked is not None:
                    self._asked.overlook(connection)
                return done

        return await asyncio.get_running_loop().run_in_executor(self._writer, transaction)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work on one snapshot in the reader thread."""

        def transaction() -> T:
            with self._database.read() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._reader, transaction)

    async def look(self, patience_s: float) -> None:
        """Ask a server whether anybody has committed since the last look; what can tell at any time needs none.

        When no answer comes for so long nobody can tell, until one comes.
        """
        if self._asked is None:
            return
        if self._looking is None:
            self._looking = asyncio.get_running_loop().run_in_executor(self._looker, self._asked.version)
        answered, _ = await asyncio.wait({self._looking}, timeout=patience_s)
        self._seen = self._looking.result() if answered else None
        if answered:
            self._looking = None

    def doubt(self) -> None:
        """Take it that somebody has committed, until the next look."""
        self._doubts += 1

    @property
    def asks(self) -> bool:
        """Whether :meth:`version` knows of other processes' commits by :meth:`look` alone."""
        return self._asked is not None

    @property
    def sees(self) -> bool:
        """Whether :meth:`version` tells of commits."""
        return self._witness is not None or self._seen is not None

    def version(self) -> object | None:
        """Give what changes with every commit of anybody, another process's at the next look; None when nobody can tell."""
        if self._witness is not None:
            return self._witness.version()
        return None if self._seen is None else (self._seen, self._database.written, self._doubts)

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
        """End its threads after what they hold; safe to call twice."""
        if self._witness is not None:
            self._witness.close()
        self._looker.shutdown()
        if self._asked is not None:
            self._asked.close()
        self._writer.shutdown()
        self._reader.shutdown()
