"""The asynchronous Engine: the verbs of :mod:`lodger.engine.sync`, each run in a thread, with one writer at a time."""

import asyncio
import contextvars
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload
from weakref import WeakValueDictionary, ref

from sqlalchemy import Connection

from lodger.engine.core.clock import Clock
from lodger.engine.core.events import AnyEvent, Event
from lodger.engine.core.settings import Settings
from lodger.engine.service import engine as sync
from lodger.engine.service.hooks import H, HookName
from lodger.engine.service.operations import proxy
from lodger.engine.service.operations.declaration import Async
from lodger.engine.service.operations.route import Operation
from lodger.engine.service.operations.table import Nouns

if TYPE_CHECKING:
    from lodger.engine.effects.finished import Executor
    from lodger.engine.node.node import Node
    from lodger.engine.service.hooks import Hook
    from lodger.engine.store.records import Action
    from lodger.sandbox.job import LogLine

T = TypeVar("T")
#: Number of threads for the verbs; writes queue on the database's writer lock, reads run concurrently.
THREADS = 4
#: Number of threads for slow verbs, such as dry runs, and of those the most that one tenant uses at once.
SLOW_THREADS, SLOW_PER_TENANT = 8, 2
#: Number of values that a stream passes to the event loop at once.
STREAMED = 500


def _restart(threads: "ref[Threads]") -> None:
    """Make new threads in a forked child, where the parent's do not run."""
    made = threads()
    if made is not None:
        made._start()


