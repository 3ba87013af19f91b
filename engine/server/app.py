"""The whole API as one ASGI application around an open engine: envelope, gate, routes."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from lodger.engine.server import endpoints, live, platform, schema, sessions
from lodger.engine.server.answering import Answering, of_framework
from lodger.engine.server.bodies import Bodies
from lodger.engine.server.calls import Calls
from lodger.engine.server.envelope import Envelope
from lodger.engine.server.gate import Gate
from lodger.engine.server.known import Known
from lodger.engine.server.line import Line
from lodger.engine.server.room import TOGETHER, Room
from lodger.engine.server.sieve import looked
from lodger.engine.server.turns import Turns
from lodger.engine.service.engine import Engine

#: Verbs of :attr:`lodger.engine.service.operations.route.Route.long` that are carried out at once.
LONG = 4
#: Threads where the database answers from this process's own memory: more only wait for each other (an answer took 80 ms beside a
#: thousand clients with sixteen, 10 ms with four).
LOCAL = 4
#: Requests that wait for a thread; while there are as many, who asks much waits at the door.
FULL = 8


class Api:
    """The API of one engine. ``app`` is what a server is given, or mounted in a platform's own application.

    Args:
        engine: stays the caller's: it is neither opened nor closed here.
        look: tells whether a long body is a JSON object; in this process, unless somebody else does.
    """

    def __init__(self, engine: Engine, look: Callable[[bytes, int], bool] = looked) -> None:
        settings = engine.books.settings
        self.engine = engine
        most = settings.api_threads
        if not engine.books.database.driver.has_row_locks:
            most = min(most, LOCAL)
        share = max(1, most // 2)
        self._turns = turns = Turns(most, share)
        # What starts walls of its own and waits for them is kept apart: it holds no thread that a page waits for. So are those that
        # wait for the one who writes.
        self.calls = Calls(engine.books, turns, Turns(share, share), Turns(LONG, 1))
        self.room = Room(max(TOGETHER, 2 * settings.api_upload_bytes))
        bodies = Bodies(settings.api_body_bytes, settings.api_body_s, self.room, look)
        uploads = Bodies(settings.api_upload_bytes, settings.api_body_s, self.room)
        self.framework = FastAPI(
            title="Lodger",
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
        )
        routes = self.framework.router
        routes.route_class = Answering
        endpoints.add(routes, engine, self.calls, bodies, uploads)
        live.add(routes, engine, self.calls)
        platform.add(routes, engine, self.calls, self.description)
        self.framework.add_exception_handler(HTTPException, of_framework)
        self._description: dict[str, Any] | None = None
        self.gate = Gate(self.framework, engine.books, turns, Turns(share, max(1, share // 2)))
        sessions.add(routes, engine.books, self.calls, bodies, self.gate)
        #: Whose tokens opened something: the server's door asks, too.
        self.known = Known()
        self.line = Line(self.gate, max(1, settings.api_threads // 2), self.known)
        self.app: ASGIApp = Envelope(self.line)

    def full(self) -> bool:
        """Tell whether so many wait for a thread that whoever comes would only wait behind them."""
        return self._turns.waiting >= FULL

    def description(self) -> dict[str, Any]:
        """Give the OpenAPI description."""
        if self._description is None:
            self._description = schema.document(self.framework, sessions.Login)
        return self._description
