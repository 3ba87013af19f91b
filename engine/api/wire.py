"""The server's side of a connection: uvicorn's strict HTTP/1.1 (h11), with patience that ends.

uvicorn alone waits for ever for a header that comes letter by letter, for a reader that does not read, and reads a body to its
end that nobody wants. h11 refuses what two readers could read differently (two lengths, other codings than chunks), the
envelope a length beside chunks; a folded line is one line, as RFC 9112 5.2 says.
"""

import asyncio
import json
import logging
import re
from collections import Counter
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, ClassVar

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from lodger.engine.api.envelope import ALWAYS
from lodger.engine.api.gate import network
from lodger.engine.api.problems import MEDIA

#: Seconds for a request's line and headers to arrive, for a reader to take what was written, for an unwanted body to end.
HEADERS_S = 10.0
READING_S = 30.0
LINGER_S = 2.0
#: What is read of an unwanted body, bytes.
LINGER_BYTES = 1024 * 1024
#: Longest line and headers of a request, bytes.
HEADER_BYTES = 32 * 1024
#: Most lines of a request before its body.
HEADER_LINES = 128
#: What strangers send that is no HTTP is answered, not written down: whoever sends it would fill the disk.
_silent = logging.getLogger("lodger.api.wire")
_silent.setLevel(logging.ERROR)
_END = re.compile(rb"\n\r?\n")


class Words(h11.Connection):
    """What a connection says, looked at before it is taken apart: twenty thousand short headers take h11 a tenth of a second, in which
    nobody else is served, and its own bound is for those that come in pieces.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Give what was said next.

        Raises:
            RemoteProtocolError: it is no HTTP/1.1, or its headers are too many.
        """
        if self.their_state is h11.IDLE:
            said = self.trailing_data[0]
            end = _END.search(said)
            length = end.end() if end else len(said)
            if length > HEADER_BYTES or said.count(b"\n", 0, length) > HEADER_LINES:
                raise h11.RemoteProtocolError("these headers are too many", error_status_hint=431)
        return super().next_event()


class Wire(H11Protocol):
    """One connection."""

    #: Connections that are held at once, three quarters of them of one address; set by the server, with whose are many people's.
    most = 2000
    held: ClassVar[Counter[str]] = Counter()
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = Words(h11.SERVER, HEADER_BYTES)
        self.logger = _silent
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._unwanted = 0
        self._from = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, or turn away what is too much."""
        super().connection_made(transport)
        self._from = network(self.client[0]) if self.client else ""
        self.held[self._from] += 1
        if len(self.connections) > self.most:
            self._say(503, "server_busy", "too many connections are open", "try again in a moment")
            return
        if self.held[self._from] > max(1, self.most * 3 // 4) and not self._of_many():
            self._say(503, "server_busy", "too many connections of your address are open", "end some of them")
            return
        self._late = self.loop.call_later(HEADERS_S, self._too_late)

    def _of_many(self) -> bool:
        try:
            address = ip_address(self.client[0] if self.client else "")
        except ValueError:
            return True  # a socket of this host's, which has no address
        return any(address in proxy for proxy in self.proxies)

    def data_received(self, data: bytes) -> None:
        """Take what came; while it is no whole request yet, the clock runs."""
        if self.transport.is_closing():
            return
        if self._lingering is not None:
            # Of a body that nobody wants the rest is read when it is short; a long one waits for its end outside.
            self._unwanted += len(data)
            if self._unwanted > LINGER_BYTES:
                self.transport.pause_reading()
                return
        super().data_received(data)
        if self._lingering is not None and self.conn.their_state is not h11.SEND_BODY:
            _off(self._lingering)
            self._lingering, self._unwanted = None, 0
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting:
            _off(self._late)
            self._late = None
        elif self._late is None and not self.transport.is_closing() and self._lingering is None:
            self._late = self.loop.call_later(HEADERS_S, self._too_late)

    def on_response_complete(self) -> None:
        """Go on, or let an unwanted body end: cut at once, its sender would never read the answer."""
        unwanted = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if unwanted and self._lingering is None and not self.transport.is_closing():
            self._lingering = self.loop.call_later(LINGER_S, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for a reader, but not for ever."""
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READING_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        _off(self._unread)
        self._unread = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End every wait."""
        _off(self._late, self._unread, self._lingering)
        self.held[self._from] -= 1
        if not self.held[self._from]:
            del self.held[self._from]
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def _too_late(self) -> None:
        self._late = None
        self._say(408, "request_too_slow", f"no whole request came within {HEADERS_S:g} seconds", "send it faster")

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP/1.1 request."""
        self._say(
            400, "http_invalid", msg, "send HTTP/1.1 as RFC 9112 says, with at most 32 KiB and 128 lines of headers"
        )

    def _say(self, status: int, code: str, what: str, fix: str) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        body = json.dumps(
            {"type": f"urn:lodger:error:{code}", "status": status, "code": code, "detail": what, "fix": fix}
        )
        headers = [
            *ALWAYS.items(),
            ("content-type", MEDIA),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        for event in (
            h11.Response(status_code=status, headers=[(name.encode(), value.encode()) for name, value in headers]),
            h11.Data(data=body.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _off(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
