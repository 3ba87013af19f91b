"""Errors as problem documents (RFC 9457) with the engine's own stable codes: what happened, why, how to fix it."""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.responses import Response

from lodger.engine.core.errors import Conflict, InputError, NotFound, Unavailable
from lodger.sandbox.errors import SandboxError

MEDIA = "application/problem+json"
_log = logging.getLogger("lodger.api")
#: Longest text of what somebody gave that is said back.
_MOST_LETTERS = 500


class Refused(Exception):
    """A request that is not let through; carries its whole problem document."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        headers: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.body = {"code": code, "message": what, "why": why, "fix": fix} | details
        self.headers = dict(headers or {})


class Stale(Conflict):
    """What is stored is not what the caller had seen (If-Match)."""


def status_of(error: Exception) -> int:
    """Give the HTTP status of an error of the engine."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, Stale):
        return 412
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, InputError):
        return 422
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, SandboxError):
        return 422 if isinstance(error, ValueError) else 503
    return 500


def problem(error: Exception) -> Response:
    """Give the answer for an error. What nobody foresaw is logged whole and told without a word of it."""
    status = status_of(error)
    if isinstance(error, Refused):
        return document(status, error.body, error.headers)
    if status == 500:
        _log.error("a request failed: %s: %s", type(error).__name__, error, exc_info=error)
        return document(
            status,
            {
                "code": "internal_error",
                "message": "Lodger met something it did not foresee",
                "fix": "this is a fault of Lodger, not yours: report it with the request's id; it stands in the log",
            },
        )
    body = error.as_dict()  # type: ignore[attr-defined]  # every error above explains itself
    return document(status, body, {"Retry-After": "1"} if status == 503 else {})


def document(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Give a problem document; ``body`` has code and message, and where known why, fix and more."""
    code = str(body["code"])
    told = {
        "type": f"urn:lodger:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _short(str(body["message"])),
        "code": code,
    }
    told |= {
        name: _short(value)
        for name, value in body.items()
        if name not in {"code", "message"} and value not in ("", None)
    }
    text = json.dumps(told)
    return Response(text, status, headers=dict(headers or {}), media_type=MEDIA)


def _short(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str) and len(value) > _MOST_LETTERS:
        return f"{value[:_MOST_LETTERS]}… ({len(value)} letters)"
    return value


def not_valid(found: ValidationError | list[ErrorDetails], place: str) -> Refused:
    """Tell what of a body or query is none of the kind that was declared: each place and what is wrong there, ten at most."""
    errors = found.errors(include_url=False, include_input=False) if isinstance(found, ValidationError) else found
    wrong = [
        {"at": "/".join(str(part) for part in error["loc"])[:200], "what": str(error["msg"])[:300]}
        for error in errors[:10]
    ]
    first = wrong[0] if wrong else {"at": "", "what": ""}
    return Refused(
        400,
        "request_invalid",
        f"{place} {first['at']}: {first['what']}",
        why=f"the {place} must be as the API's description says",
        fix="GET /api/v1/openapi.json describes every field",
        errors=wrong,
    )
