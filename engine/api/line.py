"""Stands behind the gate: every token has its own line, so that a thousand requests of one keep nobody else waiting."""

from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Receive, Scope, Send

from lodger.engine.api.problems import Refused, problem
from lodger.engine.api.turnstile import Turnstile

#: Ends of paths whose answers go on for hours: those are counted elsewhere.
LIVE = ("/live", "/events")


class Line:
    """Holds a turn for each request from before its body is read until its answer is out."""

    def __init__(self, app: ASGIApp, share: int) -> None:
        self._app = app
        self._turnstile = Turnstile(share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request in its turn."""
        asker = scope.get("state", {}).get("asker")
        async with AsyncExitStack() as turn:
            if asker is not None and not scope["path"].endswith(LIVE):
                try:
                    await turn.enter_async_context(self._turnstile.through(asker.caller.token_id))
                except Refused as refused:
                    await problem(refused)(scope, receive, send)
                    return
            await self._app(scope, receive, send)
