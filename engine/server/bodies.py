"""Reads bodies: bounded in bytes and time, one by one and all together; JSON is looked at before anything parses it."""

import asyncio
import email.message
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from anyio import to_thread
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from lodger.engine.server.models import Taken
from lodger.engine.server.problems import Refused, not_valid
from lodger.engine.server.room import Place, Room
from lodger.engine.server.sieve import VALUES, looked
from lodger.engine.server.turns import Turns, whose
from lodger.sandbox.prescan import JsonRefused

M = TypeVar("M", bound=Taken)
#: Bodies up to so many bytes are parsed where they are read; of longer ones so many are worked with at once, in threads, one of each
#: name.
SMALL, HEAVY = 16 * 1024, 2


class Bodies:
    """Reads bodies within ``most`` bytes and ``patience_s`` seconds each, all of them within ``room``.

    Args:
        look: tells whether a long body is a JSON object, within how many bytes, as :func:`lodger.engine.server.sieve.looked`.
    """

    def __init__(self, most: int, patience_s: float, room: Room, look: Callable[[bytes, int], bool] = looked) -> None:
        self._most = most
        self._patience_s = patience_s
        self._room = room
        self._look = look
        self._heavy = Turns(HEAVY, 1)

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Give the whole body; it has its place in the room until the block ends.

        Raises:
            Refused: body_too_large, body_too_slow, body_cut, server_busy.
        """
        declared = request.headers.get("content-length")
        if declared is not None and int(declared) > self._most:  # the server has checked that it is a number
            raise too_large(self._most)
        with self._room.place(whose.get()) as place:
            yield await self._arrived(request, place)

    async def _arrived(self, request: Request, place: Place) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience_s) as patience:
                async for chunk in request.stream():
                    if len(body) + len(chunk) > self._most:
                        raise too_large(self._most)
                    # What it waits for others is not its sender's slowness.
                    end_s = patience.when() or 0.0
                    patience.reschedule(None)
                    patience.reschedule(end_s + await place.add(len(chunk)))
                    body += chunk
        except TimeoutError:
            raise too_slow(self._patience_s) from None
        except ClientDisconnect:
            raise Refused(400, "body_cut", "the request ended before its body did", fix="send it again") from None
        return bytes(body)

    @asynccontextmanager
    async def json(self, request: Request, model: type[M], body: bytes, *, long: bool = False) -> AsyncIterator[M]:
        """Give a body as what a route takes, for as long as it is worked with: of large ones only so many at once.

        Args:
            long: the work takes seconds, and is bounded by others: the next large body does not wait for it.

        Raises:
            Refused: media_type, request_invalid, and those of JSON that is not let through.
        """
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
            yield self._parsed(body, model, looked)
            return
        # A megabyte of small objects takes a quarter of a second, which nobody else is to wait for, and sixty megabytes.
        async with AsyncExitStack() as heavy:
            await heavy.enter_async_context(self._heavy.turn(whose.get()))
            found = await to_thread.run_sync(self._parsed, body, model, self._look)
            if long:
                await heavy.aclose()
            yield found

    def _parsed(self, body: bytes, model: type[M], look: Callable[[bytes, int], bool]) -> M:
        try:
            of_object = look(body, self._most)
        except JsonRefused as refused:
            if refused.code == "too_many_values":
                raise Refused(
                    413,
                    "json_too_many_values",
                    f"a body here has at most {VALUES} values",
                    why="each takes a hundred times the memory of its letters",
                    fix="send it as text, or in parts",
                ) from None
            raise Refused(
                413 if refused.code == "too_large" else 400,
                f"json_{refused.code}",
                f"the body is not taken: {refused}",
                why="a body is one JSON object, without duplicate keys, NaN, or deep nesting",
                fix="mend the JSON",
            ) from None
        if not of_object:
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
