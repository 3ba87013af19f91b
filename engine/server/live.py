"""Live streams (server-sent events): the changes of a tenant's actions, and one action with its log.

One query serves every stream of a tenant, and one every stream of a single action. A stream ends with its token or session, with its
tenant, and when its reader falls behind.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.server.auth import session_of
from lodger.engine.server.openapi import errors_of
from lodger.engine.server.operation_call import Calls, authenticated, permission
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import Threads
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT
from lodger.engine.store.actions import actions
from lodger.engine.store.actions.action_stream import ActionStream, ChangeStamp, Key, change_stamps
from lodger.engine.store.lifecycle.running_lines import LogStream
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import OPEN
from lodger.engine.store.tenants import sessions, tenants, tokens
from lodger.sandbox.job import LogLine

#: Seconds between two looks at the ledger; changes of this process are looked at at once.
POLL_S = 0.5
#: Seconds between two comments of an idle stream, at which its token is checked again.
COMMENT_S = 15.0
#: Least seconds between two looks.
MIN_GAP_S = 0.05
#: Events that wait for a reader; one that falls further behind is cut.
MAX_WAITING = 1000
#: Most streams of one token.
MAX_STREAMS_OF_TOKEN = 20
MEDIA = "text/event-stream"
#: Threads in which all streams read the ledger.
THREADS = 2


Valid = Callable[[Connection], bool]


class _Timer:
    """The time until the next comment of a stream."""

    def __init__(self) -> None:
        self._time = asyncio.get_running_loop().time
        self._end_s = self._time() + COMMENT_S

    def left_s(self) -> float:
        return self._end_s - self._time()


@dataclass(slots=True)
class _Channel:
    """The streams of one tenant, and the task that looks for all of them."""

    queues: set[asyncio.Queue[Action | None]] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


@dataclass(eq=False, slots=True)
class Watcher:
    """One stream's interest in one action. ``seen`` is the pulse of its own last look; ``moved`` is set when there is another."""

    key: Key
    seen: ChangeStamp | None = None
    over: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Poller:
    """One query for all actions that single streams of this process show.

    Args:
        read: calls a function with a connection, in a thread.
        wait: returns when it is time to look again.
    """

    def __init__(
        self, read: Callable[[Callable[[Connection], Any]], Awaitable[Any]], wait: Callable[[], Awaitable[None]]
    ) -> None:
        self._read = read
        self._wait = wait
        self._watchers: set[Watcher] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, tenant_id: str, action_id: str) -> Iterator[Watcher]:
        """Watch an action for the block."""
        watcher = Watcher((tenant_id, action_id))
        self._watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._poll(), name="lodger-live-poller")
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _poll(self) -> None:
        try:
            while True:
                await self._wait()
                keys = {watcher.key for watcher in self._watchers}
                with suppress(Unavailable):  # the database is unavailable: at the next time
                    found: dict[Key, ChangeStamp] = await self._read(partial(change_stamps, wanted=keys))
                    for watcher in self._watchers:
                        # A watcher that came meanwhile was not asked for; one before its own first look will see it all.
                        new = watcher.seen is None or watcher.key not in keys
                        if not new and found.get(watcher.key) != watcher.seen:
                            watcher.moved.set()
        finally:
            if self._task is asyncio.current_task():  # ended by a fault, not because no stream is left
                self._task = None
                for watcher in self._watchers:
                    watcher.over = True
                    watcher.moved.set()


