"""The async Engine: the verbs of :mod:`lodger.engine.sync`, each in a thread, one writer at a time."""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from lodger.engine import sync
from lodger.engine.clock import Clock
from lodger.engine.events import Event
from lodger.engine.ledger.migrations.upgrade import Progress, silent
from lodger.engine.ledger.records import AuditEntry
from lodger.engine.ledger.rulebook import Compile
from lodger.engine.settings import Settings
from lodger.engine.verbs import (
    actions,
    audit,
    grants,
    metrics,
    nodes,
    schedules,
    scripts,
    secrets,
    tenants,
    tokens,
    webhooks,
)

if TYPE_CHECKING:
    from lodger.engine.ledger.commits import ApplyEffects
    from lodger.engine.ledger.records import Json
    from lodger.engine.node.executor import Executor, Finished
    from lodger.engine.node.node import Node

#: Threads for the verbs; writes queue on the database's one writer lock, reads go side by side.
THREADS = 4
#: Entries of the audit log that an export hands over at once.
EXPORTED = 500

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class Shell(Generic[S]):
    """A noun of the async facade around its synchronous twin."""

    def __init__(self, inner: S, threads: ThreadPoolExecutor) -> None:
        self.inner = inner
        self.threads = threads


class Verb(Generic[S, P, R]):
    """A synchronous method, awaitable: same name, same arguments, same answer."""

    def __init__(self, method: Callable[Concatenate[S, P], R]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, shell: None, owner: type) -> Self: ...
    @overload
    def __get__(self, shell: Shell[S], owner: type) -> Callable[P, Awaitable[R]]: ...

    def __get__(self, shell: Shell[S] | None, owner: type) -> Any:
        if shell is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
            # Who acts is known by the context, which a thread of the pool does not have of itself.
            bound = partial(contextvars.copy_context().run, self._method, shell.inner, *args, **kwargs)
            return asyncio.get_running_loop().run_in_executor(shell.threads, bound)

        return call


class Tenants(Shell[tenants.Tenants]):
    """Customers of the platform."""

    create = Verb(tenants.Tenants.create)
    get = Verb(tenants.Tenants.get)
    list = Verb(tenants.Tenants.list)
    edit = Verb(tenants.Tenants.edit)
    suspend = Verb(tenants.Tenants.suspend)
    resume = Verb(tenants.Tenants.resume)
    delete = Verb(tenants.Tenants.delete)


class Grants(Shell[grants.Grants]):
    """What tenants hold."""

    list = Verb(grants.Grants.list)
    give = Verb(grants.Grants.give)
    take = Verb(grants.Grants.take)
    keep = Verb(grants.Grants.keep)
    people = Verb(grants.Grants.people)


class Secrets(Shell[secrets.Secrets]):
    """What scripts use and never see."""

    put = Verb(secrets.Secrets.put)
    list = Verb(secrets.Secrets.list)
    delete = Verb(secrets.Secrets.delete)
    rotate = Verb(secrets.Secrets.rotate)


class Webhooks(Shell[webhooks.Webhooks]):
    """Where events go."""

    put = Verb(webhooks.Webhooks.put)
    renew = Verb(webhooks.Webhooks.renew)
    get = Verb(webhooks.Webhooks.get)
    list = Verb(webhooks.Webhooks.list)
    delete = Verb(webhooks.Webhooks.delete)


class Scripts(Shell[scripts.Scripts]):
    """Scripts and their versions."""

    put = Verb(scripts.Scripts.put)
    get = Verb(scripts.Scripts.get)
    module = Verb(scripts.Scripts.module)
    check = Verb(scripts.Scripts.check)
    dry_run = Verb(scripts.Scripts.dry_run)
    versions = Verb(scripts.Scripts.versions)
    diff = Verb(scripts.Scripts.diff)
    rollback = Verb(scripts.Scripts.rollback)
    list = Verb(scripts.Scripts.list)
    offered = Verb(scripts.Scripts.offered)


class Schedules(Shell[schedules.Schedules]):
    """Scripts bound to rules."""

    create = Verb(schedules.Schedules.create)
    edit = Verb(schedules.Schedules.edit)
    rollback = Verb(schedules.Schedules.rollback)
    revisions = Verb(schedules.Schedules.revisions)
    diff = Verb(schedules.Schedules.diff)
    pause = Verb(schedules.Schedules.pause)
    resume = Verb(schedules.Schedules.resume)
    delete = Verb(schedules.Schedules.delete)
    get = Verb(schedules.Schedules.get)
    list = Verb(schedules.Schedules.list)
    counters = Verb(schedules.Schedules.counters)
    last_run = Verb(schedules.Schedules.last_run)
    preview = Verb(schedules.Schedules.preview)


class Actions(Shell[actions.Actions]):
    """What happened, happens and will."""

    list = Verb(actions.Actions.list)
    get = Verb(actions.Actions.get)
    attempts = Verb(actions.Actions.attempts)
    logs = Verb(actions.Actions.logs)
    deliveries = Verb(actions.Actions.deliveries)
    run_at = Verb(actions.Actions.run_at)
    run_in = Verb(actions.Actions.run_in)
    run_now = Verb(actions.Actions.run_now)
    backfill = Verb(actions.Actions.backfill)
    replay = Verb(actions.Actions.replay)
    cancel = Verb(actions.Actions.cancel)
    retry = Verb(actions.Actions.retry)
    running = Verb(actions.Actions.running)
    overdue = Verb(actions.Actions.overdue)
    compared = Verb(actions.Actions.compared)


