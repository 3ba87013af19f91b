"""Syntax check of scripts at upload, in sandbox workers that stay warm while scripts arrive.

Starting a pool per script takes a hundred times as long as the check; a pool that stays forever would cost each process that once stored
a script its memory. So the pool is stopped after a time without scripts.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from lodger.sandbox.errors import SandboxError, ZygoteFailed
from lodger.sandbox.job import Job, LogLine, Reply, Report
from lodger.sandbox.pool import Pool
from lodger.sandbox.tenant_locks import TenantLocks

#: Time without scripts after which the workers are stopped, in seconds.
IDLE_S = 10.0
#: Number of checks at once.
CORES = 2


class _NoHost:
    """A host that denies every call."""

    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(ok=False, json='{"code":"denied","message":"the script is only checked, not run"}')

    def log(self, line: LogLine) -> None:
        """Discard the line."""


class _CheckThread:
    """One thread with its event loop; jobs reach it through the inbox."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.inbox: asyncio.Queue[tuple[Job, Future[Report]] | None] = asyncio.Queue()
        self.pending = 0  # number of items not yet taken from the inbox
        self.thread = threading.current_thread()

    def send(self, item: "tuple[Job, Future[Report]] | None") -> None:
        """Put a job into the inbox, or None to end the loop; the checker's lock must be held."""
        self.pending += 1
        self.loop.call_soon_threadsafe(self.inbox.put_nowait, item)


class SyntaxChecker:
    """Check scripts for synchronous callers on any thread; the pool starts with the first script.

    Each tenant has one check at a time, so that its slow scripts do not delay other tenants.

    Args:
        pool: factory of the pool, which is started and stopped here.
    """

    def __init__(self, pool: Callable[[], Pool]) -> None:
        self._make = pool
        self._lock = threading.Lock()
        self._tenant_locks = TenantLocks()
        self._current: _CheckThread | None = None
        self._last: threading.Thread | None = None
        self._closed = False

    @property
    def warm(self) -> bool:
        """Whether the pool of workers is running."""
        with self._lock:
            return self._current is not None

    def read(self, job: Job) -> Report:
        """Run one job, deny its calls and return its report. Blocks.

        Raises:
            SandboxError: the host cannot raise the walls, no worker is available, or the checker is closed.
        """
        with self._tenant_locks.held(job.tenant):
            answer: Future[Report] = Future()
            with self._lock:
                self._open_thread().send((job, answer))
            return answer.result()

    def close(self) -> None:
        """Stop the thread and the workers; checks in progress fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            last, current, self._current = self._last, self._current, None
            if current is not None and current.thread.is_alive():
                current.send(None)
        if last is not None:
            last.join()

    def _open_thread(self) -> _CheckThread:
        """Return the thread that checks, started anew if there is none; raises SandboxError after :meth:`close`."""
        if self._closed:
            raise _closed()
        # After a fork the thread does not exist in the child.
        if self._current is None or not self._current.thread.is_alive():
            current = self._current = _CheckThread()
            current.thread = threading.Thread(
                target=self._work, args=(current, self._last), name="lodger-syntax-check", daemon=True
            )
            self._last = current.thread
            current.thread.start()
        return self._current

    def _work(self, current: _CheckThread, before: threading.Thread | None) -> None:
        """Check sources in a thread with its own event loop, once the thread before has ended."""
        if before is not None:
            before.join()
        try:
            current.loop.run_until_complete(self._serve(current))
        finally:
            current.loop.close()

    async def _serve(self, current: _CheckThread) -> None:
        """Check sources until there is none for a while."""
        slots, tasks = asyncio.Semaphore(CORES), set[asyncio.Task[None]]()
        pool: Pool | None = None
        failed: BaseException = _closed()
        try:
            pool = self._make()
            await pool.start()
            while (item := await self._next(current, tasks)) is not None:
                task = asyncio.ensure_future(_read(pool, slots, *item))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        except BaseException as problem:  # noqa: BLE001 - it is raised in the callers' threads
            failed = problem
        with self._lock:
            if self._current is current:
                self._current = None
        # Nothing is added from here on; fail what is left in the inbox.
        while current.pending:
            left = await current.inbox.get()
            current.pending -= 1
            if left is not None:
                left[1].set_exception(failed)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        if pool is not None:
            await pool.stop()

    async def _next(self, current: _CheckThread, tasks: set[asyncio.Task[None]]) -> "tuple[Job, Future[Report]] | None":
        """Return the next source to check; None if there is none for a while."""
        while True:
            try:
                async with asyncio.timeout(IDLE_S):
                    item = await current.inbox.get()
            except TimeoutError:
                with self._lock:
                    if current.pending or tasks:
                        continue
                    if self._current is current:
                        self._current = None
                    return None
            with self._lock:
                current.pending -= 1
            return item


def _closed() -> SandboxError:
    """Return the error of a check after the engine was closed."""
    return ZygoteFailed("pool_stopped", "the script cannot be checked: the engine was closed")


async def _read(pool: Pool, slots: asyncio.Semaphore, job: Job, answer: "Future[Report]") -> None:
    """Compile one source in a worker, and set the report as the answer."""
    try:
        async with slots:
            report = await pool.run(job, _NoHost())
    except asyncio.CancelledError:
        answer.set_exception(_closed())
    except BaseException as problem:  # noqa: BLE001 - it is raised in the caller's thread
        answer.set_exception(problem)
    else:
        answer.set_result(report)
