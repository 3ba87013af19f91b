"""Brings sealed attempts to their end, whichever node sealed them: applies them where they belong, then settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.data.sets.foreign import ForeignDatabase
from lodger.engine.data.sets.guard import Wall, looked
from lodger.engine.effects import codec, foreign_commit, sealed_commits
from lodger.engine.effects.sealed_commits import Sealed
from lodger.engine.effects.write_set import Docket
from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: Attempts that one node finishes at the same time: each has a thread, which waits for the platform's database.
AT_ONCE = 8


class Finisher(Service):
    """Finishes what this node has sealed at once, and every ``poll_s`` what others have left."""

    name: ClassVar[str] = "finisher"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._queue: list[Sealed] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def put(self, sealed: Iterable[Sealed]) -> None:
        """Take attempts that this node has just sealed."""
        fresh = list(sealed)
        if fresh:
            self._queue += fresh
            self.nudge()

    async def round(self) -> float:
        """Begin what is free to be begun; look for what others have left."""
        node = self._node
        room, due = AT_ONCE - len(self._tasks), None
        if room > len(self._queue):
            now = self.clock.now_us()
            due = await node.pen.standing("sealed", sealed_commits.next_due)
            if due is not None and due <= now:
                most = room - len(self._queue)
                self._queue += await node.pen.write(partial(sealed_commits.take, node.books, now_us=now, most=most))
        for one in self._queue[:room]:
            task = asyncio.create_task(self._one(one), name=f"lodger-finish-{one.action_id}")
            self._tasks.add(task)
            task.add_done_callback(self._over)
        del self._queue[:room]
        return node.settings.poll_s if self._queue or self._tasks or due is not None else node.patience_s

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._queue:
            self.nudge()
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert isinstance(error, Exception)
            # Its seal stands: it is taken up again when its turn is over.
            self._node.failed(self.name, error)

    async def _one(self, one: Sealed) -> None:
        node = self._node
        await looked(node.engine.datasets, self._look)
        datasets = node.engine.datasets.pinned()
        try:
            docket = codec.decode(one.docket, datasets)
            receipt = await self._applied(one, docket)
        except (codec.Undecodable, foreign_commit.NotNow) as unknown:
            await node.pen.write(partial(sealed_commits.rest, one=one, why=str(unknown), now_us=self.clock.now_us()))
            self._node.failed(self.name, Unavailable("database_unreachable", str(unknown), fix="see `lodger doctor`"))
            return
        settle = partial(sealed_commits.settled, node.books, datasets=datasets, one=one, receipt=receipt)
        done = await node.pen.write(partial(settle, now_us=self.clock.now_us()))
        if done is not None:
            node.told_finish(done)

    async def _applied(self, one: Sealed, docket: Docket) -> foreign_commit.Receipt:
        home = docket.home
        if home is None:  # only rows that were to be looked at, and they are no more: nothing is written anywhere else
            raise codec.Undecodable("none of its sets is in another database on this node")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="lodger-finish")
        apply = partial(foreign_commit.apply, home, docket, one.attempt, now_us=self.clock.now_us())
        return await asyncio.get_running_loop().run_in_executor(self._threads, apply)

    async def _look(self, work: Callable[[Connection], Wall], database: ForeignDatabase | None) -> Wall:
        return await (self._node.pen.read(work) if database is None else database.ask(work))

    async def finish(self) -> None:
        """Wait for what is being applied, and end the threads; the rest stays sealed for whoever comes."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
