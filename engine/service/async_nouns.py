"""The nouns for asyncio: every verb of :mod:`lodger.engine.service.nouns`, awaitable, of a local engine or a remote server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from lodger.engine.service.nouns import (
    actions,
    audit,
    collections,
    grants,
    locks,
    metrics,
    nodes,
    schedules,
    scripts,
    secrets,
    tenants,
    tokens,
    webhooks,
)
from lodger.engine.store.records import AuditEntry

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class Carrier(Protocol):
    """Carries out verbs for asyncio: in a thread, or by asking a server."""

    def carry(
        self, noun: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Awaitable[Any]:
        """Carry out one verb, a function of the synchronous noun's class, without its first argument."""
        ...

    def stream(
        self, noun: str, function: Callable[..., Generator[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Carry out a verb whose answer comes bit by bit."""
        ...


class Shell(Generic[S]):
    """A noun for asyncio, with the verbs of its synchronous twin."""

    def __init__(self, noun: str, carrier: Carrier) -> None:
        self.noun = noun
        self.carrier = carrier


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

        @wraps(self._method)
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
            return shell.carrier.carry(shell.noun, self._method, args, kwargs)

        return call


class Tenants(Shell[tenants.Tenants]):
    """Customers of the platform."""

    create = Verb(tenants.Tenants.create)
    get = Verb(tenants.Tenants.get)
    usage = Verb(tenants.Tenants.usage)
    list = Verb(tenants.Tenants.list)
    edit = Verb(tenants.Tenants.edit)
    suspend = Verb(tenants.Tenants.suspend)
    resume = Verb(tenants.Tenants.resume)
    export = Verb(tenants.Tenants.export)
    restore = Verb(tenants.Tenants.restore)
    delete = Verb(tenants.Tenants.delete)


class Collections(Shell[collections.Collections]):
    """Documents of tenants, and indexes on their paths."""

    list = Verb(collections.Collections.list)
    index = Verb(collections.Collections.index)
    drop_index = Verb(collections.Collections.drop_index)


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
    put_ping = Verb(scripts.Scripts.put_ping)
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
    what_if = Verb(schedules.Schedules.what_if)


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
        """Give every change, oldest first; see :meth:`lodger.engine.service.nouns.audit.Audit.export`."""
        bounds = {"since": since, "until": until}
        async for entry in self.carrier.stream(self.noun, audit.Audit.export, (tenant_id,), bounds):
            yield entry


class Nodes(Shell[nodes.Nodes]):
    """The engine's processes at work."""

    list = Verb(nodes.Nodes.list)


class Locks(Shell[locks.Locks]):
    """Work that one process does at a time."""

    take = Verb(locks.Locks.take)
    free = Verb(locks.Locks.free)
    list = Verb(locks.Locks.list)


class Metrics(Shell[metrics.Metrics]):
    """Numbers for operators."""

    read = Verb(metrics.Metrics.read)
    text = Verb(metrics.Metrics.text)
    blocked = Verb(metrics.Metrics.blocked)
