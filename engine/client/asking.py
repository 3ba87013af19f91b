"""A verb as a request and an answer as the verb's value; pure, for both clients. What reads the routes here is what wrote them."""

import inspect
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, get_args
from urllib.parse import quote

from lodger.engine.core.access.audit_context import present
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.engine.core.serialization import shaped, unshaped
from lodger.engine.service.nouns.noun import UNCHANGED
from lodger.engine.service.operations.route import ROOT, Route
from lodger.engine.service.operations.table import NOT_HERE, routes_of
from lodger.engine.store.records import Page

#: Statuses after which the same request may be sent again, with its own idempotency key.
AGAIN = {429, 502, 503, 504}
#: How often a request is sent, and the longest wait between two times, seconds.
TRIES = 4
LONGEST_S = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``path`` is percent-encoded; ``again`` says whether it may be sent more than once."""

    route: Route
    path: str
    query: dict[str, str | list[str]]
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)

    @property
    def again(self) -> bool:
        """Whether sending it twice does nothing twice."""
        return not self.route.changes or "idempotency-key" in self.headers


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def without_self(function: Callable[..., Any]) -> inspect.Signature:
    """Give a verb's signature as its caller sees it."""
    signature = _signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def arguments_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was said, by name; what was left out is absent. Raises TypeError as the verb itself would."""
    bound = _signature(function).bind(None, *args, **kwargs)
    said = dict(list(bound.arguments.items())[1:])
    return {name: value for name, value in said.items() if value is not UNCHANGED}


def asked(noun: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Asked:
    """Make the request of a verb.

    Raises:
        InputError: verb_local, instant_naive.
    """
    arguments = arguments_of(function, args, kwargs)
    route = _route(noun, function.__name__, arguments)
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
            body[name] = _said(value)
        elif value is not None:
            query[name] = [_text(each) for each in value] if isinstance(value, list | tuple) else _text(value)
    if route.at("body"):
        content = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    return Asked(route, path, query, headers, content)


def _segment(what: str, name: str) -> str:
    """Give a name as one segment of a path; one that would climb, or be two, would ask for something else."""
    if name in {"", ".", ".."} or "/" in name or "\\" in name:
        raise InputError(
            "name_invalid",
            f"{name!r} is no {what}",
            why="a name is one segment of an address: not empty, without / or \\, and not . or ..",
            fix="check it",
        )
    return quote(name, safe="")


def _route(noun: str, verb: str, arguments: Mapping[str, Any]) -> Route:
    for route in routes_of(noun, verb):
        known = all(arguments.get(each.name) is not None for each in route.at("path"))
        if known and (route.raw is not None) == isinstance(arguments.get(route.raw or "source"), bytes | bytearray):
            return route
    raise InputError(
        "verb_local",
        f"{noun}.{verb} cannot be asked of a server like this",
        why=NOT_HERE.get(f"{noun}.{verb}", "it has no route for these arguments"),
        fix="use the engine itself, or give the tenant too",
    )


def _headers(route: Route) -> dict[str, str]:
    headers = {"accept": "application/json"}
    why = present().why
    if route.changes:
        if why:
            headers["lodger-why"] = quote(why, safe=" ")
        if not route.secret:
            headers["idempotency-key"] = str(uuid.uuid4())
    return headers


def _said(value: Any) -> Any:  # noqa: ANN401 - any value that JSON can say
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, datetime):
        to_us(value)  # a naive one is no instant
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return shaped(value)


def _text(value: Any) -> str:  # noqa: ANN401 - any value that a query can say
    if isinstance(value, bool):
        return str(value).lower()
    return str(_said(value))


def export(tenant_id: str | None, since: datetime | None, until: datetime | None) -> tuple[str, dict[str, str]]:
    """Give path and query of the audit log as lines."""
    whose = "" if tenant_id is None else f"/tenants/{quote(tenant_id, safe='')}"
    bounds = {"since": since, "until": until}
    return f"{ROOT}{whose}/audit/export", {name: _text(value) for name, value in bounds.items() if value is not None}


def first(sent: Asked, limit: int) -> Asked:
    """Make the request for the first page."""
    return Asked(sent.route, sent.path, sent.query | {"limit": str(limit)}, sent.headers, sent.content)


def more(sent: Asked, cursor: str, limit: int) -> Asked:
    """Make the request for the page after."""
    query = sent.query | {"cursor": cursor, "limit": str(limit)}
    return Asked(sent.route, sent.path, query, sent.headers, sent.content)


def whole(sent: Asked, arguments: Mapping[str, Any], function: Callable[..., Any]) -> int | None:
    """Give how many entries of a list are wanted; None for all."""
    default = _signature(function).parameters["limit"].default
    limit: int | None = arguments.get("limit", default)
    return limit if sent.route.kind == "page" else None


def value_of(route: Route, content: bytes) -> Any:  # noqa: ANN401 - what the verb's annotation says
    """Give what a good answer says; a page's entries are those of its type.

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
            return Page((unshaped(entry, item) for item in body["items"]), body["next"])
        return unshaped(route.answer, body)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(
            "answer_unreadable",
            "the server's answer is none of this version's",
            why=str(error)[:300],
            fix="use a client of the server's version",
        ) from error


def error_of(status: int, content: bytes) -> Exception:
    """Give the error that an answer tells, of the class that the engine itself would raise."""
    try:
        body = json.loads(content)
        code, what = str(body["code"]), str(body["detail"])
    except (ValueError, KeyError, TypeError):
        return Unavailable(
            "answer_unreadable",
            f"the server answered {status} and nothing of Lodger's",
            why=content[:200].decode("utf-8", "replace"),
            fix="check the address: it ends before /api/v1",
        )
    known = {"type", "title", "status", "detail", "code", "why", "fix", "index"}
    details = {name: value for name, value in body.items() if name not in known}
    why, fix = str(body.get("why", "")), str(body.get("fix", ""))
    if status >= 500:
        return Unavailable(code, what, why=why, fix=fix)
    kind = {404: NotFound, 409: Conflict, 412: Conflict}.get(status, InputError)
    return kind(code, what, why=why, fix=fix, index=body.get("index"), **details)


def unreachable(url: str, error: Exception) -> Unavailable:
    """Say that nobody answers."""
    return Unavailable(
        "server_unreachable",
        f"no server answers at {url}",
        why=str(error) or type(error).__name__,
        fix="check the address, and that lodger up runs there",
    )


def after_answer(sent: Asked, tried: int, status: int, content: bytes, retry_after: str | None) -> float:
    """Give how long to wait before an answer that is none is asked for again.

    Raises:
        InputError, NotFound, Conflict, Unavailable: as the engine itself would.
    """
    if status not in AGAIN or tried + 1 >= TRIES or not sent.again:
        raise error_of(status, content)
    given = float(retry_after) if retry_after and retry_after.isdigit() else 0.1 * 2**tried
    return min(LONGEST_S, given)


def after_failure(sent: Asked, tried: int, url: str, error: Exception, *, left: bool) -> float:
    """Give how long to wait before a request that met no answer is sent again; ``left`` is whether it may have got there.

    Raises:
        Unavailable: server_unreachable.
    """
    if tried + 1 >= TRIES or (left and not sent.again):
        raise unreachable(url, error) from error
    return 0.1 * float(2**tried)
