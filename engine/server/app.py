"""The whole API as one ASGI application around an open engine: headers, authentication, routes."""

import re
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lodger.engine.server import endpoints, live, openapi, sessions
from lodger.engine.server.auth import OPEN_PREFIXES, Authenticate, Authentication
from lodger.engine.server.bodies import Bodies
from lodger.engine.server.operation_call import Calls
from lodger.engine.server.problems import ProblemRoute, Refused, problem, route_path, routing_error
from lodger.engine.server.rate_limits import RateLimits, Threads
from lodger.engine.service.async_engine import Engine as AsyncEngine
from lodger.engine.service.engine import Engine

#: Operations of :attr:`lodger.engine.service.operations.route.Route.long` that are carried out at once.
LONG = 4
#: Threads on SQLite, where the database answers from this process's own memory: more only wait for each other.
SQLITE_THREADS = 4
#: Concurrent requests on a database server.
API_THREADS = 16
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

#: Headers of every answer: it is not cached, framed, sniffed or run.
ALWAYS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}


#: Headers that pages of other origins may send, and those of answers that they may read.
REQUEST_HEADERS = [
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Lodger-Why", "Lodger-Acting-As",
    "X-Request-Id",
]  # fmt: skip
ANSWER_HEADERS = [
    "ETag", "Idempotent-Replayed", "Location", "Lodger-Unreachable",
    "RateLimit-Limit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset",
    "Retry-After", "X-Request-Id",
]  # fmt: skip

#: Add the routes of wings; a wing's module ``routes`` appends to it.
ROUTES: list[Callable[["Api"], None]] = []


class Api:
    """The API of one engine. ``app`` is what a server is given, or mounted in a platform's own application.

    Args:
        engine: stays the caller's: it is neither opened nor closed here.
        authenticate: asynchronous function from a request (:class:`starlette.requests.Request`) to its
            :class:`~lodger.engine.core.access.roles.Caller`, made with ``Caller.user``, or None; it replaces tokens and sessions.
    """

    def __init__(self, engine: Engine | AsyncEngine, *, authenticate: Authenticate | None = None) -> None:
        if isinstance(engine, AsyncEngine):
            engine = engine.inner
        context, settings = engine.context, engine.context.settings
        self.engine = engine
        total = API_THREADS if context.database.driver.has_row_locks else SQLITE_THREADS
        share = max(1, total // 2)
        threads = Threads(total, share)
        self.calls = calls = Calls(engine, threads, writing=Threads(share, share), long=Threads(LONG, 1))
        self.bodies = Bodies(settings)
        self.framework = FastAPI(title="Lodger", openapi_url=None, redirect_slashes=False)
        router = self.framework.router
        router.route_class = ProblemRoute
        endpoints.add(self.framework, engine, calls, self.bodies, self.description)
        live.add(router, engine, calls)
        self.framework.add_exception_handler(HTTPException, routing_error)
        self._description: dict[str, Any] | None = None
        # Looking up tokens has threads of its own, shared by address: wrong tokens take none from right ones' requests.
        self.lookups = lookups = Threads(max(2, share), max(1, share // 2), max_waiting=None)
        self.limits = limits = RateLimits(settings)
        self.authentication = authentication = Authentication(self.framework, engine, lookups, limits, authenticate)
        engine.load_wings("routes")
        for add in ROUTES:
            add(self)
        sessions.add(router, engine, self.bodies, authentication)
        self.app: ASGIApp = CommonHeaders(_with_cors(authentication, settings.api_cors_origins.split()), engine)

    def description(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        if self._description is None:
            self._description = openapi.document(self.framework, self.engine.table.routes, sessions.Login)
        return self._description


def _with_cors(app: ASGIApp, origins: list[str]) -> ASGIApp:
    """Let pages of other origins call the API with a token; cookies of sessions stay with the dashboard's own pages."""
    if not origins:
        return app
    middleware = CORSMiddleware(
        app, allow_origins=origins, allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], allow_headers=REQUEST_HEADERS,
        expose_headers=ANSWER_HEADERS, max_age=600,
    )  # fmt: skip

    async def apply_cors(scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request through the rules for other origins, unless its route has rules of its own."""
        # Paths with a credential of their own answer other origins themselves.
        own = scope["type"] == "http" and route_path(scope).startswith(tuple(OPEN_PREFIXES))
        await (app if own else middleware)(scope, receive, send)

    return apply_cors


class CommonHeaders:
    """The outermost middleware: request ids, counts, the headers of every answer, and the answer to errors that nothing inside has caught.

    A request's id is the caller's if it is 1 to 64 letters, digits, dots, dashes or underscores, else a new one.
    """

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        framed = engine.context.settings.frame_ancestors
        self._always = {name: value for name, value in ALWAYS.items() if name != "x-frame-options" or not framed}
        self._meters, self._clock = engine.process_metrics, engine.context.clock

    def _count(self, scope: Scope, status: int, begun_s: float) -> None:
        """Count a request and its duration by route and status."""
        route: Any = scope.get("route")
        # A fixed word for all that is no route: neither a client's path nor its method is a label.
        known = scope["method"] in (getattr(route, "methods", None) or ())
        label = f"{scope['method']} {route.path}" if known else "other"
        self._meters.count("lodger_http_requests_total", label, str(status))
        self._meters.observe("lodger_http_request_seconds", [self._clock.elapsed_s() - begun_s], label)
        if status == 429:
            self._meters.count("lodger_http_limited_total")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request."""
        begun_s = self._clock.elapsed_s()
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = headers.get("x-request-id", "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        begun = False

        async def send_with_headers(message: Message) -> None:
            """Send a part of a response, its head with the headers that all responses have."""
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._count(scope, message["status"], begun_s)
                answered = MutableHeaders(scope=message)
                answered["x-request-id"] = request_id
                for name, value in (self._always | scope["state"].get("rate_limit", {})).items():
                    answered.setdefault(name, value)
                if scope.get("scheme") == "https":
                    answered.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        try:
            _require_plain(scope, headers)
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if begun:
                raise  # half an answer is out: the server cuts the connection
            await problem(error, scope)(scope, receive, send_with_headers)


def _require_plain(scope: Scope, headers: Headers) -> None:
    """Refuse what proxies read differently: a request with both Transfer-Encoding and Content-Length, paths that lead elsewhere, and
    bytes that are no UTF-8; and a compressed body."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refused(400, "http_ambiguous", headers={"Connection": "close"})
    segments = [unquote_to_bytes(segment) for segment in scope["raw_path"].split(b"/")]
    if any(segment in {b".", b".."} or b"/" in segment or b"\\" in segment for segment in segments):
        raise Refused(400, "path_invalid")
    for part in (scope["raw_path"], scope["query_string"]):
        try:
            unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            raise Refused(400, "path_invalid.encoding") from None
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "content_encoding", headers={"Accept-Encoding": "identity"})
