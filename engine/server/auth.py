"""Authentication: a token or a session for every request, counted by the rate limits, guarded against other sites.

A request without a valid token or session is refused before its route is looked up.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lodger.engine.core.access.roles import Caller
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.server.problems import Refused, problem, route_path
from lodger.engine.server.rate_limits import RateLimits, Threads
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT
from lodger.engine.store.drivers import prepared
from lodger.engine.store.tenants import sessions, tokens

#: Health checks, which need no token.
HEALTH = ("/healthz", "/health/live", "/health/ready")
#: Routes without authentication, by method and path: health checks and the login.
OPEN = frozenset({("POST", "/api/v1/session"), *((method, path) for method in ("GET", "HEAD") for path in HEALTH)})
#: Beginnings of paths that need no authentication here, because they carry a credential of their own.
OPEN_PREFIXES: list[str] = []
SAFE = {"GET", "HEAD", "OPTIONS"}
#: Longest header that can be a token or hold a session, characters.
MAX_HEADER = 4096
T = TypeVar("T")
#: A caller, with what its use is noted by; or why it is refused.
Found = tuple[Caller, Any] | str
_log = logging.getLogger("lodger.api")


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The caller of a request, and how it was authenticated."""

    caller: Caller
    by: Literal["token", "session", "platform"]

    @property
    def key(self) -> str:
        """The key that threads and memory are shared by: the tenant, or the token of a platform role."""
        return self.caller.tenant_id or self.caller.token_id


#: A platform's own authentication: returns the caller of a request, or None.
Authenticate = Callable[[Request], Awaitable[Caller | None]]


