"""Host side of ``fetch``: a request is validated and sent at the call; its response body is returned in chunks."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lodger.engine.capabilities.fetch_state import SAFE_METHODS, ResponseBody
from lodger.engine.capabilities.secrets import SecretHandles
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.access.grants import FETCH_DEFAULT, FetchLimits, Grants
from lodger.engine.core.execution import Answer
from lodger.engine.core.refusal import CallRefused, bad_request
from lodger.engine.egress import target
from lodger.engine.egress.headers import METHODS, checked
from lodger.engine.egress.request import Redirect, Request
from lodger.engine.egress.request_errors import Refused

MAX_URL = 8192
MAX_SENT = 512 * 1024
#: Maximum number of characters of JSON of a body's chunk.
MAX_CHUNK = 512 * 1024


async def fetch(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle http.fetch: send a request and return its response."""
    fetch_state, number = session.fetch_state, _number(given["id"])
    request = _request(session, given)
    if number in fetch_state.running or number in fetch_state.bodies:
        raise bad_request("the request number is already in use")
    handles = SecretHandles(request.url, request.headers, request.body)
    await handles.look_up(session)
    session.budgets.spend("fetches")
    key = fetch_state.key(request)
    if fetch_state.dry and request.method not in SAFE_METHODS:
        fetch_state.shown.append(_description(request, given, sent=False))
        return {"status": 200, "reason": "", "url": request.url, "redirected": False, "headers": [], "size": 0, "next": 0,
                "text": "", "notSent": True}  # fmt: skip
    if fetch_state.offline:
        fetch_state.shown.append(_description(request, given, sent=False))
        raise CallRefused("offline", "this dry run sends no requests, so the response is unknown")
    answer = await fetch_state.earlier_response(key)
    if answer is None:
        answer = await _send(session, replace(request, filled=handles.fill), key, number, handles.redacted)
    session.budgets.spend("fetch_bytes", len(request.body) + len(answer.body), happened=True)
    fetch_state.shown.append(_description(request, given, sent=True) | {"status": answer.status})
    return _first_chunk(session, number, answer)


async def more(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Handle http.more: return the next chunk of a body."""
    number, start = _number(given["id"]), _number(given["from"])
    part = session.fetch_state.bodies.get(number)
    if part is None or start >= len(part.body):
        raise bad_request("the body has no more data")
    if given["raw"]:
        part = ResponseBody(part.body, is_text=False)
    elif part.is_text and part.body[start] & 0xC0 == 0x80:
        raise bad_request("the position is inside a character")
    chunk = part.chunk_json(start, _chunk_size(session))
    if chunk["next"] == len(part.body):
        del session.fetch_state.bodies[number]
    return chunk


async def abort(session: Session, given: dict[str, Any]) -> None:
    """Handle http.abort: cancel a running request; a finished one is left unchanged."""
    task = session.fetch_state.running.get(_number(given["id"]))
    if task is not None:
        task.cancel()


async def _send(
    session: Session, request: Request, key: str, number: int, redacted: Callable[[Answer], Answer]
) -> Answer:
    """Send a request with an idempotency key and its secrets filled in."""
    fetch_state = session.fetch_state
    if request.method not in SAFE_METHODS and not any(name == "idempotency-key" for name, _ in request.headers):
        headers = (*request.headers, ("idempotency-key", fetch_state.idempotency_key(key)))
        request = replace(request, headers=headers)
    task = fetch_state.running[number] = asyncio.ensure_future(fetch_state.send_request(request, key, redacted))
    try:
        return await task
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if not task.cancelled() or (own is not None and own.cancelling()):
            task.cancel()
            raise
        raise CallRefused("aborted", "the request was aborted") from None
    finally:
        fetch_state.running.pop(number, None)


def _request(session: Session, given: dict[str, Any]) -> Request:
    """Return the request that a script describes, checked."""
    method, url = given["method"], given["url"]
    if method not in METHODS:
        raise bad_request(f"method must be one of: {', '.join(METHODS)}")
    if len(url) > MAX_URL:
        raise bad_request(f"a URL has at most {MAX_URL} characters")
    body = _body(given["body"])
    if body and method in ("GET", "HEAD"):
        raise bad_request(f"a {method} has no body")
    try:
        redirect = Redirect(given["redirect"] or "follow")
    except ValueError:
        raise bad_request("redirect must be follow, error or manual") from None
    limits = fetch_limits(session.claim.grants, url)
    left = session.budgets.left("fetch_bytes") - len(body)
    if left < 1:
        session.budgets.spend("fetch_bytes", len(body) + 1)
    return Request(
        method, url, checked(given["headers"]), body, redirect, allowed=session.claim.grants.of_fetch, payer=session.claim.tenant_id,
        total_s=limits.total_s,
        late=f"no complete answer came within {limits.total_s:g} s; a grant allows more, such as fetch:HOST,120s",
        max_body=max(1, min(limits.body_bytes, left)),
    )  # fmt: skip


def fetch_limits(grants: Grants, url: str) -> FetchLimits:
    """Return the limits of a request to a URL; the default ones if the request will be refused."""
    try:
        return grants.fetch_limits(target.read(url).origin) or FETCH_DEFAULT
    except Refused:
        return FETCH_DEFAULT


def _body(given: Any) -> bytes:
    """Return the bytes of a request's body, which the script gives as text or tagged bytes."""
    if given is None:
        return b""
    body = given.encode() if isinstance(given, str) else strict_json.read_bytes(given)
    if len(body) > MAX_SENT:
        raise bad_request(f"a body has at most {MAX_SENT} bytes")
    return body


def _number(given: Any) -> int:
    """Return the number by which a script names one of its requests, checked."""
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < 2**31:
        raise bad_request("there is no request with this number")
    return given


def _chunk_size(session: Session) -> int:
    """Bytes of a response body that one answer to the script may carry."""
    return max(1024, min(MAX_CHUNK, session.fetch_state.frame_bytes // 2))


def _first_chunk(session: Session, number: int, answer: Answer) -> dict[str, Any]:
    """Return a response as the script gets it, with the first chunk of its body; the rest is kept for ``http.more``."""
    part = ResponseBody.of(answer.body)
    chunk = {name: getattr(answer, name) for name in ("status", "reason", "url", "redirected", "headers")}
    chunk |= {"size": len(answer.body)} | part.chunk_json(0, _chunk_size(session))
    if chunk["next"] < len(answer.body):
        session.fetch_state.bodies[number] = part
    return chunk


def _description(request: Request, given: dict[str, Any], *, sent: bool) -> dict[str, Any]:
    """Describe a request for people."""
    about: dict[str, Any] = {"effect": "fetch", "method": request.method, "url": request.url, "sent": sent}
    if not sent and request.body:
        about["body"] = request.body.decode("utf-8", "replace")[:2000]
    return about | ({"line": given["line"]} if given["line"] else {})


HANDLERS = {"http.fetch": fetch, "http.more": more, "http.abort": abort}
