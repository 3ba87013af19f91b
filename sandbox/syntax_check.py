"""Syntax check of scripts at upload, in sandbox workers that stay warm while scripts arrive.

Starting a pool per script takes a hundred times as long as the check; a pool that stays forever would cost each process that once stored
a script its memory. So the pool is stopped after a time without scripts.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from lodger.sandbox.errors import SandboxError, ZygoteFailed
from lodger.sandbox.job import Job, NoHost, Report
from lodger.sandbox.loop_thread import LoopThread
from lodger.sandbox.pool import Pool
from lodger.sandbox.tenant_locks import TenantLocks

#: Time without scripts after which the workers are stopped, in seconds.
IDLE_S = 10.0
#: Number of checks at once.
CORES = 2


class _IdlePool:
    """A pool on a thread's loop, started with the first script and stopped when there was none for a while.

    Attributes:
        thread: whose loop runs the checks.
        pool: the running pool, if there is one.
    """

    def __init__(self, make: Callable[[], Pool]) -> None:
        self.thread = LoopThread("lodger-syntax-check")
        self.pool: Pool | None = None
        self._make = make
        self._starting = asyncio.Lock()
        self._slots = asyncio.Semaphore(CORES)
        self._checks = set[asyncio.Task[Any]]()
        self._idle: asyncio.TimerHandle | None = None
        self._cooling: asyncio.Task[None] | None = None

    async def check(self, job: Job) -> Report:
        """Compile a source in a worker of the pool."""
        task = asyncio.current_task()
        assert task is not None
        self._checks.add(task)
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with self._starting:
                if (pool := self.pool) is None:
                    pool = self._make()
                    await pool.start()
                    self.pool = pool
            async with self._slots:
                return await pool.run(job, NoHost())
        finally:
            self._checks.discard(task)
            if not self._checks:
                self._idle = self.thread.loop.call_later(IDLE_S, self._begin_cooling)

    def _begin_cooling(self) -> None:
        """Begin to stop the pool."""
        self._cooling = self.thread.loop.create_task(self._cool())

    async def _cool(self) -> None:
        """Stop the pool, unless there is a script again."""
        async with self._starting:
            if self.pool is not None and not self._checks:
                await self.pool.stop()
                self.pool = None

    async def end(self) -> None:
        """Cancel the checks and stop the pool."""
        checks = [*self._checks]
        for task in checks:
            task.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
        await self._cool()


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
        self._pool: _IdlePool | None = None
        self._closed = False

    @property
    def warm(self) -> bool:
        """Whether the pool of workers is running."""
        return self._pool is not None and self._pool.pool is not None

    def read(self, job: Job) -> Report:
        """Run one job, deny its calls and return its report. Blocks.

        Raises:
            SandboxError: the host cannot raise the walls, no worker is available, or the checker is closed.
        """
        with self._tenant_locks.held(job.tenant):
            with self._lock:
                if self._closed:
                    raise _closed()
                # After a fork the thread does not exist in the child.
                if self._pool is None or not self._pool.thread.is_alive:
                    self._pool = _IdlePool(self._make)
                answer = self._pool.thread.submit(self._pool.check(job))
            try:
                return answer.result()
            except CancelledError:
                raise _closed() from None

    def close(self) -> None:
        """Stop the thread and the workers; checks in progress fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None and pool.thread.is_alive:
            pool.thread.run(pool.end())
            pool.thread.close()


def _closed() -> SandboxError:
    """Return the error of a check after the engine was closed."""
    return ZygoteFailed("pool_stopped", "the script cannot be checked: the engine was closed")
