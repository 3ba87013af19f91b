"""Streams of changes: a tenant's actions, or one action with its log lines, for readers in any process."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from lodger.engine.store import short_ids
from lodger.engine.store.actions import actions
from lodger.engine.store.actions.action_stream import Following
from lodger.engine.store.lifecycle.running_lines import Hearing
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.tenants import tenants
from lodger.sandbox.job import LogLine

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

T = TypeVar("T")
#: Seconds between two polls of the ledger; writes of this process cause a poll at once.
LOOK_S = 0.5
#: New values, and whether the stream has ended.
Seen = tuple[list[Action | LogLine], bool]
Look = Callable[[Connection], Seen]
Reads = Callable[[Look], Awaitable[Seen]]


def live(engine: "Engine", tenant_id: str, action_id: str | None) -> Iterator[Action | LogLine]:
    """Yield changes; see :meth:`lodger.engine.sync.Engine.live`."""
    woken, look, over = threading.Event(), _look(engine, tenant_id, action_id), False
    forget = engine.watch(woken.set)
    try:
        while True:
            with engine.context.database.read() as connection:
                seen, over = look(connection)
            yield from seen
            if over:
                return
            woken.wait(LOOK_S)
            woken.clear()
    finally:
        forget()


async def alive(
    engine: "Engine", tenant_id: str, action_id: str | None, read: Reads
) -> AsyncGenerator[Action | LogLine]:
    """Yield changes without occupying a thread between polls."""
    woken, look, loop = asyncio.Event(), _look(engine, tenant_id, action_id), asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(woken.set)

    forget = engine.watch(wake)
    try:
        while True:
            seen, over = await read(look)
            for each in seen:
                yield each
            if over:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await woken.wait()
            woken.clear()
    finally:
        forget()


def _look(engine: "Engine", tenant_id: str, action_id: str | None) -> Look:
    return _actions(engine, tenant_id) if action_id is None else _action(tenant_id, action_id)


def _actions(engine: "Engine", tenant_id: str) -> Look:
    following: Following | None = None

    def look(connection: Connection) -> Seen:
        nonlocal following
        if following is None:
            tenants.get(connection, tenant_id)
            following = Following(tenant_id)
            following.begin(connection, engine.context.clock.now_us())
            return [], False
        return [*following.look(connection)], False

    return look


def _action(tenant_id: str, action_id: str) -> Look:
    mark: tuple[str, int, int] | None = None
    hearing: Hearing | None = None

    def look(connection: Connection) -> Seen:
        nonlocal mark, hearing
        if hearing is None:
            hearing = Hearing(tenant_id, short_ids.action_id(connection, tenant_id, action_id))
        found = actions.get(connection, hearing.action_id, tenant_id)
        seen: list[Action | LogLine] = [*hearing.look(connection)]
        if (found.state, found.attempt, found.step) != mark:
            mark = (found.state, found.attempt, found.step)
            seen.append(found)
        return seen, found.state not in OPEN

    return look
