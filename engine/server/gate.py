"""The one gate: whoever asks shows a token or a session, or gets no further. What has no token is denied before it is looked for."""

import asyncio
import hmac
import ipaddress
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from lodger.engine.server.buckets import Buckets
from lodger.engine.server.problems import Refused, problem
from lodger.engine.server.stamps import Stamps
from lodger.engine.server.turns import STRANGER, Turns, whose
from lodger.engine.store.tenants import sessions, tokens
from lodger.engine.store.context import Books
from lodger.engine.core.access.roles import Caller

#: What needs no token, by method and path: whether the service lives, and how one logs in.
OPEN = {("GET", "/healthz"), ("HEAD", "/healthz"), ("POST", "/api/v1/session")}
SAFE = {"GET", "HEAD", "OPTIONS"}
#: Longest header that can be a token or hold a session.
LONGEST = 4096
T = TypeVar("T")
_log = logging.getLogger("lodger.api")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and how it was shown."""

    caller: Caller
    by: Literal["token", "session"]


class Gate:
    """Finds out who asks, counts wrong tokens by address and requests by token, and guards sessions against other sites."""

    def __init__(self, app: ASGIApp, books: Books, turns: Turns, strangers: Turns) -> None:
        self._app = app
        self._books = books
        self._turns = turns
        self._strangers = strangers
        self._stamps = Stamps(books)
        elapsed_s = books.clock.elapsed_s
        self.failures = Buckets(books.settings.api_failures_per_minute, 60, elapsed_s)
        self.requests = Buckets(books.settings.api_requests_per_minute, 60, elapsed_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            if (request.method, scope["path"]) not in OPEN:
                asker = await self._shown(request)
                self._counted(asker)
                scope.setdefault("state", {})["asker"] = asker
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody gets past
            await problem(error)(scope, receive, send)
            return
        stamping = asyncio.create_task(self._stamps.write()) if self._stamps.due else None
        try:
            await self._app(scope, receive, send)
        finally:
            if stamping is not None:
                await stamping
            if self._stamps.due:  # one has logged in
                await self._stamps.write()

    async def _shown(self, request: Request) -> Asker:
        address = client(request)
        header = request.headers.getlist("authorization")
        if len(header) > 1 or any(len(each) > LONGEST for each in header):
            raise Refused(400, "header_invalid", "this Authorization header is not one", fix="send one, short")
        if header:
            return Asker(await self.by_token(header[0], address), "token")
        cookie = session_of(request)
        if cookie is not None:
            return Asker(await self._by_session(request, cookie, address), "session")
        raise unauthorized("token_missing", "no token was shown", "send Authorization: Bearer <token>")

    async def by_token(self, header: str, address: str) -> Caller:
        """Give whose token this is.

        Raises:
            Refused: token_invalid, token_expired, too_many_failures.
        """
        wait_s = self.failures.empty(address)
        if wait_s:
            raise too_many_failures(wait_s)
        scheme, _, text = header.partition(" ")
        now_us = self._books.clock.now_us()

        def look(connection: Connection) -> tuple[Caller, int | None] | str:
            return tokens.caller(connection, text.strip() if scheme.lower() == "bearer" else "", now_us)

        found = await self._read(look)
        if isinstance(found, str):
            self.failures.take(address)
            _log.warning("a token from %s opens nothing: %s", address, found)
            if found == "expired":
                raise unauthorized("token_expired", "this token has expired", "ask for a new one")
            raise unauthorized("token_invalid", "this token opens nothing", "check it; a revoked one stays closed")
        caller, used_us = found
        if used_us is None or used_us + tokens.USED_US < now_us:
            self._stamps.note(caller.token_id, lambda connection: tokens.used(connection, caller.token_id, now_us))
        return caller

    async def _by_session(self, request: Request, text: str, address: str) -> Caller:
        wait_s = self.failures.empty(address)
        if wait_s:
            raise too_many_failures(wait_s)
        now_us = self._books.clock.now_us()
        found = await self._read(lambda connection: sessions.caller(connection, text, now_us))
        if found is None:
            self.failures.take(address)
            raise unauthorized("session_over", "this session is over", "log in again")
        caller, unnoted = found
        if request.method not in SAFE:
            own_site(request)
            wanted = await self._read(lambda connection: sessions.csrf(connection, text))
            if not hmac.compare_digest(request.headers.get("x-csrf-token", "").encode("latin-1"), wanted.encode()):
                raise Refused(
                    403,
                    "csrf_missing",
                    "a change with a session needs its X-CSRF-Token",
                    why="another site could have sent this request with your cookie",
                    fix="send the csrf that GET /api/v1/session answers",
                )
        if unnoted:
            self._stamps.note(text, lambda connection: sessions.seen(connection, text, now_us))
            await self._stamps.write()  # whether it is over depends on it
        return caller

    def _counted(self, asker: Asker) -> None:
        wait_s = self.requests.take(asker.caller.token_id)
        if wait_s:
            raise Refused(
                429,
                "too_many_requests",
                f"this token may ask {self.requests.size} times a minute",
                fix="ask less often",
                headers={"Retry-After": str(max(1, round(wait_s)))},
            )

    async def _read(self, look: Callable[[Connection], T]) -> T:
        def work() -> T:
            with self._books.database.read() as connection:
                return look(connection)

        name = whose.get()
        async with self._strangers.turn(name) if name.startswith(STRANGER) else nullcontext():
            return await self._turns.run(work)


def unauthorized(code: str, what: str, fix: str) -> Refused:
    """Say that nobody is known to ask."""
    return Refused(401, code, what, fix=fix, headers={"WWW-Authenticate": 'Bearer realm="lodger"'})


def too_many_failures(wait_s: float) -> Refused:
    """Say that too many wrong tokens came from an address."""
    return Refused(
        429,
        "too_many_failures",
        "too many wrong tokens came from this address",
        fix="wait, then send a right one",
        headers={"Retry-After": str(max(1, round(wait_s)))},
    )


def client(request: Request) -> str:
    """Give whom failures are counted for; see :func:`network`."""
    return network(request.client.host if request.client else "unknown")


@lru_cache(maxsize=4096)
def network(host: str) -> str:
    """Give an IPv4 address, or the network of an IPv6 one, of which anybody has many."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6:
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
    return host


def cookie_name(secure: bool) -> str:
    """Give the session cookie's name; over TLS the prefix keeps other hosts and paths from setting it."""
    return "__Host-lodger" if secure else "lodger"


def session_of(request: Request) -> str | None:
    """Give the session that a request carries, None when it carries none."""
    name = cookie_name(request.url.scheme == "https")
    found = []
    for header in request.headers.getlist("cookie"):
        if len(header) > LONGEST:
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
    """Refuse what a browser says another site has sent.

    Raises:
        Refused: other_site.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site is not None and site not in {"same-origin", "none"}
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        foreign = True
    if foreign:
        raise Refused(
            403,
            "other_site",
            "another site has sent this request",
            fix="use the API from its own pages, or with a token",
        )
