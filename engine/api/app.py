"""The whole API as one ASGI application around an open engine: envelope, gate, routes."""

from typing import Any

from anyio import CapacityLimiter
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from lodger.engine.api import endpoints, live, platform, schema, sessions
from lodger.engine.api.answering import Answering, of_framework
from lodger.engine.api.bodies import Bodies
from lodger.engine.api.calls import Calls
from lodger.engine.api.envelope import Envelope
from lodger.engine.api.gate import Gate
from lodger.engine.api.line import Line
from lodger.engine.sync import Engine


class Api:
    """The API of one engine. ``app`` is what a server is given, or mounted in a platform's own application.

    Args:
        engine: stays the caller's: it is neither opened nor closed here.
    """

    def __init__(self, engine: Engine) -> None:
        settings = engine.books.settings
        self.engine = engine
        self._limiter: CapacityLimiter | None = None
        self.calls = Calls(engine.books, self.limiter)
        bodies = Bodies(settings.api_body_bytes, settings.api_body_s)
        uploads = Bodies(settings.api_upload_bytes, settings.api_body_s)
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
        line = Line(self.framework, max(1, settings.api_threads // 2))
        self.gate = Gate(line, engine.books, self.limiter)
        sessions.add(routes, engine.books, self.calls, bodies, self.gate)
        self.app: ASGIApp = Envelope(self.gate)

    def limiter(self) -> CapacityLimiter:
        """Give what bounds how many verbs run at once; it belongs to the loop that asks first."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(self.engine.books.settings.api_threads)
        return self._limiter

    def description(self) -> dict[str, Any]:
        """Give the OpenAPI description."""
        if self._description is None:
            self._description = schema.document(self.framework, sessions.Login)
        return self._description