class Authentication:
    """Middleware that authenticates each request, or answers it with 401, 403 or 429.

    Args:
        by_platform: replaces tokens and sessions.

    Attributes:
        public: methods and paths that need no authentication, below the path at which the application is mounted.
        asking: methods and paths of forms that change nothing themselves: they need no CSRF token.
        signed_out: returns the page to which a browser is sent when a session ends that was begun at a provider, by its ID token.
        sign_in: returns the URL of the page to which browsers without a session are sent; None for the usual answer.
        error_page: returns the page that a browser is shown in place of a problem document; None for the document.
    """

    def __init__(
        self,
        app: ASGIApp,
        engine: Engine,
        threads: Threads,
        limits: RateLimits,
        by_platform: Authenticate | None = None,
    ) -> None:
        self._app = app
        self.by_platform = by_platform
        self._engine = engine
        self._context = engine.context
        self._threads = threads
        self._limits = limits
        self._writer = Threads(1, 1, max_waiting=None)
        self._noting: set[Hashable] = set()
        self.public = set(OPEN)
        self.asking: set[tuple[str, str]] = set()
        self.sign_in: Callable[[Request], str] | None = None
        self.signed_out: Callable[[Request, str], Awaitable[str | None]] | None = None
        self.error_page: Callable[[Request, Response], Response] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = route_path(scope)
        if scope["method"] == "HEAD" and path.startswith(ROOT) and not path.endswith("/live"):
            scope = {**scope, "method": "GET"}  # the server sends an answer to HEAD without its body
        request = Request(scope)
        try:
            answer = await self._refusal(request, path)
            await (answer or self._app)(scope, receive, send)
        finally:
            for writing in scope.get("state", {}).get("uses", ()):
                await writing

    async def _refusal(self, request: Request, path: str) -> Response | None:
        """Authenticate a request; return the answer to one that goes no further."""
        try:
            if (request.method, path) not in self.public and not path.startswith(tuple(OPEN_PREFIXES)):
                found = await self._authenticated(request)
                left = self._limits.request(found.caller.token_id, found.caller.tenant_id)
                request.scope.setdefault("state", {}).update(authenticated=found, rate_limit=left)
        except Exception as error:  # noqa: BLE001 - whatever it is, the request goes no further
            answer = problem(error, request.scope)
            if is_page(request):
                if answer.status_code == 401 and self.sign_in is not None:
                    answer = RedirectResponse(self.sign_in(request), 303)
                elif self.error_page is not None:
                    answer = self.error_page(request, answer)
            return answer
        return None

    async def _authenticated(self, request: Request) -> Authenticated:
        """Return the caller of a request by the platform, a token or a session; raises Refused."""
        if self.by_platform is not None:
            return Authenticated(await self._by_platform(request, self.by_platform), "platform")
        address = client(request)
        header = request.headers.getlist("authorization")
        if len(header) > 1 or any(len(each) > MAX_HEADER for each in header):
            raise Refused(400, "header_invalid.authorization")
        if header:
            return Authenticated(await self.by_token(request, header[0]), "token")
        cookie = session_of(request)
        if cookie is not None:
            return Authenticated(await self._by_session(request, cookie, address), "session")
        raise unauthorized("token_missing")

    async def _by_platform(self, request: Request, authenticate: Authenticate) -> Caller:
        """Return the caller that the platform's own function authenticates; raises Refused."""
        caller = await authenticate(request)
        if caller is None:
            raise Refused(401, "not_signed_in")
        if request.method not in SAFE:
            own_site(request)
            if not request.headers.get("x-csrf-token"):
                # A form of another site cannot send this header, and a script there only with the platform's permission (CORS).
                raise Refused(403, "csrf_missing.platform")
        return caller

    async def by_token(self, request: Request, header: str) -> Caller:
        """Return the caller that a token belongs to. Only wrong tokens count towards the limit of an address.

        When the token was last used is written beside the answer, so that no request waits for the database's one writer.

        Raises:
            Refused: token_invalid, token_expired, too_many_failures.
        """
        address = client(request)
        scheme, _, text = header.partition(" ")
        now_us = self._context.clock.now_us()

        def authenticate_token(connection: Connection) -> Found | None:
            """Return the caller of the token, None if this ledger does not know it."""
            sent = text.strip() if scheme.lower() == "bearer" else ""
            found = tokens.authenticate(connection, sent, now_us)
            return None if found == "unknown" else found

        found = await self._read(address, authenticate_token)
        if found is None or isinstance(found, str):
            self._limits.failure(address)
            _log.warning("rejected a token from %s: %s", address, found or "unknown")
            if found == "expired":
                raise unauthorized("token_expired")
            raise unauthorized("token_invalid")
        caller, used_us = found
        if used_us is None or used_us + tokens.USED_US < now_us:
            note = partial(tokens.record_use, token_id=caller.token_id, now_us=now_us)
            writing = asyncio.create_task(self._note_use(caller.token_id, caller.tenant_id, note))
            request.scope.setdefault("state", {}).setdefault("uses", []).append(writing)
        return caller

    async def _by_session(self, request: Request, text: str, address: str) -> Caller:
        """Return the caller of the session in a cookie, which other sites may not use; raises Refused."""
        now_us = self._context.clock.now_us()

        def find_session_caller(connection: Connection) -> tuple[Caller, bool] | None:
            """Return the caller of the session, None if this ledger does not know it."""
            prepared.last(connection)
            return sessions.find_caller(connection, text, now_us)

        found = await self._read(address, find_session_caller)
        if found is None or isinstance(found, str):
            self._limits.failure(address)
            raise unauthorized("session_over")
        caller, unnoted = found
        if request.method not in SAFE:
            own_site(request)
            if (request.method, route_path(request.scope)) in self.asking:
                return caller
            wanted = await self.in_ledger_of(caller, address, lambda connection: sessions.csrf(connection, text))
            if not hmac.compare_digest(request.headers.get("x-csrf-token", "").encode("latin-1"), wanted.encode()):
                raise Refused(403, "csrf_missing")
        if unnoted:
            # The request waits for it: when the session ends depends on it.
            note = partial(sessions.record_seen, text=text, now_us=now_us)
            await self._note_use(text, caller.tenant_id, note)
        return caller

    async def _note_use(self, key: Hashable, tenant_id: str | None, note: Callable[[Connection], object]) -> None:
        """Write to the ledger of a tenant, None for the operators', when a token or session was last used, unless that is under way.

        If the database is unavailable, it is logged: the next use is written again.
        """
        if key in self._noting:
            return
        self._noting.add(key)
        try:
            await self._writer.run("", lambda: self._engine.at(tenant_id).context.database.ask(note, writes=True))
        except Unavailable as error:
            _log.warning("the last use of tokens cannot be stored: %s", error)
        finally:
            self._noting.discard(key)

    async def _read(self, address: str, look: Callable[[Connection], Found | None]) -> Found | None:
        """Return the first result of a function over all ledgers: a tenant's sessions live in its own, the platform's in the first."""

        def look_in_ledger(engine: Engine) -> tuple[Found] | None:
            """Return what this ledger knows of the caller; callers without a tenant count where they may."""
            found = engine.context.database.ask(look)
            if isinstance(found, tuple) and found[0].tenant_id is None:
                return (found,) if self._engine.knows(engine, copied=found[0].copied) else None
            return None if found is None else (found,)

        there = await self._threads.run(address, lambda: self._engine.ask_each(look_in_ledger))
        return None if there is None else there[0]

    async def in_ledger_of(
        self, caller: Caller, address: str, work: Callable[[Connection], T], *, writes: bool = False
    ) -> T:
        """Run a function in a transaction of the ledger with a caller's token."""
        engine, tenant_id = self._engine, caller.tenant_id
        return await self._threads.run(address, lambda: engine.at(tenant_id).context.database.ask(work, writes=writes))


