"""What is around every request: its id, the headers of every answer, and the last resort when nobody else has answered."""

import re
import secrets
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lodger.engine.server.problems import Refused, problem

_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)

#: Of every answer: nothing of it is kept by anybody, framed, sniffed or run.
ALWAYS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
}


class Envelope:
    """The outermost layer. A request's id is the caller's when it is a sane one, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _SANE.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                answered = MutableHeaders(scope=message)
                answered["x-request-id"] = request_id
                for name, value in ALWAYS.items():
                    answered.setdefault(name, value)
                if scope.get("scheme") == "https":
                    answered.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        try:
            _unambiguous(headers)
            _readable(scope)
            await self._app(scope, receive, sending)
        except Exception as error:
            if begun:
                raise  # half an answer is out: the server cuts the connection
            await problem(error)(scope, receive, sending)


def _unambiguous(headers: Headers) -> None:
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refused(
            400,
            "http_ambiguous",
            "this request has a length and chunks",
            why="two readers on its way could see two different requests",
            fix="send Content-Length or Transfer-Encoding",
            headers={"Connection": "close"},
        )


def _readable(scope: Scope) -> None:
    """Refuse what is no text: two readers would put different letters in its place."""
    segments = [unquote_to_bytes(segment) for segment in scope["raw_path"].split(b"/")]
    if any(segment in {b".", b".."} or b"/" in segment or b"\\" in segment for segment in segments):
        raise Refused(
            400,
            "path_invalid",
            "this address climbs, or hides a slash in a name",
            why="a reader on its way could take it for another",
            fix="no name has / or \\, or is . or ..",
        )
    for part in (scope["raw_path"], scope["query_string"]):
        try:
            unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            raise Refused(
                400, "path_invalid", "this address is not UTF-8", fix="percent-encode the UTF-8 bytes of each name"
            ) from None


def request_id(scope: dict[str, Any]) -> str:
    """Give the request's id."""
    return str(scope["state"]["request_id"])
