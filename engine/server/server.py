"""Serves the API on a socket with uvicorn, started and stopped like a node.

No code of Lodger's stands between the socket and the application; ``docs/decisions/0002-http-server.md`` says what that server bounds
itself and what needs a reverse proxy.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import uvicorn
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.server.app import Api
from lodger.engine.service.engine import Engine
from lodger.engine.store.platform import idempotency

#: Connections that wait in the kernel.
BACKLOG = 1024
#: Longest request line and headers, bytes.
MAX_HEADERS = 32 * 1024
#: Seconds that a connection may idle between two requests.
KEEP_ALIVE_S = 15
#: Seconds that requests under way have to end when the server stops; live streams are cut then.
GRACE_S = 3
#: Seconds between two deletions of idempotency keys that have expired.
CLEAR_S = 600.0
#: Headers by which proxies name the client.
FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"})
#: Addresses of untrusted proxies that are logged.
MAX_WARNINGS = 10
_log = logging.getLogger("lodger.api")


class Server:
    """The API of one engine on one socket. ``start`` and ``stop`` are safe to call twice; ``url`` is its address."""

    def __init__(self, engine: Engine) -> None:
        self._context = engine.context
        self._settings = settings = engine.context.settings
        self.api = Api(engine)
        self._app = ForwardedHeaders(self.api.app, trusted_proxies(settings))
        self._port = settings.api_port
        self._serving: tuple[_Uvicorn, asyncio.Task[None], asyncio.Task[None]] | None = None

    @property
    def url(self) -> str:
        """The address of the server; its port is known once it has started."""
        return self._settings.api_url(self._port)

    async def start(self) -> None:
        """Listen and answer requests.

        Raises:
            InputError: tls_incomplete. Unavailable: tls_unreadable, address_unknown, address_taken.
        """
        if self._serving is not None:
            return
        settings = self._settings
        _check_tls(settings)
        config = uvicorn.Config(
            self._app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            limit_concurrency=settings.api_connections,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            h11_max_incomplete_event_size=MAX_HEADERS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        try:
            config.load()
        except OSError as error:  # an SSLError is one too
            raise Unavailable("tls_unreadable", reason=str(error)) from error
        listening = _bound(settings.api_host, settings.api_port)
        self._port = listening.getsockname()[1]
        server = _Uvicorn(config)
        task = asyncio.create_task(server.serve([listening]), name="lodger-api")
        ready = asyncio.ensure_future(server.listening.wait())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            listening.close()
            await task  # raises what kept it from listening
        clearing = asyncio.create_task(self._clear(), name="lodger-api-clearing")
        self._serving = server, task, clearing

    async def stop(self) -> None:
        """Stop listening; requests under way have :data:`GRACE_S` seconds."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        server, task, clearing = serving
        server.should_exit = True
        clearing.cancel()
        for each in (task, clearing):
            with suppress(asyncio.CancelledError):
                await each

    async def _clear(self) -> None:
        """Delete expired idempotency keys now and then."""
        context = self._context

        def delete_expired_keys() -> int:
            """Delete the stored responses whose time is over; return their number."""
            with context.database.write() as connection:
                return idempotency.delete_expired(connection, context.clock.now_us())

        while True:
            with suppress(Unavailable):  # a full disk or an absent database: at the next time
                while await to_thread.run_sync(delete_expired_keys):
                    pass
            await asyncio.sleep(CLEAR_S)


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, which leaves signals to the process that embeds it and tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report that the server is ready."""
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture no signals: the process does."""
        yield


class ForwardedHeaders:
    """Takes the client's address and scheme from the headers of trusted proxies; warns once of each other address that sends them."""

    def __init__(self, app: ASGIApp, trusted: list[str]) -> None:
        self._app = app
        self._trusting = ProxyHeadersMiddleware(app, trusted)  # type: ignore[arg-type]  # uvicorn's own words for the same types
        self._warned: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        peer = scope["client"][0] if scope.get("client") else ""
        if scope["type"] == "http" and peer not in self._trusting.trusted_hosts:
            self._warn(scope, peer)
            await self._app(scope, receive, send)
        else:
            await self._trusting(scope, receive, send)  # type: ignore[arg-type]  # as above

    def _warn(self, scope: Scope, peer: str) -> None:
        """Log once that a peer which is not trusted sends forwarded headers."""
        if peer in self._warned or len(self._warned) >= MAX_WARNINGS:
            return
        if any(name in FORWARDED for name, _value in scope["headers"]):
            self._warned.add(peer)
            _log.warning(
                "ignored the X-Forwarded-… headers of %s, which is not in LODGER_TRUSTED_PROXIES: all its clients count as one "
                "address with plain HTTP; if it is your reverse proxy, set LODGER_TRUSTED_PROXIES=%s",
                peer,
                peer,
            )


def trusted_proxies(settings: Settings) -> list[str]:
    """Return the trusted networks.

    Raises:
        InputError: trusted_proxies_invalid.
    """
    found = []
    for each in settings.trusted_proxies.split(","):
        text = each.strip()
        if not text:
            continue
        try:
            found += [str(ip_network(one, strict=False)) for one in (("0.0.0.0/0", "::/0") if text == "*" else (text,))]
        except ValueError:
            raise InputError("trusted_proxies_invalid", text=text) from None
    return found


def _check_tls(settings: Settings) -> None:
    """Raise InputError (tls_incomplete) if only one of certificate and key is set, Unavailable if one of the files is missing."""
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InputError("tls_incomplete")
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not Path(path).is_file():
            raise Unavailable("tls_unreadable.missing", path=str(path))


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Named as TCP, or asyncio leaves Nagle's algorithm on and every answer waits 40 ms for an acknowledgement.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise Unavailable("address_unknown", host=host, reason=str(error)) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        if error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
            raise Unavailable("address_unknown", host=host, reason=error.strerror) from error
        if error.errno == errno.EACCES:
            raise Unavailable("address_taken.privileged", host=host, port=port) from error
        raise Unavailable("address_taken", host=host, port=port, reason=error.strerror or str(error)) from error
    return listening
