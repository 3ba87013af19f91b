"""Serves the API on a socket: uvicorn as a library, started and stopped like every other service of the engine."""

import asyncio
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from lodger.engine.server.door import Door, Guest
from lodger.engine.server.known import Known
from lodger.engine.server.porter import Porter
from lodger.engine.server.wire import Wire
from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings

#: Connections that wait in the kernel.
BACKLOG = 1024
#: Seconds that requests under way have to end when the server stops; live streams are cut then.
GRACE_S = 3


class _Quiet(uvicorn.Server):
    """uvicorn's server without its own sockets: the door accepts, and connections are made of those it lets in."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        known: Known,
        full: Callable[[], bool],
        most: int,
        proxies: tuple[IPv4Network | IPv6Network, ...],
    ) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._known = known
        self._porter = Porter(full)
        self.door = Door(listening, self.let_in, self._porter, known, most=most, proxies=proxies, tls=config.ssl)

    def let_in(self, guest: Guest) -> Wire:
        """Make a connection of one that was let in."""
        return Wire(self.config, self.server_state, self.lifespan.state, guest, self._porter, self._known)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.door.open()
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in any more, then end what is under way."""
        await self.door.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to whoever runs the process."""
        yield


class Server:
    """One listening socket. ``start`` and ``stop`` are safe to call twice.

    Args:
        app: the ASGI application.
        settings: address, port, TLS, trusted proxies, connections.
        known: whose tokens opened something: they are let in before strangers. Without it all are strangers.
        full: tells whether enough is under way: who asks much waits at the door then.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        known: Known | None = None,
        full: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app = app
        self._settings = settings
        self._known = Known() if known is None else known
        self._full = full
        self._task: asyncio.Task[None] | None = None
        self._server: _Quiet | None = None
        self.port = settings.api_port

    @property
    def url(self) -> str:
        """Give the address to ask at."""
        host = self._settings.api_host
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self._settings.tls_cert else 'http'}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            InputError: tls_incomplete. Unavailable: tls_unreadable, address_taken.
        """
        if self._task is not None:
            return
        settings = self._settings
        _check_tls(settings)
        proxies = settings.trusted_proxies.strip()
        trusted = [each.strip() for each in proxies.split(",")] if proxies else None
        config = uvicorn.Config(
            self._app,
            http=Wire,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=trusted,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        try:
            config.load()
        except OSError as error:  # an SSLError is one too
            raise Unavailable(
                "tls_unreadable",
                "the certificate or its key cannot be used",
                why=str(error),
                fix="give a PEM chain with LODGER_TLS_CERT and its own key with LODGER_TLS_KEY",
            ) from error
        listening = _bound(settings.api_host, settings.api_port)
        self.port = listening.getsockname()[1]
        networks = tuple(_networks(trusted or []))
        self._server = _Quiet(config, listening, self._known, self._full, settings.api_connections, networks)
        self._task = asyncio.create_task(self._server.serve([]), name="lodger-api")
        ready = asyncio.ensure_future(self._server.listening.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            listening.close()
            ended, self._task, self._server = self._task, None, None
            await ended  # raises what kept it from listening: no descriptor was left

    async def stop(self) -> None:
        """Stop listening; what is under way has :data:`GRACE_S` seconds."""
        task, server = self._task, self._server
        self._task = self._server = None
        if task is None or server is None:
            return
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


def _networks(trusted: list[str]) -> Iterator[IPv4Network | IPv6Network]:
    for each in trusted:
        if each == "*":
            yield from (ip_network("0.0.0.0/0"), ip_network("::/0"))
        with suppress(ValueError):  # a path of a socket, or a name, is no address
            yield ip_network(each, strict=False)


def _check_tls(settings: Settings) -> None:
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InputError(
            "tls_incomplete",
            "a certificate and its key come together",
            fix="set LODGER_TLS_CERT and LODGER_TLS_KEY, or neither",
        )
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not Path(path).is_file():
            raise Unavailable(
                "tls_unreadable", f"there is no file {str(path)!r}", fix="check LODGER_TLS_CERT and LODGER_TLS_KEY"
            )


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Named as TCP, or asyncio leaves Nagle's algorithm on and every answer waits 40 ms for an acknowledgement.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise Unavailable(
            "address_unknown", f"{host!r} is no address of this host", why=str(error), fix="set LODGER_API_HOST"
        ) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise Unavailable(
            "address_taken",
            f"nobody can listen on {host} port {port}",
            why=error.strerror or str(error),
            fix="set LODGER_API_PORT to a free port, or stop what listens there",
        ) from error
    return listening
