"""A real API on a real socket around a real ledger, for tests: the server runs in a thread of its own."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.server.app import Api
from lodger.engine.server.server import Server
from lodger.engine.sync import Engine

SETTINGS: dict[str, Any] = {
    "sqlite_synchronous": "NORMAL", "min_interval_s": 1, "api_port": 0, "api_requests_per_minute": 1_000_000,
    "api_tenant_requests_per_minute": 1_000_000,
    "concurrent_runs": 100,
}  # fmt: skip
ONE = "export default () => 1"
#: Of clients that speak HTTP only: reading the machine's certificates takes them 25 ms each.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class RunningApi:
    """An engine, its API, and tokens by role."""

    engine: Engine
    api: Api
    url: str
    clock: VirtualClock
    http: httpx2.Client
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def token(self, role: str, tenant_id: str | None = None) -> str:
        """Return a token of this role, made once."""
        key = f"{role} {tenant_id}"
        if key not in self.tokens:
            self.tokens[key] = self.engine.tokens.create(key, role, tenant_id=tenant_id).text
        return self.tokens[key]

    def bearer(self, role: str = "admin", tenant_id: str | None = None) -> dict[str, str]:
        """Return the Authorization header with a token of this role."""
        return {"authorization": f"Bearer {self.token(role, tenant_id)}"}

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        role: str = "admin",
        tenant: str | None = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> httpx2.Response:
        """Ask once, below the API's root, with a token of this role."""
        if body is not None:
            more["json"] = body
        shown = self.bearer(role, tenant) | (headers or {})
        return self.http.request(method, f"{self.url}/api/v1{path}", headers=shown, **more)

    @contextmanager
    def browser(self, role: str | None = None, tenant: str | None = None) -> Iterator[httpx2.Client]:
        """Yield a client that asks for pages as a browser does, with a session of this role."""
        with httpx2.Client(
            base_url=self.url, timeout=50, trust_env=False, verify=NO_CERTIFICATES, headers={"accept": "text/html"}
        ) as made:
            if role is not None:
                made.post("/api/v1/session", json={"token": self.token(role, tenant)}).raise_for_status()
            yield made

    def raw(self, sent: bytes, *, timeout: float = 60) -> bytes:
        """Send bytes on a fresh connection; return all that comes back until it ends or nothing more comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            connection.sendall(sent)
            return read_to_end(connection)

    def furnish(self, tenant_id: str = "acme") -> None:
        """Make a tenant with a script and a schedule."""
        self.engine.tenants.create(tenant_id)
        self.engine.scripts.put(tenant_id, "job", ONE)
        self.engine.schedules.create(tenant_id, "s", script="job", rules="every 60s")


def read_to_end(connection: socket.socket) -> bytes:
    """Return the bytes of a connection until the other side closes it."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(parts)


def body_of(answer: bytes) -> dict[str, Any]:
    """Return the JSON body of a raw answer."""
    return json.loads(answer.partition(b"\r\n\r\n")[2])


@contextmanager
def serving(engine: Engine) -> Iterator[Server]:
    """Serve an engine's API in a thread for the block."""
    server = Server(engine)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="test-api")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def running_api(url: str, **settings: Any) -> Iterator[RunningApi]:
    """Open a ledger and serve it for the block."""
    clock = VirtualClock()
    wanted = Settings(**(SETTINGS | settings))
    with (
        Engine.open(url, clock=clock, settings=wanted) as engine,
        serving(engine) as server,
        httpx2.Client(timeout=50, trust_env=False, verify=NO_CERTIFICATES) as http,
    ):
        yield RunningApi(engine, server.api, server.url, clock, http)
