"""Live streams (server-sent events): the changes of a tenant's actions, and one action with its log.

A stream ends with its token or session, with its tenant, and when its reader falls behind. ``Last-Event-ID`` continues it after a change.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lodger.engine.core.access.roles import Role
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.server.auth import session_of
from lodger.engine.server.endpoints import check_query
from lodger.engine.server.openapi import streamed
from lodger.engine.server.operation_call import Calls, authenticated, permission
from lodger.engine.server.problems import Refused
from lodger.engine.server.rate_limits import Threads
from lodger.engine.service.engine import Engine
from lodger.engine.service.live_changes import Change, FollowedAction, LiveChanges
from lodger.engine.service.operations.route import ROOT
from lodger.engine.store.records import Action
from lodger.engine.store.tenants import sessions, tokens

#: Seconds between two comments of a stream, at which its token is checked again.
COMMENT_S = 15.0
#: Most streams of one token.
MAX_STREAMS_OF_TOKEN = 20
MEDIA = "text/event-stream"
#: Threads in which all streams read the ledger.
THREADS = 2


Valid = Callable[[Connection], bool]
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=200,
        description="The id of the last received event: the stream continues after it.",
    ),
]


class Live:
    """Every stream of one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._meters = engine, engine.process_metrics
        self._threads = Threads(THREADS, THREADS, max_waiting=None)
        self._max_streams = engine.context.settings.api_streams
        self._open: Counter[str] = Counter()
        self._changes: dict[int, LiveChanges] = {}

    async def changes(self, tenant_id: str) -> LiveChanges:
        """Return the changes of the ledger that a tenant lives in."""
        engine = await self._threads.run("", lambda: self._engine.at(tenant_id))

        async def read_ledger(look: Any) -> Any:
            """Run a query of the stream in a thread."""
            return await self._threads.run("", lambda: engine.context.database.ask(look))

        return self._changes.setdefault(id(engine), LiveChanges(engine, read_ledger))

    def enter(self, token_id: str) -> None:
        """Count a stream that begins for a token; raises Refused (too_many_streams)."""
        if self._open.total() >= self._max_streams or self._open[token_id] >= MAX_STREAMS_OF_TOKEN:
            raise Refused(
                429,
                "too_many_streams",
                of_token=MAX_STREAMS_OF_TOKEN,
                of_all=self._max_streams,
                headers={"Retry-After": "10"},
            )
        self._open[token_id] += 1
        self._meters.put("lodger_http_streams", self._open.total())

    def leave(self, token_id: str) -> None:
        """Count a stream of a token that has ended."""
        self._open[token_id] -= 1
        if not self._open[token_id]:
            del self._open[token_id]
        self._meters.put("lodger_http_streams", self._open.total())

    async def events(
        self, valid: Valid, tenant_id: str | None, changes: AsyncGenerator[Change | None]
    ) -> AsyncGenerator[str]:
        """Yield changes as events, while the token or session, which is one of this tenant or of the platform, is valid."""
        async with aclosing(changes):
            async for change in changes:
                if change is None:
                    if not await self.read(tenant_id, valid):
                        return
                    yield ": still here\n\n"
                elif change.value is None:
                    yield f": now\nid: {change.id}\n\n"
                else:
                    kind = "action" if isinstance(change.value, Action) else "log"
                    yield f"event: {kind}\nid: {change.id}\ndata: {json.dumps(to_jsonable(change.value))}\n\n"

    async def read(self, tenant_id: str | None, look: Any) -> Any:
        """Run a function of a connection to the ledger of a tenant in a thread."""
        return await self._threads.run("", lambda: self._engine.at(tenant_id).context.database.ask(look))

    def stream(self, request: Request, changes: AsyncGenerator[Change | None]) -> "Stream":
        """Return the stream of changes for a request."""
        caller = authenticated(request).caller
        return Stream(self, caller.token_id, self.events(self.valid(request), caller.tenant_id, changes))

    def valid(self, request: Request) -> Valid:
        """Return the check that a request's token or session is still valid.

        The platform's own authentication is asked again by a new request: such a stream ends with its first comment, and
        browsers begin it anew.
        """
        found, clock = authenticated(request), self._engine.context.clock
        token_id, session = found.caller.token_id, session_of(request) if found.by == "session" else None

        def is_valid(connection: Connection) -> bool:
            """Whether the stream's caller may still read: the token or session is neither revoked nor expired."""
            now_us = clock.now_us()
            if found.by == "platform":
                return False
            if session is not None:
                return sessions.find_caller(connection, session, now_us) is not None
            return not isinstance(tokens.caller_by_id(connection, token_id, now_us), str)

        return is_valid


class Stream(StreamingResponse):
    """One stream, counted until it is over, however it ends."""

    def __init__(self, live: Live, token_id: str, events: AsyncGenerator[str]) -> None:
        live.enter(token_id)
        super().__init__(events, media_type=MEDIA, headers={"X-Accel-Buffering": "no"})
        self._live, self._token_id, self._events = live, token_id, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until either side ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.leave(self._token_id)
            await self._events.aclose()


def add(router: APIRouter, engine: Engine, calls: Calls) -> None:
    """Add the routes of live streams."""
    live = Live(engine)
    about = "events, until client or server ends the stream"
    more = streamed(MEDIA, about, 400, 401, 403, 404, 422, 429) | {"tags": ["actions"]}
    more["dependencies"] = [permission(Role.VIEWER, of_tenant=True)]

    @router.get(ROOT + "/tenants/{tenant_id}/live", operation_id="actions_live", **more)
    async def of_tenant(
        request: Request, tenant_id: Annotated[str, Path(max_length=200)], last: LastEventId = None
    ) -> StreamingResponse:
        """Send, as server-sent events, each action that is created or changes from now on."""
        check_query(request, None)
        await calls.run(authenticated(request).key, lambda: engine.tenants.get(tenant_id))
        changes = (await live.changes(tenant_id)).tenant(tenant_id, COMMENT_S, last)
        return live.stream(request, changes)

    @router.get(ROOT + "/tenants/{tenant_id}/actions/{action_id}/live", operation_id="action_live", **more)
    async def of_action(
        request: Request,
        tenant_id: Annotated[str, Path(max_length=200)],
        action_id: Annotated[str, Path(max_length=200)],
        last: LastEventId = None,
    ) -> Response:
        """Send, as server-sent events, one action and its log lines until it is over; lines come while their attempt runs."""
        check_query(request, None)
        found = await calls.run(authenticated(request).key, lambda: engine.actions.get(tenant_id, action_id))
        if last is not None:
            followed = FollowedAction(tenant_id, found.id, last)
            if not await live.read(tenant_id, followed.look) and followed.over:
                return Response(status_code=204)  # to an EventSource: do not open it again
        changes = (await live.changes(tenant_id)).action(tenant_id, found.id, COMMENT_S, last)
        return live.stream(request, changes)
