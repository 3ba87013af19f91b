"""The server's side of a connection: uvicorn's strict HTTP/1.1 (h11), with patience that ends.

uvicorn alone waits for ever for a header that comes letter by letter, for a reader that does not read, and reads a body to its
end that nobody wants. h11 refuses what two readers could read differently (two lengths, other codings than chunks), the
envelope a length beside chunks; a folded line is one line, as RFC 9112 5.2 says.
"""

import asyncio
import json
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from lodger.engine.server.envelope import ALWAYS
from lodger.engine.server.head import HEADER_BYTES, shown, too_long
from lodger.engine.server.known import Known
from lodger.engine.server.porter import Porter
from lodger.engine.server.problems import MEDIA
from lodger.engine.server.turns import STRANGER

if TYPE_CHECKING:
    from lodger.engine.server.door import Guest

#: Seconds for a request's line and headers to arrive, for a reader to take what was written, for an unwanted body to end.
HEADERS_S = 10.0
READING_S = 30.0
LINGER_S = 2.0
#: What is read of an unwanted body, bytes.
LINGER_BYTES = 1024 * 1024
#: What is held of what somebody says while his turn to be heard has not come, bytes.
UNHEARD_BYTES = 64 * 1024
#: What strangers send that is no HTTP is answered, not written down: whoever sends it would fill the disk.
_silent = logging.getLogger("lodger.api.wire")
_silent.setLevel(logging.ERROR)


class Words(h11.Connection):
    """What a connection says, looked at before it is taken apart: twenty thousand short headers take h11 a tenth of a second, in which
    nobody else is served, and its own bound is for those that come in pieces.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Give what was said next.

        Raises:
            RemoteProtocolError: it is no HTTP/1.1, or its headers are too many.
        """
        if self.their_state is h11.IDLE and too_long(self.trailing_data[0]):
            raise h11.RemoteProtocolError("these headers are too many", error_status_hint=431)
        return super().next_event()


class Wire(H11Protocol):
    """One connection that was let in.

    Args:
        guest: who it is, with what was said at the door.
        porter: says when a request on it is begun.
        known: whose the tokens are.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        app_state: dict[str, Any],
        guest: "Guest",
        porter: Porter,
        known: Known,
    ) -> None:
        super().__init__(config, state, app_state)
        self.conn = Words(h11.SERVER, HEADER_BYTES)
        self.logger = _silent
        self._guest = guest
        self._porter = porter
        self._known = known
        self._unheard = bytearray()
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._unwanted = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin with what was said at the door, for which its turn has come."""
        super().connection_made(transport)
        said = self._guest.take()
        if said:
            self._hear(said)
        else:
            self._late = self.loop.call_later(HEADERS_S, self._too_late)

    def data_received(self, data: bytes) -> None:
        """Take what came: a request's beginning in its turn, what belongs to one that was begun at once."""
        if self.transport.is_closing():
            return
        if not self._unheard and not self._between():
            self._hear(data)
            return
        self._unset_keepalive_if_required()
        _off(self._late)
        self._late = None
        first = not self._unheard
        self._unheard += data
        if first:
            self._porter.offer(self._known.owner(shown(data)) or STRANGER + self._guest.address, self._heard)
        if len(self._unheard) > UNHEARD_BYTES:
            self.transport.pause_reading()

    def _between(self) -> bool:
        """Tell whether no request was begun."""
        idle = self.conn.our_state is h11.IDLE and self.conn.their_state is h11.IDLE
        return idle and not self.conn.trailing_data[0]

    def _heard(self) -> None:
        data = bytes(self._unheard)
        self._unheard.clear()
        if self.transport.is_closing():
            return
        if len(data) > UNHEARD_BYTES:
            self.transport.resume_reading()
        self._hear(data)

    def _hear(self, data: bytes) -> None:
        """Take bytes apart; while they are no whole request yet, the clock runs."""
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
        self._guest.leave()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def _too_late(self) -> None:
        self._late = None
        self._say(too_slow())

    def send_400_response(self, msg: str) -> None:
        """Tell what is no HTTP/1.1 request."""
        fix = "send HTTP/1.1 as RFC 9112 says, with at most 32 KiB and 128 lines of headers"
        self._say(words(400, "http_invalid", msg, fix))

    def _say(self, said: bytes) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        self.transport.write(said)
        self.conn.send_failed()  # nothing more is said, whoever is at work on an answer
        if self.cycle is not None:
            self.cycle.disconnected = True  # he is told so: an answer would raise, and be written down
            self.cycle.message_event.set()
        self.transport.close()

    def shutdown(self) -> None:
        """End, when the server does, what is not ending."""
        if not self.transport.is_closing():
            super().shutdown()


@lru_cache
def words(status: int, code: str, what: str, fix: str) -> bytes:
    """Give the bytes of an answer after which the connection ends."""
    body = json.dumps({"type": f"urn:lodger:error:{code}", "status": status, "code": code, "detail": what, "fix": fix})
    headers = [*ALWAYS.items(), ("content-type", MEDIA), ("content-length", str(len(body))), ("connection", "close")]
    lines = [f"HTTP/1.1 {status} ", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", body]).encode()


def too_slow() -> bytes:
    """Say that no whole request came in time."""
    return words(408, "request_too_slow", f"no whole request came within {HEADERS_S:g} seconds", "send it faster")


def _off(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
