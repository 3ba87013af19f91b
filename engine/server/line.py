"""Stands before the gate: everybody has a line of his own, so that what one sends at once costs one's own time and memory only.

Whose request it is nobody knows before the gate has asked the ledger, which is already work that others wait behind. So a token or
session that opened something before has its line by whose it is; one that was never seen has a line by itself, and what it costs to
find out is done for each address in turn, behind all that is known.
"""

from contextlib import AsyncExitStack

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lodger.engine.server.gate import client
from lodger.engine.server.known import Known, digest
from lodger.engine.server.problems import Refused, problem
from lodger.engine.server.turns import STRANGER, whose
from lodger.engine.server.turnstile import Turnstile

#: Ends of paths whose answers go on for hours: they leave the line when their answer begins, and are counted elsewhere.
LIVE = ("/live", "/events")
#: What says nothing but that the process lives.
ALIVE = "/healthz"


class Line:
    """Holds a place for each request from before its token is looked at until its answer is out: ``share`` of each name at once."""

    def __init__(self, app: ASGIApp, share: int, known: Known) -> None:
        self._app = app
        self._turnstile = Turnstile(share)
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request in its turn."""
        if scope["type"] != "http" or scope["path"] == ALIVE:
            await self._app(scope, receive, send)
            return
        shown, address = digest(scope["headers"]), client(Request(scope))
        name = self._known.owner(shown)
        whose.set(name or STRANGER + address)
        name = name or f"{address} {shown.hex()}"
        async with AsyncExitStack() as place:
            try:
                await place.enter_async_context(self._turnstile.through(name))
            except Refused as refused:
                await problem(refused)(scope, receive, send)
                return

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await place.aclose()
                await send(message)

            await self._app(scope, receive, sending if scope["path"].endswith(LIVE) else send)
        asker = scope.get("state", {}).get("asker")
        self._known.note(shown, asker and asker.caller.token_id)
