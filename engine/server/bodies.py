"""Request bodies: bounded in bytes and time, one by one and all together; JSON is checked for depth and size before it is parsed."""

import asyncio
import email.message
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from lodger.engine.core.settings import Settings
from lodger.engine.server.openapi import RequestModel
from lodger.engine.server.problems import Refused, field_errors, not_valid
from lodger.engine.server.rate_limits import Threads
from lodger.sandbox.prescan import JsonRefused, parse

M = TypeVar("M", bound=RequestModel)
#: Deepest nesting of a JSON body, and most values in one, keys included: more than an input of 256 KiB can hold.
MAX_DEPTH, MAX_VALUES = 64, 150_000
#: Bodies up to so many bytes are parsed in the event loop; two longer ones at once in threads, one of each tenant or token.
SMALL, PARSED_AT_ONCE = 16 * 1024, 2
#: Bytes of all bodies that are in memory at once; more where one upload may be larger. One tenant or token may hold half of them.
MAX_HELD = 128 * 1024 * 1024
#: Bytes of a body that are always accepted.
FREE = 64 * 1024


class Bodies:
    """Reads bodies. One object for all requests of a process, because all bodies share its memory."""

    def __init__(self, settings: Settings) -> None:
        self._max_json = settings.api_body_bytes
        self._max_upload = settings.api_upload_bytes
        self._timeout_s = settings.api_body_s
        self._max_held = max(MAX_HELD, 2 * settings.api_upload_bytes)
        self._held: Counter[str] = Counter()
        self._parsing = Threads(PARSED_AT_ONCE, 1, max_waiting=None)

    @property
    def held(self) -> int:
        """Bytes of all bodies that are in memory now."""
        return self._held.total()

    @asynccontextmanager
    async def read(
        self, request: Request, key: str, *, upload: bool = False, max_bytes: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the whole body; it counts as held until the block ends.

        Args:
            key: the tenant or token that the body counts for.
            upload: an archive or module, which may be longer than JSON.
            max_bytes: maximum size of this route's bodies, bytes, if it is lower than that of JSON.

        Raises:
            Refused: body_too_large, body_too_slow, body_cut, server_busy.
        """
        limit = self._max_upload if upload else min(self._max_json, max_bytes or self._max_json)
        declared = request.headers.get("content-length")
        if declared is not None and int(declared) > limit:  # the server has checked that it is a number
            raise too_large(limit)
        body = bytearray()
        try:
            await self._receive(request, key, limit, body)
            yield bytes(body)
        finally:
            self._held[key] -= len(body)
            if self._held[key] <= 0:
                del self._held[key]

    async def _receive(self, request: Request, key: str, limit: int, body: bytearray) -> None:
        """Receive a body up to its limit, within its time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                async for chunk in request.stream():
                    if len(body) + len(chunk) > limit:
                        raise too_large(limit)
                    self._hold(key, len(body), len(chunk))
                    body += chunk
        except TimeoutError:
            raise too_slow(self._timeout_s) from None
        except ClientDisconnect:
            raise Refused(400, "body_cut") from None

    def _hold(self, key: str, before: int, count: int) -> None:
        """Reserve memory for a part of a body of a tenant or token; raises Refused (server_busy)."""
        if before + count > FREE and (
            self.held + count > self._max_held or self._held[key] + count > self._max_held // 2
        ):
            raise Refused(503, "server_busy.bodies", headers={"Retry-After": "1", "Connection": "close"})
        self._held[key] += count

    async def json(self, request: Request, model: type[M], body: bytes, key: str) -> M:
        """Return a JSON body as its route's model.

        Args:
            key: the tenant or token that the threads are counted for.

        Raises:
            Refused: media_type, request_invalid, json_….
        """
        if not body.strip():
            body = b"{}"
        elif media(request) != "application/json":
            raise Refused(415, "media_type")
        elif (charset := str(_content_type(request).get_param("charset", "utf-8")).lower()) not in ("utf-8", "utf8"):
            raise Refused(415, "media_type.charset", charset=charset[:40])
        if len(body) <= SMALL:
            return self._parsed(body, model)
        return await self._parsing.run(key, lambda: self._parsed(body, model))

    def _parsed(self, body: bytes, model: type[M]) -> M:
        """Return the JSON value of a body, checked."""
        try:
            value = parse(body, max_bytes=self._max_json, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
        except JsonRefused as refused:
            if refused.code == "too_many_values":
                raise Refused(413, "json_too_many_values", maximum=MAX_VALUES) from None
            status = 413 if refused.code == "too_large" else 400
            raise Refused(status, f"json_{refused.code}", reason=refused) from None
        if not isinstance(value, dict):
            raise Refused(400, "request_invalid.body")
        try:
            return model.model_validate_json(body, strict=True)
        except ValidationError as wrong:
            raise not_valid(field_errors(wrong), "body", value, model.model_fields) from None


def media(request: Request) -> str:
    """Return the media type of a request's body in lower case, without parameters; empty without one."""
    message = _content_type(request)
    return message.get_content_type() if message["content-type"] else ""


def _content_type(request: Request) -> email.message.Message:
    """Return a message with the content type of a request."""
    message = email.message.Message()
    message["content-type"] = request.headers.get("content-type", "")
    return message


def too_large(limit: int) -> Refused:
    """Return the refusal of a body that is too large; the connection ends, because the rest is not read."""
    return Refused(413, "body_too_large", limit=limit, headers={"Connection": "close"}, details={"limit": limit})


def too_slow(timeout_s: float) -> Refused:
    """Return the refusal of a body that did not arrive in time."""
    return Refused(408, "body_too_slow", seconds=timeout_s, headers={"Connection": "close"})
