"""Errors as problem documents (RFC 9457) with the engine's stable codes: what happened, why, how to fix it."""

import difflib
import json
import logging
import time
import tomllib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from lodger.engine.core.errors import Conflict, Explained, InputError, NotFound, Unavailable
from lodger.sandbox.errors import SandboxError

MEDIA = "application/problem+json"
#: Longest text of a request that an answer repeats, characters.
MAX_REPEATED = 500
#: Field errors in one answer.
MAX_FIELDS = 10
_log = logging.getLogger("lodger.api")


class Refused(Explained):
    """A refused request; carries its status and headers."""

    def __init__(
        self,
        status: int,
        code: str,
        *,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> None:
        super().__init__(code, **values)
        self.status = status
        self.headers = dict(headers or {})

    @classmethod
    def with_texts_of(cls, error: Explained, status: int, headers: Mapping[str, str]) -> Self:
        """Return the refusal with the texts of another error."""
        refused = cls.of(error)
        refused.status, refused.headers = status, dict(headers)
        return refused


class Stale(Conflict):
    """The stored state is not the one that the caller named with If-Match."""


#: Statuses of errors of the engine, by the first class that they are of.
_STATUSES = ((NotFound, 404), (Stale, 412), (Conflict, 409), (InputError, 422), (Unavailable, 503), (SandboxError, 503))


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error of the engine."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, SandboxError) and isinstance(error, ValueError):
        return 422
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem(error: Exception, scope: Scope) -> Response:
    """Return the answer for an error of a request. An unexpected one is logged whole and answered without its text, an unavailable
    service without the reason, which may name hosts and files of the operator's: the log has it."""
    status = status_of(error)
    if isinstance(error, Refused):
        return document(status, error.as_dict(), error.headers)
    if status >= 500:
        _note(error, status, scope)
    if status == 500:
        return document(status, Unavailable("internal_error").as_dict())
    body = error.as_dict()  # type: ignore[attr-defined]  # every error above explains itself
    if status != 503:
        return document(status, body)
    body.pop("why", None)
    return document(status, body, {"Retry-After": "1"})


#: Seconds between two lines of the log about the same cause.
NOTED_S = 60.0
_noted: dict[str, float] = {}


def _note(error: Exception, status: int, scope: Scope) -> None:
    """Log a failed request with its path and id: every unexpected error, an unavailable service once a minute."""
    code, now_s = str(getattr(error, "code", type(error).__name__)), time.monotonic()
    if status != 500 and now_s < _noted.get(code, -NOTED_S) + NOTED_S:
        return
    _noted[code] = now_s
    request_id = scope.get("state", {}).get("request_id", "-")
    _log.log(
        logging.ERROR if status == 500 else logging.WARNING,
        "%s %s failed with %s (request %s): %s: %s",
        scope["method"],
        quote(scope["path"]),
        status,
        request_id,
        type(error).__name__,
        "; ".join(filter(None, (str(error), getattr(error, "why", "")))),
        exc_info=error if status == 500 else None,
    )


def document(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem document; ``body`` has code and message, and optionally why, fix and more."""
    code = str(body["code"])
    fields = {
        "type": f"urn:lodger:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _shortened(str(body["message"])),
        "code": code,
    }
    fields |= {
        name: _shortened(value)
        for name, value in body.items()
        if name not in {"code", "message"} and value not in ("", None)
    }
    return Response(json.dumps(fields), status, headers=dict(headers or {}), media_type=MEDIA)


def _shortened(value: Any) -> Any:
    """Return a value of an error, long texts cut."""
    if isinstance(value, str) and len(value) > MAX_REPEATED:
        return f"{value[:MAX_REPEATED]}… ({len(value)} characters)"
    return value


class ProblemRoute(APIRoute):
    """The route class of every endpoint: each error becomes a problem document, and none reaches the server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the framework's handler with its errors caught."""
        inner = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            """Answer a request; errors become problem documents."""
            try:
                return await inner(request)
            except RequestValidationError as wrong:
                return problem(not_valid(wrong.errors(), "request", None), request.scope)
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - the boundary: every error is answered
                return problem(error, request.scope)

        return handle_errors


_ROUTING = {
    404: ("route_unknown", "there is no such route", "GET /api/v1/openapi.json lists them"),
    405: ("method_not_allowed", "this route has no such method", "the Allow header lists its methods"),
}


async def routing_error(request: Request, error: Exception) -> Response:
    """Answer a request that the framework refuses itself: an unknown path or method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    code, what, fix = _ROUTING.get(error.status_code, ("request_refused", str(error.detail), ""))
    return document(error.status_code, {"code": code, "message": what, "fix": fix}, headers)


def route_path(scope: Scope) -> str:
    """Return a request's path below the path at which the application is mounted."""
    root, path = str(scope.get("root_path", "")), str(scope["path"])
    return path.removeprefix(root) if path.startswith(root + "/") else path


def _methods(request: Request) -> set[str]:
    """Return every method of this path; the framework knows only those of the first route that has it."""
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, APIRoute) and route.path_regex.match(route_path(request.scope)):
            found |= route.methods or set()
    return found


def not_valid(errors: Iterable[ErrorDetails], place: str, root: Any, known: Iterable[str] = ()) -> Refused:
    """Return the refusal of a body or query that does not match its model, with at most ten fields.

    Args:
        errors: the library's, at least one; several of one field are alternatives of its type.
        place: ``body`` or ``request``.
        root: the parsed body, in which the field's path is looked up; None for a query or path.
        known: the names that the body may have.
    """
    fields: dict[str, list[ErrorDetails]] = {}
    for error in errors:
        fields.setdefault(_path(error, root), []).append(error)
    wrong = [_field(at, found, tuple(known)) for at, found in fields.items()][:MAX_FIELDS]
    first = wrong[0]
    return Refused(
        400,
        "request_invalid",
        place=place,
        at=(" " + first["at"]).rstrip(),
        problem=first["what"],
        advice=first["fix"],
        details={"errors": wrong},
    )


def field_errors(found: ValidationError) -> list[ErrorDetails]:
    """Return the errors of a model without the values that were sent."""
    return found.errors(include_url=False, include_input=False)


def _path(error: ErrorDetails, root: Any) -> str:
    """Return the field's path, without the library's names for the alternatives of a type, which are no keys of the value."""
    if root is None:
        return "/".join(str(part) for part in error["loc"][:2])[:200]
    value, parts = root, []
    for part in error["loc"]:
        if isinstance(value, dict) and (part in value or error["type"] == "missing"):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        parts.append(str(part))
    return "/".join(parts)[:200]


def _field(at: str, errors: list[ErrorDetails], known: tuple[str, ...]) -> dict[str, str]:
    """Return the explanation of the errors of one field."""
    kinds = {error["type"] for error in errors}
    name = at.rpartition("/")[2]
    if "missing" in kinds:
        return {"at": at, "what": "is missing", "fix": f"add {name}"}
    if "extra_forbidden" in kinds:
        near = difflib.get_close_matches(name, known, 1)
        fix = f"did you mean {near[0]}?" if near else f"leave {name} out"
        return {"at": at, "what": "is not a known field", "fix": fix}
    own = [str(error["ctx"]["error"]) for error in errors if error["type"] == "value_error" and "ctx" in error]
    expected = list(dict.fromkeys(filter(None, (_expected(error) for error in errors))))
    if expected:
        what = f"must be {' or '.join(expected)}"
        return {"at": at, "what": what[:300], "fix": f"send {' or '.join(expected)}"[:300]}
    what = own[0] if own else "has a value that cannot be used here"
    return {"at": at, "what": what[:300], "fix": f"correct {name or 'it'}"}


def _expected(error: ErrorDetails) -> str:
    """Return the words for the value that was expected; empty for an error of another kind."""
    return _templates().get(error["type"], "").format_map(error.get("ctx", {}))


@cache
def _templates() -> dict[str, str]:
    """Return the words by the library's kind of error; read for refusals only."""
    return tomllib.loads(Path(__file__).with_name("expected_values.toml").read_text("utf-8"))
