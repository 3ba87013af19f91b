"""Syntax check of scripts at upload, in sandbox workers that stay warm while scripts arrive.

Starting a pool per script takes a hundred times as long as the check; a pool that stays forever would cost each process that once stored
a script its memory. So the pool is stopped after a time without scripts.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from weakref import WeakValueDictionary

from lodger.sandbox.errors import SandboxError, ZygoteFailed
from lodger.sandbox.job import Job, LogLine, Reply, Report
from lodger.sandbox.pool import Pool

#: Time without scripts after which the workers are stopped, in seconds.
IDLE_S = 10.0


class _NoHost:
    """A host that denies every call."""

    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(ok=False, json='{"code":"denied","message":"the script is only checked, not run"}')

    def log(self, line: LogLine) -> None:
        """Discard the line."""


class _Turn:
    """Lock of one tenant; removed when unused."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _Desk:
    """One thread with its event loop; jobs reach it through the inbox."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.inbox: asyncio.Queue[tuple[Job, Future[Report]] | None] = asyncio.Queue()
        self.coming = 0  # number of items not yet taken from the inbox
        self.thread = threading.current_thread()

    def send(self, asked: "tuple[Job, Future[Report]] | None") -> None:
        """Put a job into the inbox, or None to end the loop; the checker's lock must be held."""
        self.coming += 1
        self.loop.call_soon_threadsafe(self.inbox.put_nowait, asked)


class SyntaxChecker:
    """Check scripts for synchronous callers on any thread; the pool starts with the first script.

    Each tenant has one check at a time, so that its slow scripts do not delay other tenants.

    Args:
        pool: factory of the pool, which is started and stopped here.
        cores: number of checks at once.
        idle_s: time without scripts after which the workers are stopped.
    """

    def __init__(self, pool: Callable[[], Pool], *, cores: int = 2, idle_s: float = IDLE_S) -> None:
        self._make = pool
        self._cores = cores
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[str, _Turn] = WeakValueDictionary()
        self._desk: _Desk | None = None
        self._last: threading.Thread | None = None
        self._closed = False

    @property
    def warm(self) -> bool:
        """Whether the pool is running."""
        with self._lock:
            return self._desk is not None

    def read(self, job: Job) -> Report:
        """Run one job, deny its calls and return its report. Blocks.

        Raises:
            SandboxError: the host cannot raise the walls, no worker is available, or the checker is closed.
        """
        with self._lock:
            turn = self._turns.setdefault(job.tenant, _Turn())
        with turn.lock:
            answer: Future[Report] = Future()
            with self._lock:
                self._opened().send((job, answer))
            return answer.result()

    def close(self) -> None:
        """Stop the thread and the workers; checks in progress fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            last, desk, self._desk = self._last, self._desk, None
            if desk is not None and desk.thread.is_alive():
                desk.send(None)
        if last is not None:
            last.join()

    def _opened(self) -> _Desk:
        if self._closed:
            raise _closed()
        # After a fork the thread does not exist in the child.
        if self._desk is None or not self._desk.thread.is_alive():
            desk = self._desk = _Desk()
            desk.thread = threading.Thread(
                target=self._work, args=(desk, self._last), name="lodger-syntax-check", daemon=True
            )
            self._last = desk.thread
            desk.thread.start()
        return self._desk

    def _work(self, desk: _Desk, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            desk.loop.run_until_complete(self._serve(desk))
        finally:
            desk.loop.close()

    async def _serve(self, desk: _Desk) -> None:
        slots, reading = asyncio.Semaphore(self._cores), set[asyncio.Task[None]]()
        pool: Pool | None = None
        failed: BaseException = _closed()
        try:
            pool = self._make()
            await pool.start()
            while (asked := await self._next(desk, reading)) is not None:
                task = asyncio.ensure_future(_read(pool, slots, *asked))
                reading.add(task)
                task.add_done_callback(reading.discard)
        except BaseException as problem:  # noqa: BLE001 - it is raised in the callers' threads
            failed = problem
        with self._lock:
            if self._desk is desk:
                self._desk = None
        # Nothing is added from here on; fail what is left in the inbox.
        while desk.coming:
            left = await desk.inbox.get()
            desk.coming -= 1
            if left is not None:
                left[1].set_exception(failed)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading)
        if pool is not None:
            await pool.stop()

    async def _next(self, desk: _Desk, reading: set[asyncio.Task[None]]) -> "tuple[Job, Future[Report]] | None":
        while True:
            try:
                async with asyncio.timeout(self._idle_s):
                    asked = await desk.inbox.get()
            except TimeoutError:
                with self._lock:
                    if desk.coming or reading:
                        continue
                    if self._desk is desk:
                        self._desk = None
                    return None
            with self._lock:
                desk.coming -= 1
            return asked


def _closed() -> SandboxError:
    return ZygoteFailed("pool_stopped", "the script cannot be checked: the engine was closed")


async def _read(pool: Pool, slots: asyncio.Semaphore, job: Job, answer: "Future[Report]") -> None:
    try:
        async with slots:
            report = await pool.run(job, _NoHost())
    except asyncio.CancelledError:
        answer.set_exception(_closed())
    except BaseException as problem:  # noqa: BLE001 - it is raised in the caller's thread
        answer.set_exception(problem)
    else:
        answer.set_result(report)
