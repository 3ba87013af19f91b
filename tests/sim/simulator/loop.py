"""An event loop in virtual time: nothing waits, one process plays several, and a seed tells everything.

The nodes of the simulation are the real ones, unchanged. What they think is the operating system is this loop: it gives
them their threads (a job of an executor runs inline, at an instant that the faults choose), their timers (the clock jumps
to the next one) and their end (a process that died runs no further line). Which process a callback belongs to stands in
its context, which asyncio hands from task to task.
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
    """One process of the simulated world.

    Attributes:
        frozen: it is stopped (SIGSTOP, a suspended machine): its callbacks wait.
        dead: it was killed: its callbacks never run again, and its jobs are dropped.
    """

    name: str
    frozen: bool = False
    dying: bool = False
    dead: bool = False
    waiting: list[asyncio.Handle] = field(default_factory=list)
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)


#: Whose code runs; None is the world itself.
PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)

#: Carries out one job of an executor for a process: how long it waits first, then the answer's delay, both seconds.
Carry = Callable[[Process | None, Callable[[], Any]], tuple[Callable[[], Any], float, float]]


def plainly(_process: Process | None, work: Callable[[], Any]) -> tuple[Callable[[], Any], float, float]:
    """Carry out a job at once, without any fault."""
    return work, 0.0, 0.0


class Deadlock(Exception):
    """Nothing is left to do and nothing will ever come."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """An asyncio event loop without a machine; see the module.

    Args:
        carry: says how the jobs of executors are carried out.
    """

    def __init__(self, carry: Carry = plainly) -> None:
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0
        self._carry = carry
        #: When each executor, which has one thread, is free again.
        self._busy: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        #: What went wrong outside of any task; a simulation ends by it.
        self.faults: list[dict[str, Any]] = []
        self._stopped = False

    # ---- what asyncio asks of a loop

    def time(self) -> float:
        """Seconds since the loop began."""
        return self._now

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether it is inside :meth:`run`."""
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        """Never: it holds nothing of the machine's."""
        return False

    def call_soon(  # type: ignore[override]  # typeshed ties the arguments to the callback
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback after those that wait already."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # as above

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at an instant of :meth:`time`."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after so many seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    @staticmethod
    def _timer_handle_cancelled(handle: asyncio.TimerHandle) -> None:
        """Leave it in the heap: it is passed by when its time comes."""

    def create_future(self) -> "asyncio.Future[Any]":
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # keyword arguments of later Pythons are not needed
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        """Make a task, and remember whose it is."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            process.tasks.append(task)
            if len(process.tasks) > 256:
                process.tasks = [each for each in process.tasks if not each.done()]
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what nobody caught."""
        self.faults.append(context)

    default_exception_handler = call_exception_handler

    def run_in_executor(  # type: ignore[override]  # asyncio's stub leaves the types open
        self,
        executor: object,
        func: Callable[..., T],
        *args: Any,
    ) -> "asyncio.Future[T]":
        """Carry out a job: inline, at its instant, one after the other for each executor.

        As with threads, a job that nobody waits for any more before it began is dropped, and one that has begun is done.
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

    # ---- what the world does with it

    def stop(self) -> None:
        """Leave :meth:`run` after the present callback."""
        self._stopped = True

    def run(self, until: float) -> None:
        """Let everything happen up to an instant of :meth:`time`.

        Raises:
            Deadlock: nothing is left that could ever happen.
        """
        self._stopped = False
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while not self._stopped:
                while self._ready and not self._stopped:
                    self._step(self._ready.popleft())
                if self._stopped or not self._next(until):
                    return
        finally:
            asyncio._set_running_loop(before)

    def _next(self, until: float) -> bool:
        """Move the clock to the next timer; False when it lies after ``until``."""
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
        if handle.cancelled():
            return
        process = _process_of(handle)
        if process is not None and (process.dead or process.frozen):
            if not process.dead:
                process.waiting.append(handle)
            return
        handle._run()

    def spawn(self, process: Process, coro: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin a task of a process."""
        context = copy_context()
        context.run(PROCESS.set, process)
        return context.run(self.create_task, coro)

    def kill(self, process: Process) -> None:
        """End a process as kill -9 does. Its tasks are unwound so that nothing is left to the collector, with the world out
        of their reach: what they ask of it is never carried out.
        """
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
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant
        process.tasks.clear()
        process.dead = True

    def thaw(self, process: Process) -> None:
        """Let a frozen process go on with what came meanwhile."""
        process.frozen = False
        self._ready.extend(process.waiting)
        process.waiting.clear()


def _process_of(handle: asyncio.Handle) -> Process | None:
    return handle._context.get(PROCESS)  # type: ignore[attr-defined, no-any-return]  # it stands there alone
