"""An operation as a request, and an answer as its result, for both clients: which server, what is sent, when it is sent again. No I/O."""

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, get_args
from urllib.parse import quote, urlsplit

from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.core.version import VERSION
from lodger.engine.features import TABLE
from lodger.engine.service.operations.declaration import UNCHANGED
from lodger.engine.service.operations.proxy import signature
from lodger.engine.service.operations.route import ROOT, Route
from lodger.engine.service.operations.table import Operation
from lodger.engine.store.records import Action, Page
from lodger.sandbox.job import LogLine

SERVER, TOKEN = "LODGER_SERVER", "LODGER_TOKEN"
#: Seconds for a connection, and for an answer; a dry run may take as long as its limits allow.
CONNECT_S, ANSWER_S = 10.0, 330.0
#: Longest silence of a stream that lives, seconds: the server says that it does every fifteen.
SILENCE_S = 60.0
#: Maximum size of an answer, unpacked: a server that lies ends here, not in all the memory of this machine.
MAX_ANSWER_BYTES = 256 << 20
KINDS: dict[str, type[Action] | type[LogLine]] = {"action": Action, "log": LogLine}
#: Statuses after which the same request may be sent again, with its own idempotency key.
AGAIN = {429, 502, 503, 504}
#: How often a request is sent, and the longest wait between two times, seconds.
TRIES = 4
LONGEST_S = 5.0