class Live:
    """Every stream of one process."""

    def __init__(self, engine: Engine) -> None:
        self._context = engine.context
        self._engine = engine
        self._threads = Threads(THREADS, THREADS, max_waiting=None)
        self._max_streams = engine.context.settings.api_streams
        self._channels: dict[str, _Channel] = {}
        self._open: dict[str, int] = {}
        self._poller = Poller(self._read, self._wait)

    def enter(self, token_id: str) -> None:
        """Count a stream in.

        Raises:
            Refused: too_many_streams.
        """
        if sum(self._open.values()) >= self._max_streams or self._open.get(token_id, 0) >= MAX_STREAMS_OF_TOKEN:
            raise Refused(
                429,
                "too_many_streams",
                of_token=MAX_STREAMS_OF_TOKEN,
                of_all=self._max_streams,
                headers={"Retry-After": "10"},
            )
        self._open[token_id] = self._open.get(token_id, 0) + 1

    def leave(self, token_id: str) -> None:
        """Count a stream out."""
        self._open[token_id] -= 1
        if not self._open[token_id]:
            del self._open[token_id]

    async def actions(self, valid: Valid, tenant_id: str) -> AsyncGenerator[str]:
        """Yield the changes of a tenant's actions from now on."""
        queue: asyncio.Queue[Action | None] = asyncio.Queue(MAX_WAITING)
        channel = self._channels.setdefault(tenant_id, _Channel())
        channel.queues.add(queue)
        if channel.task is None:
            begun = asyncio.get_running_loop().create_future()
            channel.task = asyncio.create_task(self._look(tenant_id, channel, begun), name=f"lodger-live-{tenant_id}")
            await begun
        try:
            yield ": now\n\n"
            timer = _Timer()
            while True:
                # Checked however many events there are: a revoked token ends the stream.
                if timer.left_s() <= 0:
                    if not await self._read(valid):
                        return
                    timer = _Timer()
                    yield ": still here\n\n"
                try:
                    async with asyncio.timeout(timer.left_s()):
                        action = await queue.get()
                except TimeoutError:
                    continue
                if action is None:
                    return
                yield _event("action", action.id, to_jsonable(action))
        finally:
            channel.queues.discard(queue)
            if not channel.queues and channel.task is not None:
                channel.task.cancel()
                self._channels.pop(tenant_id, None)

    async def action(self, valid: Valid, tenant_id: str, action_id: str) -> AsyncGenerator[str]:
        """Yield an action with its log lines, as they are written while an attempt runs, until it is over.

        Nothing is queued for a slow reader: unread lines are read from the ledger when it goes on.
        """
        lines_sent, mark, log = 0, None, LogStream(tenant_id, action_id)

        def look(connection: Connection) -> tuple[ChangeStamp | None, Action, list[LogLine]]:
            # The pulse first: a change in between is looked at twice and sent once.
            pulse = change_stamps(connection, [(tenant_id, action_id)]).get((tenant_id, action_id))
            return pulse, actions.get(connection, action_id, tenant_id), log.poll(connection)

        with self._poller.watching(tenant_id, action_id) as watcher:
            timer = _Timer()
            while not watcher.over:
                if timer.left_s() <= 0:
                    if not await self._read(valid):
                        return
                    timer = _Timer()
                    yield ": still here\n\n"
                watcher.moved.clear()
                watcher.seen, found, lines = await self._read(look)
                for line in lines:
                    lines_sent += 1
                    yield _event("log", f"{action_id}.{lines_sent}", to_jsonable(line))
                now = (found.state, found.attempt, found.step)
                if now != mark:
                    mark = now
                    yield _event("action", action_id, to_jsonable(found))
                if found.state not in OPEN:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(timer.left_s()):
                        await watcher.moved.wait()

    async def _look(self, tenant_id: str, channel: _Channel, begun: "asyncio.Future[None]") -> None:
        stream = ActionStream(tenant_id)

        def first(connection: Connection) -> None:
            stream.start(connection, self._context.clock.now_us())

        def again(connection: Connection) -> list[Action] | None:
            tenants.get(connection, tenant_id)
            return stream.poll(connection)

        try:
            await self._read(first)
            begun.set_result(None)
            while True:
                await self._wait()
                with suppress(Unavailable):  # the database is unavailable: at the next time
                    for action in await self._read(again) or ():
                        for queue in tuple(channel.queues):
                            self._tell(channel, queue, action)
        finally:
            if not begun.done():
                begun.set_result(None)
            for queue in tuple(channel.queues):
                self._end(channel, queue)

    def _tell(self, channel: _Channel, queue: "asyncio.Queue[Action | None]", action: Action) -> None:
        try:
            queue.put_nowait(action)
        except asyncio.QueueFull:
            self._end(channel, queue)

    def _end(self, channel: _Channel, queue: "asyncio.Queue[Action | None]") -> None:
        channel.queues.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)

    async def _read(self, look: Any) -> Any:  # noqa: ANN401 - a function of a connection, and what it gives
        def work() -> Any:  # noqa: ANN401 - what the look gives
            with self._context.database.read() as connection:
                return look(connection)

        return await self._threads.run("", work)

    async def _wait(self) -> None:
        # One look serves many writes of a moment.
        with suppress(TimeoutError):
            async with asyncio.timeout(MIN_GAP_S):
                await asyncio.Event().wait()
        woken, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(woken.set)

        forget = self._engine.watch(wake)
        try:
            async with asyncio.timeout(POLL_S):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            forget()

    def valid(self, request: Request) -> Valid:
        """Return the check that a request's token or session is still valid.

        The platform's own authentication is asked again by a new request: such a stream ends with its first comment, and
        browsers begin it anew.
        """
        found, clock = authenticated(request), self._context.clock
        token_id, session = found.caller.token_id, session_of(request) if found.by == "session" else None

        def look(connection: Connection) -> bool:
            now_us = clock.now_us()
            if found.by == "platform":
                return False
            if session is not None:
                return sessions.find_caller(connection, session, now_us) is not None
            return not isinstance(tokens.caller_by_id(connection, token_id, now_us), str)

        return look


class Stream(StreamingResponse):
    """One stream, counted until it is over, however it ends."""

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


def add(router: APIRouter, engine: Engine, calls: Calls) -> None:
    """Add the routes."""
    live = Live(engine)
    streams: dict[int | str, dict[str, Any]] = {
        200: {
            "content": {MEDIA: {"schema": {"type": "string"}}},
            "description": "events, until client or server ends the stream",
        }
    }
    more: dict[str, Any] = {
        "tags": ["actions"],
        "response_class": StreamingResponse,
        "dependencies": [permission(Role.VIEWER, of_tenant=True)],
        "responses": streams | errors_of(400, 401, 403, 404, 422, 429),
    }

    @router.get(ROOT + "/tenants/{tenant_id}/live", operation_id="actions_live", **more)
    async def of_tenant(request: Request, tenant_id: Annotated[str, Path(max_length=200)]) -> StreamingResponse:
        """Send, as server-sent events, each action that is created or changes from now on."""
        _no_query(request)
        await calls.run(authenticated(request).key, lambda: engine.tenants.get(tenant_id))
        return Stream(live, authenticated(request).caller.token_id, live.actions(live.valid(request), tenant_id))

    @router.get(ROOT + "/tenants/{tenant_id}/actions/{action_id}/live", operation_id="action_live", **more)
    async def of_action(
        request: Request,
        tenant_id: Annotated[str, Path(max_length=200)],
        action_id: Annotated[str, Path(max_length=200)],
    ) -> StreamingResponse:
        """Send, as server-sent events, one action and its log lines until it is over; lines come while their attempt runs."""
        _no_query(request)
        found = await calls.run(authenticated(request).key, lambda: engine.actions.get(tenant_id, action_id))
        events = live.action(live.valid(request), tenant_id, found.id)
        return Stream(live, authenticated(request).caller.token_id, events)


def _no_query(request: Request) -> None:
    if request.scope["query_string"]:
        raise Refused(400, "request_invalid.no_query")
