"""Reads bodies: bounded in bytes and time, one by one and all together; JSON is looked at before anything parses it."""

import asyncio
import email.message
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from lodger.engine.api.models import Taken
from lodger.engine.api.problems import Refused, not_valid
from lodger.sandbox.prescan import JsonRefused, parse, values

M = TypeVar("M", bound=Taken)
#: Deepest nesting of a JSON body.
DEPTH = 64
#: All bodies that are in memory at once, bytes.
TOGETHER = 128 * 1024 * 1024
#: Bodies up to so many bytes are parsed where they are read; of longer ones so many are worked with at once, in threads.
SMALL, HEAVY = 16 * 1024, 2
#: Most values of a JSON body, keys included: more than an input of 256 KiB can hold.
VALUES = 150_000


class Bodies:
    """Reads bodies within ``most`` bytes and ``patience_s`` seconds each."""

    def __init__(self, most: int, patience_s: float) -> None:
        self._most = most
        self._patience_s = patience_s
        self._held = 0
        self._heavy: CapacityLimiter | None = None

    async def read(self, request: Request, most: int | None = None) -> bytes:
        """Give the whole body.

        Raises:
            Refused: body_too_large, body_too_slow, server_busy.
        """
        limit = self._most if most is None else most
        declared = request.headers.get("content-length")
        if declared is not None and int(declared) > limit:  # the server has checked that it is a number
            raise too_large(limit)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._patience_s):
                async for chunk in request.stream():
                    size += len(chunk)
                    self._held += len(chunk)
                    if size > limit:
                        raise too_large(limit)
                    if self._held > TOGETHER:
                        raise Refused(
                            503,
                            "server_busy",
                            "too many large requests arrive at once",
                            fix="try again in a moment",
                            headers={"Retry-After": "1", "Connection": "close"},
                        )
                    chunks.append(chunk)
        except TimeoutError:
            raise too_slow(self._patience_s) from None
        except ClientDisconnect:
            raise Refused(400, "body_cut", "the request ended before its body did", fix="send it again") from None
        finally:
            self._held -= size
        return b"".join(chunks)

    @asynccontextmanager
    async def json(self, request: Request, model: type[M]) -> AsyncIterator[M]:
        """Give the body as what a route takes, for as long as it is worked with: of large ones only so many at once.

        Raises:
            Refused: media_type, request_invalid, and those of :meth:`read` and of JSON that is not let through.
        """
        body = await self.read(request)
        if not body.strip():
            body = b"{}"
        elif media(request) != "application/json":
            raise Refused(
                415,
                "media_type",
                "this body is not said to be JSON",
                fix="send Content-Type: application/json",
            )
        if len(body) <= SMALL:
            yield self._parsed(body, model)
            return
        if self._heavy is None:
            self._heavy = CapacityLimiter(HEAVY)
        # A megabyte of small objects takes a quarter of a second, which nobody else is to wait for, and sixty megabytes.
        async with self._heavy:
            yield await to_thread.run_sync(self._parsed, body, model)

    def _parsed(self, body: bytes, model: type[M]) -> M:
        if len(body) > VALUES and values(body) > VALUES:
            raise Refused(
                413,
                "json_too_many_values",
                f"a body here has at most {VALUES} values",
                why="each takes a hundred times the memory of its letters",
                fix="send it as text, or in parts",
            )
        try:
            value = parse(body, max_bytes=self._most, max_depth=DEPTH)
        except JsonRefused as refused:
            raise Refused(
                413 if refused.code == "too_large" else 400,
                f"json_{refused.code}",
                f"the body is not taken: {refused}",
                why="a body is one JSON object, without duplicate keys, NaN, or deep nesting",
                fix="mend the JSON",
            ) from None
        if not isinstance(value, dict):
            raise Refused(
                400, "request_invalid", "the body is no JSON object", fix='send an object, such as {"name": "…"}'
            )
        try:
            return model.model_validate_json(body, strict=True)
        except ValidationError as wrong:
            raise not_valid(wrong, "body") from None


def media(request: Request) -> str:
    """Give the media type of a request's body, in small letters, without parameters."""
    message = email.message.Message()
    message["content-type"] = request.headers.get("content-type", "")
    return message.get_content_type() if request.headers.get("content-type") else ""


def too_large(limit: int) -> Refused:
    """Say that a body is too large; the connection ends, because the rest of it is not read."""
    return Refused(
        413,
        "body_too_large",
        f"a body here has at most {limit} bytes",
        fix="send less, or ask the operator for more",
        headers={"Connection": "close"},
        limit=limit,
    )


def too_slow(patience_s: float) -> Refused:
    """Say that a body did not arrive in time."""
    return Refused(
        408,
        "body_too_slow",
        f"the body did not arrive within {patience_s:g} seconds",
        fix="send it faster, or in smaller parts",
        headers={"Connection": "close"},
    )