class Tokens(Shell[tokens.Tokens]):
    """Bearer tokens of the HTTP API."""

    create = Verb(tokens.Tokens.create)
    first = Verb(tokens.Tokens.first)
    revoke = Verb(tokens.Tokens.revoke)
    get = Verb(tokens.Tokens.get)
    list = Verb(tokens.Tokens.list)


class Audit(Shell[audit.Audit]):
    """Every change, append-only."""

    list = Verb(audit.Audit.list)

    async def export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncIterator[AuditEntry]:
        """Give every change, oldest first; see :meth:`lodger.engine.verbs.audit.Audit.export`."""
        entries = self.inner.export(tenant_id, since=since, until=until)
        loop = asyncio.get_running_loop()
        try:
            while some := await loop.run_in_executor(self.threads, lambda: [*islice(entries, EXPORTED)]):
                for each in some:
                    yield each
        finally:
            await loop.run_in_executor(self.threads, entries.close)


class Nodes(Shell[nodes.Nodes]):
    """The engine's processes at work."""

    list = Verb(nodes.Nodes.list)


class Metrics(Shell[metrics.Metrics]):
    """Numbers for operators."""

    read = Verb(metrics.Metrics.read)
    text = Verb(metrics.Metrics.text)
    blocked = Verb(metrics.Metrics.blocked)


class Engine(Shell[sync.Engine]):
    """An open ledger, for asyncio. ``async with Engine.open(path) as engine``, or :meth:`open` and :meth:`close`."""

    def __init__(self, inner: sync.Engine) -> None:
        super().__init__(inner, ThreadPoolExecutor(THREADS, thread_name_prefix="lodger-verb"))
        self.books = inner.books
        self.tenants = Tenants(inner.tenants, self.threads)
        self.grants = Grants(inner.grants, self.threads)
        self.secrets = Secrets(inner.secrets, self.threads)
        self.webhooks = Webhooks(inner.webhooks, self.threads)
        self.scripts = Scripts(inner.scripts, self.threads)
        self.schedules = Schedules(inner.schedules, self.threads)
        self.actions = Actions(inner.actions, self.threads)
        self.tokens = Tokens(inner.tokens, self.threads)
        self.audit = Audit(inner.audit, self.threads)
        self.nodes = Nodes(inner.nodes, self.threads)
        self.metrics = Metrics(inner.metrics, self.threads)
        self.meters = inner.meters
        self.datasets = inner.datasets
        self.expose = inner.expose
        self.attach = inner.attach
        self.record_changed = inner.record_changed
        self.record_sessions = inner.record_sessions
        self.handler = inner.handler
        self.handlers = inner.handlers

    prepare = Verb(sync.Engine.prepare)
    run_at = Verb(sync.Engine.run_at)
    run_in = Verb(sync.Engine.run_in)

    @classmethod
    def open(
        cls,
        url_or_path: str,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        compile_schedule: Compile | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Open a ledger, making or upgrading it; see :meth:`lodger.engine.sync.Engine.open`. Blocks for that long."""
        opened = sync.Engine.open(
            url_or_path, clock=clock, settings=settings, compile_schedule=compile_schedule, progress=progress
        )
        return cls(opened)

    def __await__(self) -> Generator[Any, None, Self]:
        """Let ``await Engine.open(…)`` give the engine too."""
        return self
        yield

    async def close(self) -> None:
        """Let go of threads and database; safe to call twice."""
        self.threads.shutdown()
        self.inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def own_people(self, is_own: Callable[[str, str], bool]) -> None:
        """Let the platform say who a tenant's people are; see :meth:`lodger.engine.sync.Engine.own_people`."""
        self.inner.own_people(is_own)

    def on_event(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Hear what nodes of this process do; call what is returned to stop. The listener must be quick."""
        return self.inner.on_event(listener)

    async def events(self, *, kept: int = 10_000) -> AsyncIterator[Event]:
        """Give events as they happen; a reader that falls ``kept`` behind loses the oldest."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event] = asyncio.Queue()

        def put(event: Event) -> None:
            if queue.qsize() >= kept:
                queue.get_nowait()
            queue.put_nowait(event)

        def hear(event: Event) -> None:
            loop.call_soon_threadsafe(put, event)

        forget = self.on_event(hear)
        try:
            while True:
                yield await queue.get()
        finally:
            forget()

    async def dry_run(
        self, tenant_id: str, script: str, params: "Json" = None, *, version: int | None = None, fetches: bool = False
    ) -> "Finished":
        """Run a script once without storing anything; see :meth:`lodger.engine.sync.Engine.dry_run`."""
        from lodger.engine.node.rehearsal import rehearse

        return await rehearse(self.inner, tenant_id, script, params, version, fetches=fetches)

    @asynccontextmanager
    async def node(
        self,
        executor: "Executor | None" = None,
        name: str | None = None,
        *,
        apply_effects: "ApplyEffects | None" = None,
        couriers: bool = True,
    ) -> AsyncIterator["Node"]:
        """Run a node for as long as the block lasts; see :class:`lodger.engine.node.node.Node`."""
        from lodger.engine.node.node import Node

        made = Node(self.inner, executor, name, apply_effects=apply_effects, couriers=couriers)
        try:
            await made.start()
            yield made
        finally:
            await made.stop()