class Threads:
    """Runs the verbs of an engine in threads: slow ones and streams in lanes of their own, which quick ones never wait for."""

    def __init__(self, inner: sync.Engine) -> None:
        self._inner = inner
        self._start()
        os.register_at_fork(after_in_child=partial(_restart, ref(self)))

    def _start(self) -> None:
        """Create the thread pools: one for quick verbs and one for slow ones."""
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="lodger-verb")
        self._slow = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="lodger-slow")
        self._turns: WeakValueDictionary[object, asyncio.Semaphore] = WeakValueDictionary()

    def shutdown(self) -> None:
        """Wait for the running verbs and end the threads."""
        self.pool.shutdown()
        self._slow.shutdown()

    def call(self, operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one verb; satisfies :class:`lodger.engine.service.operations.proxy.Carry`."""
        call = partial(getattr(getattr(self._inner, operation.noun), operation.verb), *args, **kwargs)
        if operation.declared.streams:
            return self._stream(call)
        return (
            self._in_turn(args[0] if args else kwargs.get("tenant_id"), call) if operation.is_slow else self.run(call)
        )

    async def _in_turn(self, tenant_id: object, work: Callable[[], T]) -> T:
        """Run a slow verb in a thread; only a few of one tenant run at a time, the others wait."""
        bound = partial(contextvars.copy_context().run, work)
        async with self._turns.setdefault(tenant_id, asyncio.Semaphore(SLOW_PER_TENANT)):
            return await asyncio.get_running_loop().run_in_executor(self._slow, bound)

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run blocking work in a thread, in a copy of the present context, which has the actor."""
        bound = partial(contextvars.copy_context().run, work)
        return asyncio.get_running_loop().run_in_executor(self.pool, bound)

    async def _stream(self, call: Callable[[], Generator[T]]) -> AsyncIterator[T]:
        """Yield the items of a generator that runs in a thread."""
        given = call()
        loop = asyncio.get_running_loop()
        try:
            while some := await loop.run_in_executor(self._slow, lambda: [*islice(given, STREAMED)]):
                for each in some:
                    yield each
        finally:
            await loop.run_in_executor(self._slow, given.close)

    async def read(self, tenant_id: str, look: Callable[[Connection], T]) -> T:
        """Run a query on one snapshot of the ledger of a tenant."""

        def read_snapshot() -> T:
            """Run a query in the tenant's ledger."""
            with self._inner.at(tenant_id).context.database.read() as connection:
                return look(connection)

        return await asyncio.get_running_loop().run_in_executor(self.pool, read_snapshot)


AsyncHook = Callable[[Event], Coroutine[Any, Any, object]]


def _carried(hook: "Hook | AsyncHook") -> "Hook":
    """Return a hook as a function for the hooks' thread; a coroutine function runs on the event loop that it was set on."""
    if not inspect.iscoroutinefunction(hook):
        return hook
    loop = asyncio.get_running_loop()

    def call_on_loop(event: Event) -> object:
        """Call the asynchronous hook in its event loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(hook(event), loop).result()

    return call_on_loop


class Engine(Nouns[Async]):
    """An open ledger, for asyncio. ``async with Engine.open(path) as engine``, or :meth:`open` and :meth:`close`."""

    #: The engine whose verbs run in the threads.
    threaded: ClassVar[type[sync.Engine]] = sync.Engine

    def __init__(self, inner: sync.Engine) -> None:
        self.inner = inner
        self.threads = Threads(inner)
        proxy.bind_operations(self, self.threads.call, awaited=True)
        self.context = inner.context
        self.process_metrics = inner.process_metrics
        self.datasets = inner.datasets
        self.expose = inner.expose
        self.attach = inner.attach
        self.record_changed = inner.record_changed
        self.record_sessions = inner.record_sessions
        self.handler = inner.handler
        self.function = inner.function
        self.handlers = inner.handlers

    @classmethod
    def open(
        cls,
        url_or_path: str,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        upgrade: bool = False,
    ) -> Self:
        """Open a ledger, creating it if it does not exist; see :meth:`lodger.engine.sync.Engine.open`. Blocks meanwhile."""
        return cls(cls.threaded.open(url_or_path, clock=clock, settings=settings, upgrade=upgrade))

    @classmethod
    def open_all(cls, settings: Settings, *, clock: Clock | None = None) -> Self:
        """Open every ledger of the settings; see :meth:`lodger.engine.sync.Engine.open_all`. Blocks meanwhile."""
        return cls(cls.threaded.open_all(settings, clock=clock))

    async def close(self) -> None:
        """Release threads and database when the running verbs have ended; safe to call twice."""

        def close() -> None:
            self.threads.shutdown()
            self.inner.close()

        # In a thread: running verbs take a while, and waiting hooks may be coroutines of this event loop.
        await asyncio.to_thread(close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def prepare(self) -> None:
        """Create Lodger's objects in the databases with exposed tables; see :meth:`lodger.engine.sync.Engine.prepare`."""
        await self.threads.run(self.inner.prepare)

    def own_people(self, is_own: Callable[[str, str], bool]) -> None:
        """Let the platform decide which addresses are a tenant's own people; see :meth:`lodger.engine.sync.Engine.own_people`."""
        self.inner.own_people(is_own)

    def on_event(self, listener: Callable[[AnyEvent], object]) -> Callable[[], None]:
        """Subscribe to the events of nodes in this process; call the result to unsubscribe. The listener must return quickly."""
        return self.inner.on_event(listener)

    @overload
    def on(self, name: HookName, hook: "Hook | AsyncHook", *, tenant_id: str | None = None) -> Callable[[], None]: ...
    @overload
    def on(self, name: HookName, hook: None = None, *, tenant_id: str | None = None) -> "Callable[[H], H]": ...
    def on(self, name: HookName, hook: "Hook | AsyncHook | None" = None, *, tenant_id: str | None = None) -> Any:
        """Set a hook; see :meth:`lodger.engine.sync.Engine.on`. A coroutine function runs on the event loop that sets it."""
        if hook is None:
            return partial(self._decorated, name, tenant_id)
        return self.inner.on(name, _carried(hook), tenant_id=tenant_id)

    def _decorated(self, name: HookName, tenant_id: str | None, hook: "Hook | AsyncHook") -> "Hook | AsyncHook":
        """Register a hook that ``on`` decorates."""
        self.inner.on(name, _carried(hook), tenant_id=tenant_id)
        return hook

    async def events(self, *, kept: int = 10_000) -> AsyncIterator[AnyEvent]:
        """Yield events as they happen; a reader that falls ``kept`` events behind loses the oldest."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[AnyEvent] = asyncio.Queue()

        def put_newest(event: AnyEvent) -> None:
            """Queue an event; a full queue loses its oldest."""
            if queue.qsize() >= kept:
                queue.get_nowait()
            queue.put_nowait(event)

        def forward_event(event: AnyEvent) -> None:
            """Hand an event to the event loop's thread."""
            loop.call_soon_threadsafe(put_newest, event)

        forget = self.on_event(forward_event)
        try:
            while True:
                yield await queue.get()
        finally:
            forget()

    def live(self, tenant_id: str, action_id: str | None = None) -> "AsyncGenerator[Action | LogLine]":
        """Yield changes of a tenant's actions, or of one action with its log lines; see :meth:`lodger.engine.sync.Engine.live`."""
        from lodger.engine.service.live_changes import live_async

        return live_async(self.inner.at(tenant_id), tenant_id, action_id, partial(self.threads.read, tenant_id))

    @asynccontextmanager
    async def node(
        self,
        executor: "Executor | None" = None,
        name: str | None = None,
        *,
        deliver: bool = True,
    ) -> AsyncIterator["Node"]:
        """Run a node during the block; see :class:`lodger.engine.node.node.Node`."""
        from lodger.engine.node.node import Node

        made = Node(self.inner.host, executor, name, deliver=deliver)
        try:
            await made.start()
            yield made
        finally:
            await made.stop()
