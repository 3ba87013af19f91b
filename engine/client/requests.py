"""An operation as a request, and an answer as its result, for both clients: which server, what is sent, when it is sent again. No I/O."""

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, get_args
from urllib.parse import quote, urlsplit

import httpx2

from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.access.names import is_segment
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.serialization import from_jsonable, to_jsonable
from lodger.engine.core.version import VERSION
from lodger.engine.features import TABLE
from lodger.engine.recurrence.rrule import from_dateutil, is_dateutil
from lodger.engine.service.operations.declaration import JOINED, UNCHANGED
from lodger.engine.service.operations.proxy import signature
from lodger.engine.service.operations.route import ROOT, Operation, Route
from lodger.engine.store.records import Action, AuditEntry, Page
from lodger.sandbox.job import LogLine

T = TypeVar("T")
SERVER, TOKEN = "LODGER_SERVER", "LODGER_TOKEN"
#: Seconds for a connection, and for an answer; a dry run may take as long as its limits allow.
CONNECT_S, ANSWER_S = 10.0, 330.0
#: Longest silence of a stream that lives, seconds: the server says that it does every fifteen.
SILENCE_S = 60.0
#: Maximum size of an answer, unpacked: a server that lies ends here, not in all the memory of this machine.
MAX_ANSWER_BYTES = 256 << 20
#: Most entries of a list, and pages that it comes in; a server that gives more is none of ours.
MAX_ENTRIES, MAX_PAGES = 1_000_000, 20_000
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
    """One request. ``path`` is percent-encoded; without a route it is a GET that changes nothing."""

    route: Route | None
    path: str
    query: dict[str, str | list[str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)

    @property
    def method(self) -> str:
        """The HTTP method of this request."""
        return "GET" if self.route is None else self.route.method

    @property
    def again(self) -> bool:
        """Whether the request may be sent twice without being carried out twice."""
        return self.route is None or not self.route.changes or "idempotency-key" in self.headers


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    content: bytes
    retry_after: str | None

    @property
    def is_success(self) -> bool:
        """Whether the server has carried out the request."""
        return 200 <= self.status < 300


#: A conversation with the server: yields a request, and is sent its answer; or yields seconds to wait.
Conversation = Generator[Request | float, Answer | httpx2.TransportError | None, T]


def arguments_of(operation: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by parameter name, without those that were left out."""
    given = signature(operation.function).bind(*args, **kwargs).arguments
    if given.pop(JOINED, None) is not None:
        raise InputError("connection_remote")
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
    keys = {each.name: each.key for each in route.at("query")}
    for name, value in arguments.items():
        if any(each.name == name for each in route.at("body")):
            body[name] = _json(value)
        elif isinstance(value, Mapping):
            query[keys[name]] = json.dumps(_json(value))
        elif value is not None:
            query[name] = [_text(each) for each in value] if isinstance(value, list | tuple) else _text(value)
    if route.at("body"):
        content = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    return Request(route, path, query, headers, content)


def _segment(what: str, name: str) -> str:
    """Return a name as one segment of a URL's path, percent-encoded; raises InputError (name_invalid)."""
    if not is_segment(name):
        raise InputError("name_invalid.segment", thing=what, name=name)
    return quote(name, safe="")


def _route(operation: Operation, arguments: Mapping[str, Any]) -> Route:
    """Return the route of an operation for these arguments."""
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
    """Return the headers of a request."""
    headers = {"accept": "application/json"}
    present = current_audit_context()
    why, acting_as = present.why, present.acting_as
    if route.changes:
        if why:
            headers["lodger-why"] = quote(why, safe=" ")
        if acting_as:
            headers["lodger-acting-as"] = quote(acting_as, safe=" ")
        if not route.declared.secret:
            headers["idempotency-key"] = str(uuid.uuid4())
    return headers


def _json(value: Any) -> Any:
    """Return an argument in its JSON form."""
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, datetime):
        to_us(value)  # a naive one is no instant
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if is_dateutil(value):
        return to_jsonable(from_dateutil(value))
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return to_jsonable(value)


def _text(value: Any) -> str:
    """Return a value as text of a query or path."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(_json(value))


def call(url: str, operation: Operation, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Conversation[Any]:
    """Carry out an operation, and return its result; a list comes in as many requests as the server's pages need.

    Raises:
        Unavailable: answer_unreadable: there is no end to the pages.
    """
    sent = build(operation, args, kwargs)
    route = sent.route
    assert route is not None
    if route.kind != "page":
        return result_of(route, (yield from ask(url, sent)))
    arguments = arguments_of(operation, args, kwargs)
    wanted: int | None = arguments.get("limit", signature(operation.function).parameters["limit"].default)
    found: Page[Any] = Page()
    pages = 0
    while wanted is None or len(found) < wanted:
        left = route.declared.max_page if wanted is None else min(route.declared.max_page, wanted - len(found))
        page = result_of(route, (yield from ask(url, replace(sent, query=sent.query | {"limit": str(left)}))))
        found.extend(page)
        found.next = page.next
        pages += 1
        if len(found) > MAX_ENTRIES or pages > MAX_PAGES:  # empty pages have an end, too
            raise Unavailable("answer_unreadable.entries", maximum=MAX_ENTRIES)
        if page.next is None:
            break
        sent = replace(sent, query=sent.query | {"cursor": page.next})
    return found


def me(url: str) -> Conversation[dict[str, Any]]:
    """Return the token's name, role and tenant."""
    found: dict[str, Any] = json.loads((yield from ask(url, Request(None, f"{ROOT}/me"))))
    return found


def ask(url: str, sent: Request) -> Conversation[bytes]:
    """Return the content of the answer to a request, which is sent again where that is safe.

    Raises:
        InputError, NotFound, Conflict, Unavailable: as the engine itself would; server_unreachable.
    """
    tried = 0
    while True:
        said = yield sent
        if isinstance(said, Answer) and said.is_success:
            return said.content
        assert said is not None
        yield pause_before_next(url, sent, tried, said)
        tried += 1


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


def add_part(body: bytearray, part: bytes) -> None:
    """Append a received part to an answer's body.

    Raises:
        Unavailable: answer_unreadable, if there are too many.
    """
    body += part
    if len(body) > MAX_ANSWER_BYTES:
        raise Unavailable("answer_unreadable.too_large", maximum=MAX_ANSWER_BYTES)


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


def pause_before_next(url: str, sent: Request, tried: int, said: Answer | httpx2.TransportError) -> float:
    """Return the seconds to wait before a request is sent again.

    Raises:
        InputError, NotFound, Conflict, Unavailable: it is not: the error of the answer; server_unreachable.
    """
    last = tried + 1 >= TRIES
    if isinstance(said, httpx2.TransportError):
        unsent = isinstance(said, httpx2.ConnectError | httpx2.ConnectTimeout)
        if last or not (unsent or sent.again):
            raise unreachable(url, said) from said
        return 0.1 * float(2**tried)
    if last or said.status not in AGAIN or not sent.again:
        raise error_of(said.status, said.content)
    again = said.retry_after
    return min(LONGEST_S, float(again) if again and again.isdigit() else 0.1 * 2**tried)


class Lines(ABC, Generic[T]):
    """A stream of lines as values. One that breaks is opened again if no value is repeated or left out by that.

    Attributes:
        silence_s: longest silence of a stream that lives, seconds.
    """

    silence_s = ANSWER_S

    def __init__(self, url: str, sent: Request) -> None:
        self._url = url
        self.sent = sent
        self._tried = 0
        self._is_read = False

    def read(self, line: str) -> T | None:
        """Return the value that ends with this line, if one does."""
        self._tried = 0
        found = self._value(line)
        self._is_read |= found is not None
        return found

    def pause(self, said: Answer | httpx2.TransportError) -> float:
        """Return the seconds to wait before a stream that broke is opened again.

        Raises:
            InputError, NotFound, Unavailable: it is not.
        """
        if self._is_read and isinstance(said, httpx2.TransportError) and not self._continues():
            raise unreachable(self._url, said) from said
        pause = pause_before_next(self._url, self.sent, self._tried, said)
        self._tried += 1
        return pause

    def _continues(self) -> bool:
        """Whether a new stream begins after the last value."""
        return False

    @abstractmethod
    def _value(self, line: str) -> T | None:
        """Return the value that ends with this line, None if none does."""
        ...


class ExportedLines(Lines[AuditEntry]):
    """The audit log."""

    def __init__(self, url: str, tenant_id: str | None = None, **bounds: datetime | None) -> None:
        prefix = "" if tenant_id is None else f"/tenants/{_segment('tenant', tenant_id)}"
        query: dict[str, str | list[str]] = {name: _text(each) for name, each in bounds.items() if each is not None}
        super().__init__(url, Request(None, f"{ROOT}{prefix}/audit/export", query))

    def _value(self, line: str) -> AuditEntry | None:
        """Return the audit entry of a line of JSON, None for an empty line."""
        found: AuditEntry | None = from_jsonable(AuditEntry, json.loads(line)) if line else None
        return found


class LiveLines(Lines[Action | LogLine]):
    """The events of a live stream; kinds of a later server are ignored."""

    silence_s = SILENCE_S

    def __init__(self, url: str, tenant_id: str, action_id: str | None) -> None:
        action = "" if action_id is None else f"/actions/{_segment('action', action_id)}"
        super().__init__(url, Request(None, f"{ROOT}/tenants/{_segment('tenant', tenant_id)}{action}/live"))
        self._kind = ""

    def _continues(self) -> bool:
        """Whether the stream can go on after its end: the id of its last event is known."""
        return "last-event-id" in self.sent.headers

    def _value(self, line: str) -> Action | LogLine | None:
        """Return the action or log line of an event that is complete with this line, else None."""
        name, _, value = line.partition(": ")
        if name == "event":
            self._kind = value
        elif name == "id":
            self.sent = replace(self.sent, headers={"last-event-id": value})
        elif name == "data" and self._kind in KINDS:
            found: Action | LogLine = from_jsonable(KINDS[self._kind], json.loads(value))
            return found
        return None
