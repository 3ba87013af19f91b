"""Live streams (server-sent events): what becomes of a tenant's actions, and one action with its log, while it happens.

One look at the ledger serves every stream of a tenant, and one question every stream of a single action. A stream ends with its token
or session, with its tenant, and with a reader that falls behind.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lodger.engine.server.calls import Calls, asker, permission
from lodger.engine.server.gate import session_of
from lodger.engine.server.lookout import Lookout
from lodger.engine.server.problems import Refused
from lodger.engine.server.schema import errors_of
from lodger.engine.core.errors import Unavailable
from lodger.engine.store.actions import actions
from lodger.engine.store.tenants import sessions, tenants, tokens
from lodger.engine.store.actions.action_stream import Following, Pulse, pulses
from lodger.engine.store.records import Action
from lodger.engine.store.lifecycle.running_lines import Hearing
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.core.access.roles import Role
from lodger.engine.service.operations.route import ROOT
from lodger.engine.core.serialization import shaped
from lodger.engine.sync import Engine
from lodger.sandbox.job import LogLine

#: Seconds between two looks at the ledger; what this process itself changes is looked at at once.
LOOK_S = 0.5
#: Seconds after which a stream says that it lives, and its token is looked at again.
STILL_S = 15.0
#: Seconds between two looks at least.
GAP_S = 0.05
#: Events that a reader may fall behind.
BEHIND = 1000
#: Streams of one token.
OF_ONE = 20
MEDIA = "text/event-stream"


Stands = Callable[[Connection], bool]


class _Still:
    """The time until a stream says that it lives, and its token is looked at again."""

    def __init__(self) -> None:
        self._time = asyncio.get_running_loop().time
        self._end_s = self._time() + STILL_S

    def left_s(self) -> float:
        return self._end_s - self._time()


@dataclass(slots=True)
class _Channel:
    """One tenant's looks, and who hears of them."""

    hearers: set[asyncio.Queue[Action | None]] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


class Live:
    """Every stream of one process. ``most``: at once."""

    def __init__(self, engine: Engine, calls: Calls) -> None:
        self._books = engine.books
        self._engine = engine
        self._calls = calls
        self._most = engine.books.settings.api_streams
        self._channels: dict[str, _Channel] = {}
        self._open: dict[str, int] = {}
        self._lookout = Lookout(self._read, self._wait)

    def enter(self, token_id: str) -> None:
        """Count a stream in.

        Raises:
            Refused: too_many_streams.
        """
        if sum(self._open.values()) >= self._most or self._open.get(token_id, 0) >= OF_ONE:
            raise Refused(
                429,
                "too_many_streams",
                f"{OF_ONE} streams of a token and {self._most} of all are held at once",
                fix="end one, or ask for pages",
                headers={"Retry-After": "10"},
            )
        self._open[token_id] = self._open.get(token_id, 0) + 1

    def leave(self, token_id: str) -> None:
        """Count a stream out."""
        self._open[token_id] -= 1
        if not self._open[token_id]:
            del self._open[token_id]

    async def actions(self, stands: Stands, tenant_id: str) -> AsyncGenerator[str]:
        """Give what becomes of a tenant's actions from now on."""
        queue: asyncio.Queue[Action | None] = asyncio.Queue(BEHIND)
        channel = self._channels.setdefault(tenant_id, _Channel())
        channel.hearers.add(queue)
        if channel.task is None:
            begun = asyncio.get_running_loop().create_future()
            channel.task = asyncio.create_task(self._look(tenant_id, channel, begun), name=f"lodger-live-{tenant_id}")
            await begun
        try:
            yield ": now\n\n"
            still = _Still()
            while True:
                # However much there is to tell: whose token is revoked hears no more of it.
                if still.left_s() <= 0:
                    if not await self._read(stands):
                        return
                    still = _Still()
                    yield ": still here\n\n"
                try:
                    async with asyncio.timeout(still.left_s()):
                        action = await queue.get()
                except TimeoutError:
                    continue
                if action is None:
                    return
                yield _event("action", action.id, shaped(action))
        finally:
            channel.hearers.discard(queue)
            if not channel.hearers and channel.task is not None:
                channel.task.cancel()
                self._channels.pop(tenant_id, None)

    async def action(self, stands: Stands, tenant_id: str, action_id: str) -> AsyncGenerator[str]:
        """Give an action with its log lines, as they are written while an attempt runs, until it is over.

        What was not read yet stands in the ledger: nothing is kept for a reader who takes his time, and nothing is lost to him.
        """
        told, mark, hearing = 0, None, Hearing(tenant_id, action_id)

        def look(connection: Connection) -> tuple[Pulse | None, Action, list[LogLine]]:
            # First what tells that there is more: what comes in between is looked at twice, and told once.
            pulse = pulses(connection, [(tenant_id, action_id)]).get((tenant_id, action_id))
            return pulse, actions.get(connection, action_id, tenant_id), hearing.look(connection)

        with self._lookout.watching(tenant_id, action_id) as watcher:
            still = _Still()
            while not watcher.over:
                if still.left_s() <= 0:
                    if not await self._read(stands):
                        return
                    still = _Still()
                    yield ": still here\n\n"
                watcher.moved.clear()
                watcher.seen, found, lines = await self._read(look)
                for line in lines:
                    told += 1
                    yield _event("log", f"{action_id}.{told}", shaped(line))
                now = (found.state, found.attempt, found.step)
                if now != mark:
                    mark = now
                    yield _event("action", action_id, shaped(found))
                if found.state not in OPEN:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(still.left_s()):
                        await watcher.moved.wait()

    async def _look(self, tenant_id: str, channel: _Channel, begun: "asyncio.Future[None]") -> None:
        following = Following(tenant_id)

        def first(connection: Connection) -> None:
            following.begin(connection, self._books.clock.now_us())

        def again(connection: Connection) -> list[Action] | None:
            tenants.get(connection, tenant_id)
            return following.look(connection)

        try:
            await self._read(first)
            begun.set_result(None)
            while True:
                await self._wait()
                with suppress(Unavailable):  # a server that is down: at the next look
                    for action in await self._read(again) or ():
                        for queue in tuple(channel.hearers):
                            self._tell(channel, queue, action)
        finally:
            if not begun.done():
                begun.set_result(None)
            for queue in tuple(channel.hearers):
                self._end(channel, queue)

    def _tell(self, channel: _Channel, queue: "asyncio.Queue[Action | None]", action: Action) -> None:
        try:
            queue.put_nowait(action)
        except asyncio.QueueFull:
            self._end(channel, queue)

    def _end(self, channel: _Channel, queue: "asyncio.Queue[Action | None]") -> None:
        channel.hearers.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)

    async def _read(self, look: Any) -> Any:  # noqa: ANN401 - a function of a connection, and what it gives
        def work() -> Any:  # noqa: ANN401 - what the look gives
            with self._books.database.read() as connection:
                return look(connection)

        return await self._calls.run(work)

    async def _wait(self) -> None:
        # Of a hundred writes in a moment one look tells.
        with suppress(TimeoutError):
            async with asyncio.timeout(GAP_S):
                await asyncio.Event().wait()
        woken, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(woken.set)

        forget = self._engine.watch(wake)
        try:
            async with asyncio.timeout(LOOK_S):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            forget()

    def stands(self, request: Request) -> Stands:
        """Give what tells whether a request's token, or its session, still opens anything."""
        found, clock = asker(request), self._books.clock
        token_id, session = found.caller.token_id, session_of(request) if found.by == "session" else None

        def look(connection: Connection) -> bool:
            now_us = clock.now_us()
            if session is not None:
                return sessions.caller(connection, session, now_us) is not None
            return not isinstance(tokens.by_id(connection, token_id, now_us), str)

        return look


