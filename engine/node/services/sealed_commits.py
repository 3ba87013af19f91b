"""Brings sealed attempts to their end, whichever node sealed them: applies them where they belong, then settles them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import ActionsReady, ChangeReported, LedgerChanged
from lodger.engine.data.sets.datasets import Datasets
from lodger.engine.data.sets.guard import inspect_databases
from lodger.engine.effects import foreign_commit, sealed_commits, write_set_codec
from lodger.engine.effects.sealed_commits import SealedAttempt
from lodger.engine.effects.write_set import WriteSet
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted, SealedSettled
from lodger.engine.node.service import Service

#: Attempts that one node finishes at the same time: each has a thread, which waits for the platform's database.
MAX_AT_ONCE = 8


class SealedCommits(Service):
    """Finishes sealed commits of this node at once, and every ``poll_s`` those that other nodes have left."""

    name: ClassVar[str] = "sealed-commits"

    def __init__(self, context: NodeContext, datasets: Datasets) -> None:
        super().__init__(context)
        self._datasets = datasets
        context.bus.subscribe(BatchCommitted, self._put)
        self.wake_on(LedgerChanged, ChangeReported)
        self._queue: list[SealedAttempt] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads: ThreadPoolExecutor | None = None

    def _put(self, event: BatchCommitted) -> None:
        """Queue the attempts of a batch that were sealed, to be finished at once."""
        if event.committed.sealed:
            self._queue += event.committed.sealed
            self.wake()

    async def round(self) -> float:
        """Begin sealed commits that no other attempt holds back; look for those that others have left."""
        context = self.context
        free, due = MAX_AT_ONCE - len(self._tasks), None
        if free > len(self._queue):
            now = self.clock.now_us()
            due = await context.db.cached_read("sealed", sealed_commits.ask_next_due)
            if due is not None and due <= now:
                number = free - len(self._queue)
                self._queue += await context.db.write(
                    partial(sealed_commits.take_due, context.store, now_us=now, max_rows=number)
                )
        for one in self._queue[:free]:
            task = asyncio.create_task(self._one(one), name=f"lodger-finish-{one.action_id}")
            self._tasks.add(task)
            task.add_done_callback(self._over)
        del self._queue[:free]
        return context.settings.poll_s if self._queue or self._tasks or due is not None else context.idle_s

    def _over(self, task: asyncio.Task[None]) -> None:
        """Note that the task of a sealed commit has ended, and begin the next ones."""
        self._tasks.discard(task)
        if self._queue:
            self.wake()
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert isinstance(error, Exception)
            # Its seal stands: it is taken up again when its turn is over.
            self.fault(error)

    async def _one(self, one: SealedAttempt) -> None:
        """Apply one sealed commit in the platform's database, then settle it in the ledger."""
        context = self.context
        await inspect_databases(self._datasets, context.db.read)
        datasets = self._datasets.pinned()
        try:
            write_set = write_set_codec.decode(one.write_set, datasets)
            receipt = await self._applied(one, write_set)
        except (write_set_codec.WriteSetDecodeError, foreign_commit.DatabaseUnavailable) as unknown:
            await context.db.write(
                partial(sealed_commits.postpone, one=one, why=str(unknown), now_us=self.clock.now_us())
            )
            self.fault(Unavailable("database_unreachable.foreign", reason=unknown))
            return
        settle = partial(sealed_commits.settle_sealed, context.store, datasets=datasets, one=one, receipt=receipt)
        done = await context.db.write(partial(settle, now_us=self.clock.now_us()))
        if done is not None:
            context.bus.publish(ActionsReady())
            for each in done.warned:
                each.report(context.bus, self.clock.now_us())
            context.bus.publish(SealedSettled(done))

    async def _applied(self, one: SealedAttempt, write_set: WriteSet) -> foreign_commit.Receipt:
        """Apply a write set in a thread, or find its receipt; return the receipt."""
        home = write_set.home
        if home is None:  # only rows that were to be looked at, and they are no more: nothing is written anywhere else
            raise write_set_codec.WriteSetDecodeError("none of its sets is in another database on this node")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_AT_ONCE, thread_name_prefix="lodger-finish")
        apply = partial(foreign_commit.apply, home, write_set, one.attempt, now_us=self.clock.now_us())
        return await asyncio.get_running_loop().run_in_executor(self._threads, apply)

    async def drain(self) -> None:
        """Wait for commits that are being applied, and end the threads; the rest stays sealed for another node."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
