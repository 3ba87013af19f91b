"""Reads scripts at the moment they are handed in: in locked workers, away from every event loop, warm for as long as somebody comes.

A pool started for each script was tried: the zygote takes a hundred times as long as the reading. One that stays for ever would cost
every process that once stored a script its memory; so it goes when nobody has come for a while.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from weakref import WeakValueDictionary

from lodger.sandbox.errors import SandboxError, ZygoteFailed
from lodger.sandbox.job import Job, LogLine, Reply, Report
from lodger.sandbox.pool import Pool

#: How long the workers stay when nobody comes, seconds.
IDLE_S = 10.0


class _NoHost:
    """A script that is only read has nobody to call."""

    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(ok=False, json='{"code":"denied","message":"the script is only read"}')

    def log(self, line: LogLine) -> None:
        """Nobody reads what it says."""


class _Turn:
    """A tenant's place in the queue; forgotten when nobody stands there."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


class _Desk:
    """One thread with its loop; what is handed over reaches it through the inbox."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.inbox: asyncio.Queue[tuple[Job, Future[Report]] | None] = asyncio.Queue()
        self.coming = 0  # handed over, and not taken out of the inbox yet
        self.thread = threading.current_thread()

    def send(self, asked: "tuple[Job, Future[Report]] | None") -> None:
        """Hand over a job, or None for the last; under the lock under which a desk that is left is taken away."""
        self.coming += 1
        self.loop.call_soon_threadsafe(self.inbox.put_nowait, asked)


class SyntaxChecker:
    """Runs jobs that only read, for synchronous callers on any thread; makes no process and no thread until it is asked.

    Each tenant has one at a time: its bombs delay nobody else.

    Args:
        pool: makes the pool, which is started and stopped here.
        cores: how many are read at once.
        idle_s: how long the workers stay when nobody comes.
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
        """Whether workers are kept ready now."""
        with self._lock:
            return self._desk is not None

    def read(self, job: Job) -> Report:
        """Run one job; its calls are denied. Blocks.

        Raises:
            SandboxError: the host cannot raise the walls, no worker can be had, or it was closed.
        """
        with self._lock:
            turn = self._turns.setdefault(job.tenant, _Turn())
        with turn.lock:
            answer: Future[Report] = Future()
            with self._lock:
                self._opened().send((job, answer))
            return answer.result()

    def close(self) -> None:
        """Let go of thread and workers, and of what they read; safe to call twice."""
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
        # The thread is not alive in a child that was forked beside it.
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
        # Nobody hands anything over any more; what is on its way is answered.
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
    return ZygoteFailed("pool_stopped", "nothing is read any more: the engine was closed")


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