class Stream(StreamingResponse):
    """One stream, counted from here until it is over, however it ends."""

    def __init__(self, live: Live, token_id: str, events: AsyncGenerator[str]) -> None:
        live.enter(token_id)
        super().__init__(events, media_type=MEDIA, headers={"X-Accel-Buffering": "no"})
        self._live, self._token_id, self._events = live, token_id, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes until either side ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.leave(self._token_id)
            await self._events.aclose()


def _event(kind: str, identity: str, body: object) -> str:
    return f"event: {kind}\nid: {identity}\ndata: {json.dumps(body)}\n\n"


def add(made: APIRouter, engine: Engine, calls: Calls) -> None:
    """Add the routes."""
    live = Live(engine, calls)
    streams: dict[int | str, dict[str, Any]] = {
        200: {"content": {MEDIA: {"schema": {"type": "string"}}}, "description": "events, until either side ends"}
    }
    more: dict[str, Any] = {
        "tags": ["actions"],
        "response_class": StreamingResponse,
        "dependencies": [permission(Role.VIEWER, of_tenant=True)],
        "responses": streams | errors_of(400, 401, 403, 404, 422, 429),
    }

    @made.get(ROOT + "/tenants/{tenant_id}/live", operation_id="actions_live", **more)
    async def of_tenant(request: Request, tenant_id: Annotated[str, Path(max_length=200)]) -> StreamingResponse:
        """Tell, as server-sent events, of each action that is made or moves on from now on."""
        _no_query(request)
        await calls.run(lambda: engine.tenants.get(tenant_id))
        return Stream(live, asker(request).caller.token_id, live.actions(live.stands(request), tenant_id))

    @made.get(ROOT + "/tenants/{tenant_id}/actions/{action_id}/live", operation_id="action_live", **more)
    async def of_action(
        request: Request,
        tenant_id: Annotated[str, Path(max_length=200)],
        action_id: Annotated[str, Path(max_length=200)],
    ) -> StreamingResponse:
        """Tell, as server-sent events, of one action and its log lines, until it is over; lines come while their attempt runs."""
        _no_query(request)
        await calls.run(lambda: engine.actions.get(tenant_id, action_id))
        events = live.action(live.stands(request), tenant_id, action_id)
        return Stream(live, asker(request).caller.token_id, events)


def _no_query(request: Request) -> None:
    if request.scope["query_string"]:
        raise Refused(400, "request_invalid", "this route takes no query", fix="leave out what comes after ?")
