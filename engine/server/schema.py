"""The API's description (OpenAPI 3.1): what each route takes and answers, its errors, and how one shows who one is."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from lodger.engine.server.models import Paged, Taken, body_of
from lodger.engine.server.problems import MEDIA
from lodger.engine.store.records import Page
from lodger.engine.service.operations.route import Route
from lodger.engine.service.operations.table import ROUTES
from lodger.engine.core.version import VERSION

_REF = "#/components/schemas/{model}"


class Problem(BaseModel):
    """What went wrong (RFC 9457): a stable code, what happened, and where known why and how to fix it."""

    type: str = Field(description="urn:lodger:error: and the code")
    title: str
    status: int
    detail: str
    code: str = Field(description="stable name of the error, as docs/reference/errors.md lists them")
    why: str | None = None
    fix: str | None = None


#: By status: when a route answers so.
ERRORS = {
    400: "the request is not as this description says",
    401: "no token, or one that opens nothing",
    403: "the token's role may not",
    404: "there is no such thing, or not for this token",
    409: "what is stored contradicts it",
    412: "it is not what the caller had seen (If-Match)",
    413: "the body is too large",
    415: "the body is of no kind that is read here",
    422: "what was said is as described, and cannot be used",
    429: "too much, too fast",
    503: "the host lacks something, or has too much to do",
}
_NO_BODY = {413, 415}
_NO_CHANGE = {409, 412}


def described(route: Route) -> dict[str, Any]:
    """Give what the framework cannot read off an endpoint: its answers, errors, body and headers."""
    takes = body_of(route) is not None or route.raw is not None
    errors = errors_of(
        *(
            status
            for status in ERRORS
            if (takes or status not in _NO_BODY) and (route.changes or status not in _NO_CHANGE)
        )
    )
    good: dict[str, Any] = {"description": "done"}
    if route.kind == "bytes":
        good["content"] = {route.media: {"schema": {"type": "string", "format": "binary"}}}
    elif route.kind == "page":
        good["model"] = Paged[_entry(route)]  # type: ignore[misc]  # made at run time
    elif route.kind == "json":
        good["model"] = route.answer
    if route.kind != "nothing":
        good["headers"] = {"X-Request-Id": {"schema": {"type": "string"}}}
    return {"responses": {route.status: good} | errors, "openapi_extra": _extra(route)}


def errors_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Give the errors that a route may answer."""
    schema = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": ERRORS[status], "content": schema} for status in statuses}


def _entry(route: Route) -> Any:  # noqa: ANN401 - an annotation
    (entry,) = route.answer.__args__
    assert route.answer.__origin__ is Page
    return entry


def _extra(route: Route) -> dict[str, Any]:
    extra: dict[str, Any] = {"x-role": route.role.value}
    body = body_of(route)
    if body is not None:
        needed = any(field.is_required() for field in body.model_fields.values())
        content = {"application/json": {"schema": {"$ref": _REF.format(model=body.__name__)}}}
        extra["requestBody"] = {"required": needed, "content": content}
    elif route.raw:
        extra["requestBody"] = {
            "required": True, "content": {route.media: {"schema": {"type": "string", "format": "binary"}}}
        }  # fmt: skip
    headers = []
    if route.changes:
        headers.append(
            _header("Lodger-Why", "the reason, for the audit log; percent-encoded where it is no plain letter", 1000)
        )
        if not route.secret:
            headers.append(_header("Idempotency-Key", "the same request with the same key is carried out once", 200))
        if route.tagged:
            headers.append(_header("If-Match", "an ETag: the change is made to that state or not at all", 200))
    if headers:
        extra["parameters"] = headers
    return extra


def _header(name: str, what: str, most: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": most}
    if name == "Idempotency-Key":
        schema |= {"minLength": 1, "pattern": "^[A-Za-z0-9._:-]+$"}
    elif name == "Lodger-Why":
        schema["pattern"] = "^[A-Za-z0-9 _.:,;!?()'/+=@#%-]*$"
    return {"name": name, "in": "header", "required": False, "description": what, "schema": schema}


def document(app: FastAPI, *by_hand: type[Taken]) -> dict[str, Any]:
    """Give the whole description, with the models of bodies, which the framework does not read."""
    made = get_openapi(
        title="Lodger",
        version=VERSION,
        description="Scripts of strangers, run on time, inside walls. Errors are problem documents with stable codes.",
        routes=app.routes,
    )
    bodies: list[type[Taken]] = [body for body in (body_of(route) for route in ROUTES) if body is not None]
    bodies += by_hand
    _, defined = models_json_schema([(body, "validation") for body in bodies], ref_template=_REF)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {name: schema for name, schema in defined.get("$defs", {}).items() if name not in schemas}
    schemas["Problem"] = Problem.model_json_schema(ref_template=_REF)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "lodger token create NAME --role ROLE"},
        "session": {"type": "apiKey", "in": "cookie", "name": "lodger", "description": "POST /api/v1/session"},
    }
    made["security"] = [{"token": []}, {"session": []}]
    return made
