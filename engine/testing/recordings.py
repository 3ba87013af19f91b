"""Recorded responses in place of the network, by payer: a request gets the next recording of its method, URL and body."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lodger.engine.core.errors import InputError
from lodger.engine.core.execution import Answer
from lodger.engine.core.settings import Settings
from lodger.engine.egress import target
from lodger.engine.egress.request import Request
from lodger.engine.egress.request_errors import NoAnswer, Refused, TooLarge
from lodger.engine.egress.way_out import WayOut

#: Members of a recording, and the most of them for one payer.
MEMBERS = ("url", "method", "requestBody", "status", "headers", "json", "body", "base64")
MAX_RECORDINGS = 10_000


class NotRecorded(NoAnswer):
    """There is no recording of a request."""

    code = "fetch_not_recorded"

    def __init__(self, request: Request) -> None:
        super().__init__("no recording")
        self.message = f"there is no recording of {request.method} {request.url[:300]}"


def check_recordings(recordings: object) -> list[dict[str, Any]]:
    """Return recorded responses once their form is checked.

    Raises:
        InputError: recording_invalid.
    """
    if not isinstance(recordings, list) or len(recordings) > MAX_RECORDINGS:
        raise InputError("recording_invalid.list", maximum=MAX_RECORDINGS)
    for each in recordings:
        if not isinstance(each, dict) or not isinstance(each.get("url"), str):
            raise InputError("recording_invalid.url", recording=str(each)[:100])
        if unknown := [name for name in each if name not in MEMBERS]:
            raise InputError("recording_invalid.member", member=unknown[0])
        _body(each)
        if not isinstance(each.get("status", 200), int) or not isinstance(each.get("headers", {}), dict):
            raise InputError("recording_invalid.type", url=each["url"][:100])
    return recordings


def _body(recording: Mapping[str, Any]) -> bytes:
    """Return the body of a recorded response."""
    if "json" in recording:
        return json.dumps(recording["json"], ensure_ascii=False).encode()
    try:
        given = recording.get("base64")
        return str(recording.get("body", "")).encode() if given is None else base64.b64decode(given, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InputError("recording_invalid.base64") from None


class Recordings(WayOut):
    """Answers requests from recordings; with ``live`` it sends others, and keeps their responses as recordings.

    Args:
        settings: as of :class:`WayOut`.
        live: whether requests without a recording are sent.
    """

    def __init__(self, settings: Settings, *, live: bool = False) -> None:
        super().__init__(settings)
        self._live = live
        self._left: dict[str, list[dict[str, Any]]] = {}
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        #: Requests by payer, in order; and the responses that were received from the network.
        self.sent: dict[str, list[dict[str, Any]]] = {}
        self.received: list[dict[str, Any]] = []

    def give(self, payer: str, recordings: Iterable[dict[str, Any]]) -> None:
        """Set the recordings that answer the requests of a payer."""
        self._left[payer] = list(recordings)

    async def send(self, request: Request) -> Answer:
        """Answer a request under the same grants as a sent one.

        Raises:
            NoAnswer: the host is not granted; NotRecorded.
        """
        asked = target.read(request.url)
        if not request.allowed(asked.origin):
            raise Refused(f"{asked.origin} is not granted")
        request.filled(asked, request.headers, request.body)
        found = self._next(request)
        if found is None and not self._live:
            raise NotRecorded(request)
        answer = await super().send(request) if found is None else _answer(request, found)
        if found is None:
            self.received.append(_recording(request, answer))
        self.sent.setdefault(request.payer, []).append({
            "method": request.method, "url": request.url, "body": request.body.decode("utf-8", "replace"), "status": answer.status,
        })  # fmt: skip
        return answer

    def _next(self, request: Request) -> dict[str, Any] | None:
        """Return the next recording of a request; the last one again when there is no other."""
        left, key = self._left.get(request.payer, []), (request.payer, f"{request.method} {request.url}")
        for at, each in enumerate(left):
            body = each.get("requestBody")
            asked = each["url"] == request.url and each.get("method", "GET") == request.method
            if asked and (body is None or body.encode() == request.body):
                self._last[key] = left.pop(at)
                break
        return self._last.get(key)


def _answer(request: Request, recording: Mapping[str, Any]) -> Answer:
    """Return a recorded response as the answer to a request."""
    body = _body(recording)
    if len(body) > request.max_body:
        raise TooLarge.than(request.max_body)
    headers = [(str(name).lower(), str(value)) for name, value in recording.get("headers", {}).items()]
    if "json" in recording and not any(name == "content-type" for name, _value in headers):
        headers.append(("content-type", "application/json"))
    status = int(recording.get("status", 200))
    return Answer(status, "", request.url, tuple(headers), body, False, len(request.body), len(body))


def _recording(request: Request, answer: Answer) -> dict[str, Any]:
    """Return a received response as a recording."""
    made: dict[str, Any] = {"method": request.method, "url": request.url}
    if request.body and not request.trusted:  # the call of a platform's function holds ids of the run
        made["requestBody"] = request.body.decode("utf-8", "replace")
    kept = {name: value for name, value in answer.headers if name in {"content-type", "link", "etag", "retry-after"}}
    made |= {"status": answer.status, "headers": kept}
    try:
        text = answer.body.decode()
    except UnicodeDecodeError:
        return made | {"base64": base64.b64encode(answer.body).decode()}
    return made | {"body": text}
