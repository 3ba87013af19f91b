"""Requests of one attempt: sent ones, their responses, and the responses kept from earlier attempts of the step.

An attempt that is repeated after a conflict gets the responses of the earlier one, in the order of equal requests;
other requests are sent. This module does not access a network: ``send`` does.
"""

import asyncio
import hashlib
import json
import logging
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

from lodger.engine.core.execution import Answer, Claim, Fetched
from lodger.engine.core.refusal import CallRefused
from lodger.engine.egress import target
from lodger.engine.egress.request import Request
from lodger.engine.egress.request_errors import NoAnswer, Refused
from lodger.sandbox.outcome import Outcome

#: Maximum number of concurrent requests of one attempt; others wait.
MAX_CONCURRENT = 6
#: Part of the attempt's remaining wall time that a request may take; the rest lets the script handle ``fetch_timeout``.
SHARE_OF_WALL = 0.9
#: Methods without effects: they are sent in trials too, and need no idempotency key.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_log = logging.getLogger("lodger.egress")

Send = Callable[[Request], Awaitable[Answer]]


async def no_responses() -> dict[str, Answer]:
    """Return no responses: for attempts without an earlier one."""
    return {}


@dataclass(slots=True)
class FetchState:
    """State of one attempt's requests.

    Attributes:
        send: sends a request; None if requests are not allowed.
        earlier: returns the responses of earlier attempts, by key.
        dry: requests with effects are described and not sent.
        offline: no request is sent: those with effects are described, others are refused.
        frame_bytes: maximum size of one answer to the script.
        slots: what a request or a call of the platform holds while it is under way.
        end_s: end of the attempt's wall time, on the event loop's clock; None if unlimited.
    """

    tenant_id: str
    action_id: str
    step: int
    send: Send | None = None
    earlier: Callable[[], Awaitable[dict[str, Answer]]] = no_responses
    dry: bool = False
    offline: bool = False
    frame_bytes: int = 1024 * 1024
    end_s: float | None = None
    fetched: list[Fetched] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    sent: int = 0
    moved_bytes: int = 0
    bodies: dict[int, "ResponseBody"] = field(default_factory=dict)
    running: dict[int, asyncio.Task[Answer]] = field(default_factory=dict)
    on_lost: Callable[[int], None] = lambda _moved: None
    _in_flight: list[Request] = field(default_factory=list)
    _earlier: dict[str, Answer] | None = None
    _counts: Counter[str] = field(default_factory=Counter)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT))

    @classmethod
    def of(cls, claim: Claim, send: Send | None = None, **more: Any) -> Self:
        """Return the initial state of the requests of an attempt."""
        dry = claim.trial and not claim.fetches
        return cls(claim.tenant_id, claim.action_id, claim.step, send, dry=dry, offline=claim.offline, **more)

    def key(self, request: Request) -> str:
        """Return the key of a request in its step: a hash of its content and of the number of equal requests before it."""
        chunk_json = json.dumps([request.method, request.url, request.headers, request.redirect.value])
        alike = hashlib.sha256(chunk_json.encode("utf-8", "surrogatepass") + b"\0" + request.body).hexdigest()
        self._counts[alike] += 1
        return hashlib.sha256(f"{alike} {self._counts[alike]}".encode()).hexdigest()

    def idempotency_key(self, key: str) -> str:
        """Return an Idempotency-Key: the same for every attempt of this step, and unique to it."""
        made = hashlib.sha256(f"{self.tenant_id}\0{self.action_id}\0{self.step}\0{key}".encode()).hexdigest()
        return str(UUID(made[:32]))

    async def earlier_response(self, key: str) -> Answer | None:
        """Return the response that an earlier attempt got, None if there is none."""
        if self._earlier is None:
            self._earlier = await self.earlier()
        return self._earlier.get(key)

    async def send_request(self, request: Request, key: str, redacted: Callable[[Answer], Answer]) -> Answer:
        """Send a request as soon as a slot is free; its response is passed through ``redacted``.

        Raises:
            CallRefused: the error for the script.
        """
        if self.send is None:
            raise CallRefused(Refused.code, Refused.message, outcome=Outcome.DENIED)
        async with self.slots:
            self.sent += 1
            if self.end_s is not None:
                left_s = self.end_s - asyncio.get_running_loop().time()
                share_s = max(0.0, left_s * SHARE_OF_WALL)
                if share_s < request.total_s:
                    late = f"no complete answer came within {share_s:.1f} s, nine tenths of what was left of the run's wall_ms"
                    request = replace(request, total_s=share_s, late=late)
            self._in_flight.append(request)
            try:
                answer = redacted(await self.send(request))
            except NoAnswer as none:
                self.moved_bytes += request.moved.so_far
                self.on_lost(request.moved.so_far)
                host, refused = target.host_of(request.url), isinstance(none, Refused)
                level = logging.WARNING if refused else logging.INFO
                _log.log(
                    level, "%s %r of tenant %s: %s: %s", request.method, host, self.tenant_id, none.code, none.reason
                )
                denied = Outcome.DENIED if refused else None
                raise CallRefused(none.code, none.message, outcome=denied) from none
            except asyncio.CancelledError:
                if any(each is request for each in self._in_flight):
                    self.on_lost(request.moved.so_far)
                raise
            finally:
                self._in_flight = [each for each in self._in_flight if each is not request]
        self.moved_bytes += answer.sent_bytes + answer.received_bytes
        self.fetched.append(Fetched(key, answer))
        return answer

    def count_abandoned(self) -> None:
        """Count the bytes of requests that still run at the end of the attempt."""
        for request in self._in_flight:
            self.on_lost(request.moved.so_far)
        self._in_flight = []


@dataclass(slots=True)
class ResponseBody:
    """A response body that is returned to the script in chunks, as text if it is text."""

    body: bytes
    is_text: bool

    @classmethod
    def of(cls, body: bytes) -> "ResponseBody":
        """Return the body; it is text if it is UTF-8 without a byte order mark."""
        try:
            body.decode()
        except UnicodeDecodeError:
            return cls(body, is_text=False)
        return cls(body, is_text=not body.startswith(b"\xef\xbb\xbf"))

    def chunk_json(self, start: int, max_characters: int) -> dict[str, Any]:
        """Return the chunk that begins at a byte and fits into ``max_characters`` bytes of JSON; ``next`` is the start of the rest."""
        size = min(len(self.body) - start, max_characters * 3 // 4)
        while True:
            end = start + size
            while self.is_text and end < len(self.body) and self.body[end] & 0xC0 == 0x80:
                end -= 1
            chunk = self.body[start:end]
            chunk_json = {"text": chunk.decode()} if self.is_text else {"bytes": b64encode(chunk).decode()}
            if len(json.dumps(chunk_json, ensure_ascii=False).encode()) <= max_characters or size <= 4:
                return chunk_json | {"next": end}
            size //= 2