def is_page(request: Request) -> bool:
    """Whether a browser without a token navigates to a page."""
    headers = request.headers
    return (
        request.method in {"GET", "POST"}
        and "text/html" in headers.get("accept", "")
        and "authorization" not in headers
    )


def unauthorized(code: str) -> Refused:
    """Return the refusal of a request that is not authenticated."""
    return Refused(401, code, headers={"WWW-Authenticate": 'Bearer realm="lodger"'})


def client(request: Request) -> str:
    """Return the address that failures are counted for; see :func:`network`."""
    return network(request.client.host if request.client else "unknown")


@lru_cache(maxsize=4096)
def network(host: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address, because one client has as many of those as it likes."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6:
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
    return host


def made_from(secret: str, *uses: str) -> list[str]:
    """Return a value for each use, made from the secret in a browser's cookie: who knows one value knows no other, nor the secret."""
    return [hashlib.sha256(f"{use}:{secret}".encode()).hexdigest() for use in uses]


def cookie_name(secure: bool) -> str:
    """Return the session cookie's name; over TLS the prefix keeps other hosts and paths from setting it."""
    return "__Host-lodger" if secure else "lodger"


def keep_session(answer: Response, request: Request, text: str, life_us: int, settings: Settings) -> None:
    """Set the session cookie in an answer; for an empty text a cookie that ends at once."""
    secure = request.url.scheme == "https"
    framed = secure and bool(settings.frame_ancestors)
    answer.set_cookie(
        cookie_name(secure), text, max_age=life_us // 1_000_000, path="/", secure=secure, httponly=True,
        samesite="none" if framed else "strict",
    )  # fmt: skip
    if framed:
        name, value = answer.raw_headers.pop()
        answer.raw_headers.append((name, value + b"; Partitioned"))


def session_of(request: Request) -> str | None:
    """Return the session that a request carries, or None."""
    name = cookie_name(request.url.scheme == "https")
    found = []
    for header in request.headers.getlist("cookie"):
        if len(header) > MAX_HEADER:
            continue
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(header)
        except CookieError:
            continue
        if name in jar:
            found.append(jar[name].value)
    return found[0] if len(found) == 1 else None


def own_site(request: Request) -> None:
    """Refuse a request that another site has sent, as the browser's headers tell.

    Raises:
        Refused: other_site.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site is not None and site not in {"same-origin", "none"}
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        foreign = True
    if foreign:
        raise Refused(403, "other_site")
