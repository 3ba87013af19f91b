"""Streams of changes: a tenant's actions, or one action with its log lines, for readers in any process."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from lodger.engine.store import short_ids
from lodger.engine.store.actions import actions
from lodger.engine.store.actions.action_stream import ActionStream
from lodger.engine.store.lifecycle.running_lines import LogStream
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.tenants import tenants
from lodger.sandbox.job import LogLine

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

T = TypeVar("T")
#: Seconds between two polls of the ledger; writes of this process cause a poll at once.
POLL_S = 0.5
#: New values, and whether the stream has ended.
Polled = tuple[list[Action | LogLine], bool]
Poll = Callable[[Connection], Polled]
AsyncRead = Callable[[Poll], Awaitable[Polled]]


def live(engine: "Engine", tenant_id: str, action_id: str | None) -> Iterator[Action | LogLine]:
    """Yield changes; see :meth:`lodger.engine.sync.Engine.live`."""
    woken, poll, over = threading.Event(), _poll(engine, tenant_id, action_id), False
    unsubscribe = engine.watch(woken.set)
    try:
        while True:
            with engine.context.database.read() as connection:
                polled, over = poll(connection)
            yield from polled
            if over:
                return
            woken.wait(POLL_S)
            woken.clear()
    finally:
        unsubscribe()


async def live_async(
    engine: "Engine", tenant_id: str, action_id: str | None, read: AsyncRead
) -> AsyncGenerator[Action | LogLine]:
    """Yield changes without occupying a thread between polls."""
    woken, poll, loop = asyncio.Event(), _poll(engine, tenant_id, action_id), asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(woken.set)

    unsubscribe = engine.watch(wake)
    try:
        while True:
            polled, over = await read(poll)
            for each in polled:
                yield each
            if over:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await woken.wait()
            woken.clear()
    finally:
        unsubscribe()


def _poll(engine: "Engine", tenant_id: str, action_id: str | None) -> Poll:
    return _actions(engine, tenant_id) if action_id is None else _action(tenant_id, action_id)


def _actions(engine: "Engine", tenant_id: str) -> Poll:
    stream: ActionStream | None = None

    def poll(connection: Connection) -> Polled:
        nonlocal stream
        if stream is None:
            tenants.get(connection, tenant_id)
            stream = ActionStream(tenant_id)
            stream.start(connection, engine.context.clock.now_us())
            return [], False
        return [*stream.poll(connection)], False

    return poll


def _action(tenant_id: str, action_id: str) -> Poll:
    mark: tuple[str, int, int] | None = None
    log: LogStream | None = None

    def poll(connection: Connection) -> Polled:
        nonlocal mark, log
        if log is None:
            log = LogStream(tenant_id, short_ids.action_id(connection, tenant_id, action_id))
        found = actions.get(connection, log.action_id, tenant_id)
        polled: list[Action | LogLine] = [*log.poll(connection)]
        if (found.state, found.attempt, found.step) != mark:
            mark = (found.state, found.attempt, found.step)
            polled.append(found)
        return polled, found.state not in OPEN

    return poll