def connection(url: str | None, token: str | None) -> tuple[str, dict[str, str]]:
    """Return the server's address and the headers of every request.

    Raises:
        InputError: server_missing, server_invalid, token_missing.
    """
    url = (url or os.environ.get(SERVER, "")).rstrip("/").removesuffix("/api/v1")
    token = token or os.environ.get(TOKEN, "")
    if not url:
        raise InputError("server_missing", setting=SERVER)
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise InputError("server_invalid", url=url)
    if not token or not token.isascii() or not token.isprintable():
        raise InputError("token_missing.client", setting=TOKEN)
    return url, {"authorization": f"Bearer {token}", "user-agent": f"lodger/{VERSION}"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``path`` is percent-encoded; ``again`` says whether it may be sent more than once."""

    route: Route
    path: str
    query: dict[str, str | list[str]]
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)

    @property
    def again(self) -> bool:
        """Whether it may be sent twice without being carried out twice."""
        return not self.route.changes or "idempotency-key" in self.headers


def arguments_of(operation: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, without those that were left out. Raises TypeError as the verb itself would."""
    given = signature(operation.function).bind(*args, **kwargs).arguments
    return {name: value for name, value in given.items() if value is not UNCHANGED}


def build(operation: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request:
    """Return the request of an operation.

    Raises:
        InputError: verb_local, instant_naive.
    """
    arguments = arguments_of(operation, args, kwargs)
    route = _route(operation, arguments)
    path = ROOT + route.path
    for parameter in route.at("path"):
        path = path.replace(f"{{{parameter.name}}}", _segment(parameter.name, str(arguments.pop(parameter.name))))
    headers = _headers(route)
    content = None
    if route.raw:
        content = arguments.pop(route.raw)
        headers["content-type"] = route.media
    query: dict[str, str | list[str]] = {}
    body: dict[str, Any] = {}
    for name, value in arguments.items():
        if any(each.name == name for each in route.at("body")):
            body[name] = _json(value)
        elif value is not None:
            query[name] = [_text(each) for each in value] if isinstance(value, list | tuple) else _text(value)
    if route.at("body"):
        content = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    return Request(route, path, query, headers, content)


def _segment(what: str, name: str) -> str:
    """Return a name as one segment of a path."""
    if name in {"", ".", ".."} or "/" in name or "\\" in name:
        raise InputError("name_invalid.segment", thing=what, name=name)
    return quote(name, safe="")


def _route(operation: Operation, arguments: Mapping[str, Any]) -> Route:
    for route in TABLE.routes_of(operation.name):
        known = all(arguments.get(each.name) is not None for each in route.at("path"))
        if known and (route.raw is not None) == isinstance(arguments.get(route.raw or "source"), bytes | bytearray):
            return route
    raise InputError(
        "verb_local.client",
        operation=operation.name,
        reason=operation.declared.local or "the HTTP API has no route for them",
    )


def _headers(route: Route) -> dict[str, str]:
    headers = {"accept": "application/json"}
    why = current_audit_context().why
    if route.changes:
        if why:
            headers["lodger-why"] = quote(why, safe=" ")
        if not route.secret:
            headers["idempotency-key"] = str(uuid.uuid4())
    return headers


def _json(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, datetime):
        to_us(value)  # a naive one is no instant
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return to_jsonable(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(_json(value))


def export_path(tenant_id: str | None, since: datetime | None, until: datetime | None) -> tuple[str, dict[str, str]]:
    """Return path and query of the audit log as lines."""
    prefix = "" if tenant_id is None else f"/tenants/{quote(tenant_id, safe='')}"
    bounds = {"since": since, "until": until}
    return f"{ROOT}{prefix}/audit/export", {name: _text(value) for name, value in bounds.items() if value is not None}


def first_page(sent: Request, limit: int) -> Request:
    """Return the request for the first page."""
    return Request(sent.route, sent.path, sent.query | {"limit": str(limit)}, sent.headers, sent.content)


def next_page(sent: Request, cursor: str, limit: int) -> Request:
    """Return the request for the page that a cursor names."""
    query = sent.query | {"cursor": cursor, "limit": str(limit)}
    return Request(sent.route, sent.path, query, sent.headers, sent.content)


def page_limit(operation: Operation, arguments: Mapping[str, Any]) -> int | None:
    """Return how many entries of a list are wanted; None for all."""
    limit: int | None = arguments.get("limit", signature(operation.function).parameters["limit"].default)
    return limit


def result_of(route: Route, content: bytes) -> Any:
    """Return the result that a success carries.

    Raises:
        Unavailable: answer_unreadable.
    """
    if route.kind == "nothing":
        return None
    if route.kind == "bytes":
        return content
    try:
        body = json.loads(content)
        if route.kind == "page":
            (entry,) = get_args(route.answer)
            return Page((from_jsonable(entry, item) for item in body["items"]), body["next"])
        return from_jsonable(route.answer, body)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable("answer_unreadable", reason=str(error)[:300]) from error


class Body:
    """Collects the parts of an answer."""

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, part: bytes) -> None:
        """Add a part.

        Raises:
            Unavailable: answer_unreadable, if there are too many.
        """
        self._held += part
        if len(self._held) > MAX_ANSWER_BYTES:
            raise Unavailable("answer_unreadable.too_large", maximum=MAX_ANSWER_BYTES)

    def whole(self) -> bytes:
        """Return the answer."""
        return bytes(self._held)


def error_of(status: int, content: bytes) -> Exception:
    """Return the error of an answer, of the class that the engine itself would raise."""
    try:
        body = json.loads(content)
        code, what = str(body["code"]), str(body["detail"])
    except (ValueError, KeyError, TypeError):
        return Unavailable("answer_unreadable.foreign", status=status, answer=content[:200].decode("utf-8", "replace"))
    known = {"type", "title", "status", "detail", "code", "why", "fix", "index"}
    details = {name: value for name, value in body.items() if name not in known}
    why, fix = str(body.get("why", "")), str(body.get("fix", ""))
    if status >= 500:
        return Unavailable.told(code, what, why, fix)
    kind = {404: NotFound, 409: Conflict, 412: Conflict}.get(status, InputError)
    return kind.told(code, what, why, fix, index=body.get("index"), details=details)


def unreachable(url: str, error: Exception) -> Unavailable:
    """Return the error of a server that does not answer."""
    return Unavailable("server_unreachable", url=url, reason=str(error) or type(error).__name__)


def pause_after_answer(sent: Request, tried: int, status: int, content: bytes, retry_after: str | None) -> float:
    """Return the seconds to wait before a refused request is sent again.

    Raises:
        InputError, NotFound, Conflict, Unavailable: as the engine itself would.
    """
    if status not in AGAIN or tried + 1 >= TRIES or not sent.again:
        raise error_of(status, content)
    given = float(retry_after) if retry_after and retry_after.isdigit() else 0.1 * 2**tried
    return min(LONGEST_S, given)


def pause_after_failure(sent: Request, tried: int, url: str, error: Exception, *, left: bool) -> float:
    """Return the seconds to wait before a request without answer is sent again; ``left``: it may have reached the server.

    Raises:
        Unavailable: server_unreachable.
    """
    if tried + 1 >= TRIES or (left and not sent.again):
        raise unreachable(url, error) from error
    return 0.1 * float(2**tried)


def live_path(tenant_id: str, action_id: str | None) -> str:
    """Return the path of a live stream."""
    tenant = f"{ROOT}/tenants/{quote(tenant_id, safe='')}"
    return f"{tenant}/live" if action_id is None else f"{tenant}/actions/{quote(action_id, safe='')}/live"


class EventReader:
    """Assembles events from lines."""

    def __init__(self) -> None:
        self._kind = ""

    def read(self, line: str) -> Action | LogLine | None:
        """Return the event that ends with this line, or None; kinds of a later server are ignored."""
        name, _, value = line.partition(": ")
        if name == "event":
            self._kind = value
        elif name == "data" and self._kind in KINDS:
            found: Action | LogLine = from_jsonable(KINDS[self._kind], json.loads(value))
            return found
        return None
