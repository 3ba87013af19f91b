"""An event loop in virtual time, deterministic for a seed, that runs several simulated processes in one.

The nodes are the real ones, unchanged. The loop provides their threads (an executor's job runs inline, at a time that the faults choose),
their timers (the clock jumps to the next one) and their end (a killed process runs no further code). The process of a callback is stored in
its context, which asyncio passes from task to task.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Process:
    """A simulated process.

    Attributes:
        frozen: suspended (SIGSTOP, a suspended machine): its callbacks wait.
        dead: killed: its callbacks never run, and its jobs are dropped.
    """

    name: str
    frozen: bool = False
    dying: bool = False
    dead: bool = False
    waiting: list[asyncio.Handle] = field(default_factory=list)
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)


#: The running process; None for the world itself.
PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)

#: Plans one job of an executor for a process: the work, the delay before it and the delay of its result, in seconds.
Carry = Callable[[Process | None, Callable[[], Any]], tuple[Callable[[], Any], float, float]]


def run_at_once(_process: Process | None, work: Callable[[], Any]) -> tuple[Callable[[], Any], float, float]:
    """Plan a job without delay or fault."""
    return work, 0.0, 0.0


#: Callbacks at one instant of virtual time, more than any world needs.
MAX_AT_ONCE = 20_000


class Livelock(Exception):
    """Something goes round and round without waiting: virtual time stands still."""


class Deadlock(Exception):
    """No callback is ready and no timer is set."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """An asyncio event loop in virtual time.

    Args:
        carry: plans the jobs of executors.
    """

    def __init__(self, carry: Carry = run_at_once) -> None:
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0
        self._carry = carry
        #: Time at which each executor, with one thread, is free.
        self._busy: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        #: Exceptions outside of tasks; they end the simulation.
        self.faults: list[dict[str, Any]] = []
        self._stopped = False

    # ---- interface of asyncio

    def time(self) -> float:
        """Return the seconds since the loop began."""
        return self._now

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def is_running(self) -> bool:
        """Return whether :meth:`run` is active."""
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        """Return False: there is nothing to close."""
        return False

    def call_soon(  # type: ignore[override]  # typeshed ties the arguments to the callback
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback after those that are ready."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # as above

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback at a time of :meth:`time`."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback after some seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    @staticmethod
    def _timer_handle_cancelled(handle: asyncio.TimerHandle) -> None:
        """Ignore it: the timer is skipped when it is due."""

    def create_future(self) -> "asyncio.Future[Any]":
        """Return a new future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # keyword arguments of later Pythons are not needed
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        """Return a new task, and record its process."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            process.tasks.append(task)
            if len(process.tasks) > 256:
                process.tasks = [each for each in process.tasks if not each.done()]
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Record an uncaught exception."""
        self.faults.append(context)

    default_exception_handler = call_exception_handler

    def run_in_executor(  # type: ignore[override]  # asyncio's stub leaves the types open
        self,
        executor: object,
        func: Callable[..., T],
        *args: Any,
    ) -> "asyncio.Future[T]":
        """Run a job inline at its time, one at a time per executor.

        As with threads, a job that is cancelled before it began is dropped, and one that has begun is finished.
        """
        process = PROCESS.get()
        future: asyncio.Future[T] = self.create_future()
        if process is not None and process.dying:
            return future
        lane = executor if executor is not None else self
        work, wait, answer = self._carry(process, lambda: func(*args))
        begin = max(self._now, self._busy.get(lane, 0.0)) + wait
        self._busy[lane] = begin + answer
        self.call_at(begin, self._perform, process, work, future, answer, context=copy_context())
        return future

    def _perform(
        self, process: Process | None, work: Callable[[], T], future: "asyncio.Future[T]", answer: float
    ) -> None:
        """Do a thread's job and set its future after the delay of the answer."""
        if future.cancelled():
            return
        try:
            result, failure = work(), None
        except Exception as error:
            result, failure = None, error
        if process is not None and process.dying:
            return
        if answer > 0:
            self.call_at(self._now + answer, self._answer, future, result, failure)
        else:
            self._answer(future, result, failure)

    @staticmethod
    def _answer(future: "asyncio.Future[Any]", result: object, failure: BaseException | None) -> None:
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(result)

    # ---- control by the world

    def stop(self) -> None:
        """Leave :meth:`run` after the current callback."""
        self._stopped = True

    def run(self, until: float) -> None:
        """Run all callbacks up to a time of :meth:`time`.

        Raises:
            Deadlock: no callback is ready and no timer is set.
            Livelock: callbacks follow each other and time does not go on.
        """
        self._stopped = False
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while not self._stopped:
                at_once = 0
                while self._ready and not self._stopped:
                    self._step(self._ready.popleft())
                    at_once += 1
                    if at_once > MAX_AT_ONCE:
                        raise Livelock(f"{MAX_AT_ONCE} callbacks at {self._now} s")
                if self._stopped or not self._next(until):
                    return
        finally:
            asyncio._set_running_loop(before)

    def _next(self, until: float) -> bool:
        """Advance the clock to the next timer; return False if it is after ``until``."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers or timers[0][0] > until:
            if not timers and until == float("inf"):
                raise Deadlock("nothing is left that could happen")
            self._now = max(self._now, until)
            return False
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)
        return True

    def _step(self, handle: asyncio.Handle) -> None:
        """Run a callback, unless its process is dead or frozen."""
        if handle.cancelled():
            return
        process = _process_of(handle)
        if process is not None and (process.dead or process.frozen):
            if not process.dead:
                process.waiting.append(handle)
            return
        handle._run()

    def spawn(self, process: Process, coro: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Return a new task of a process."""
        context = copy_context()
        context.run(PROCESS.set, process)
        return context.run(self.create_task, coro)

    def kill(self, process: Process) -> None:
        """Kill a process. Its tasks are unwound for the garbage collector, and their further calls have no effect."""
        process.dying = True
        for task in process.tasks:
            task.cancel()
        self._ready.extendleft(reversed(process.waiting))
        process.waiting.clear()
        while mine := [handle for handle in self._ready if _process_of(handle) is process]:
            self._ready = deque(handle for handle in self._ready if _process_of(handle) is not process)
            for handle in mine:
                if not handle.cancelled():
                    handle._run()
        for task in process.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # intended
        process.tasks.clear()
        process.dead = True

    def thaw(self, process: Process) -> None:
        """Resume a frozen process with the callbacks that waited."""
        process.frozen = False
        self._ready.extend(process.waiting)
        process.waiting.clear()


def _process_of(handle: asyncio.Handle) -> Process | None:
    return handle._context.get(PROCESS)  # type: ignore[attr-defined, no-any-return]  # there is no public way
