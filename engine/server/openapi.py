"""The OpenAPI 3.1 description, and the pydantic models of bodies and queries, both made from the table of operations.

Schemas have the names of their types. No type is called New… beside another one: Go's generator gives such names to constructors.
"""

import inspect
import json
import re
import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, Json, create_model
from pydantic.json_schema import models_json_schema
from starlette.responses import Response, StreamingResponse

from lodger.engine.core.version import VERSION
from lodger.engine.server.problems import MEDIA
from lodger.engine.service.operations.route import Parameter, Route
from lodger.engine.store.records import Page

T = TypeVar("T")
M = TypeVar("M", bound="RequestModel")
#: Entries of a page by default.
PAGE_LIMIT = 100
#: Longest text in a query or a path, characters.
MAX_TEXT = 2000


_SECTION = re.compile(r"\n\n(?:Args|Attributes|Raises|Returns):\n")
_ABOUT = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_REF = "#/components/schemas/{model}"


class RequestModel(BaseModel):
    """Base of every body and query: no undeclared field, no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False, ser_json_inf_nan="null")


class QueryModel(RequestModel):
    """Base of every query: all values are text, so numbers are parsed."""

    model_config = ConfigDict(extra="forbid", strict=False)


def given(model: RequestModel) -> dict[str, Any]:
    """Return the fields that the request set, by the operation's parameter names."""
    return {name: getattr(model, name) for name in model.model_fields_set}


class Paged(BaseModel, Generic[T]):
    """A page of a list: ``next`` is the ``cursor`` of the page after, null on the last."""

    items: list[T]
    next: str | None


@cache
def body_of(route: Route) -> type[RequestModel] | None:
    """Return the model of a route's body, or None if it takes none."""
    return _model(route, route.at("body"), RequestModel, "Body")


@cache
def query_of(route: Route) -> type[QueryModel] | None:
    """Return the model of a route's query, or None if it takes none."""
    return _model(route, route.at("query"), QueryModel, "Query")


def _model(route: Route, parameters: tuple[Parameter, ...], base: type[M], kind: str) -> type[M] | None:
    """Return a model of a route's parameters; None without any."""
    if not parameters:
        return None
    fields: dict[str, Any] = {each.name: _field(route, each, kind) for each in parameters}
    title = "".join(part.title() for part in route.identity.split("_"))
    return create_model(f"{title}{kind}", __base__=base, __doc__=route.summary, **fields)


def _field(route: Route, parameter: Parameter, kind: str) -> Any:
    """Return the field of a model for an operation's parameter."""
    hint = parameter.kind
    if parameter.key != parameter.name:
        return (Json[dict[str, Any]], Field(default_factory=lambda: None, alias=parameter.key, description=_FIELDS))
    if parameter.name == "limit" and route.kind == "page":
        return (Annotated[int, Field(ge=1, le=route.declared.max_page)], min(PAGE_LIMIT, route.declared.max_page))
    if kind == "Query":
        # A query has no null, only absent values.
        hint = _bounded(_without_null(hint))
    if parameter.needed:
        return (hint, ...)
    default = parameter.shown
    if default is None or default is inspect.Parameter.empty:
        return (hint, Field(default_factory=lambda: None))
    return (hint, Field(default=list(default) if isinstance(default, tuple) else default))


def _without_null(hint: Any) -> Any:
    """Return a type without None as one of its alternatives."""
    if get_origin(hint) not in {Union, types.UnionType}:
        return hint
    kept = tuple(each for each in get_args(hint) if each is not type(None))
    return Union[kept]  # noqa: UP007 - made at run time


def _bounded(hint: Any) -> Any:
    """Return a text type with a maximum length; others unchanged."""
    return Annotated[str, Field(max_length=MAX_TEXT)] if hint is str else hint


class Wrong(BaseModel):
    """A field of a request that does not match its description."""

    at: str = Field(description="path of the field")
    what: str
    fix: str


class Problem(BaseModel):
    """What went wrong (RFC 9457): a stable code, what happened, and where known why and how to fix it."""

    type: str = Field(description="urn:lodger:error: and the code")
    title: str
    status: int
    detail: str
    code: str = Field(description="stable name of the error, as docs/reference/errors.md lists them")
    why: str | None = None
    fix: str | None = None
    index: int | None = Field(None, description="0-based position of the mistake in the text")
    rule: int | None = Field(None, description="0-based number of the rule, exclusions after the rules")
    file: str | None = Field(None, description="file of the script that is refused")
    line: int | None = Field(None, description="line in the file, from 1")
    column: int | None = Field(None, description="column in the line, from 1")
    source_line: str | None = Field(None, description="text of the line")
    errors: list[Wrong] | None = Field(None, description="the fields that do not match this description")


#: By status: its meaning.
ERRORS = {
    400: "the request does not match this description",
    401: "the token is missing or invalid",
    403: "the token's role does not allow this",
    404: "the object does not exist, or not for this token",
    409: "the request conflicts with the stored state",
    412: "the stored state is not the one named by If-Match",
    413: "the body is too large",
    415: "this route does not accept the media type of the body",
    422: "the request matches this description, but cannot be carried out",
    429: "too many requests; Retry-After gives the time to wait",
    503: "the server is overloaded, or the host lacks something",
}
_FIELDS = "declaration of its typed params, as JSON text; left out for any JSON value"
_NO_BODY = {413, 415}
_NO_CHANGE = {409, 412}


def described(route: Route) -> dict[str, Any]:
    """Return the parts of a description that the framework cannot derive from an endpoint: its answers, errors, body and headers."""
    takes = body_of(route) is not None or route.raw is not None
    never = (set() if takes else _NO_BODY) | (set() if route.changes else _NO_CHANGE)
    errors = errors_of(*(status for status in ERRORS if status not in never))
    good: dict[str, Any] = {"description": "done"}
    more: dict[str, Any] = {}
    if route.kind == "bytes":
        more["response_class"] = Response  # the default adds JSON to the answer's media
        good["content"] = {route.media: {"schema": {"type": "string", "format": "binary"}}}
    elif route.kind == "page":
        good["model"] = Paged[_entry(route)]  # type: ignore[misc]  # made at run time
    elif route.kind == "json":
        good["model"] = route.answer
    if route.kind != "nothing":
        names = ["X-Request-Id", *["ETag"] * _has_etag(route), *["Location"] * hasattr(route.answer, "LOCATION")]
        good["headers"] = {name: {"schema": {"type": "string"}} for name in names}
    if route.method == "GET" and _has_etag(route):
        errors[304] = {"description": "the client has this state already (If-None-Match)"}
    return {"responses": {route.status: good} | errors, "openapi_extra": _extra(route)} | more


def _has_etag(route: Route) -> bool:
    """Whether a route answers with the state of one object, which has an ETag."""
    return hasattr(route.answer, "ETAG")


def errors_of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that a route may answer."""
    schema = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": ERRORS[status], "content": schema} for status in statuses}


def streamed(media: str, about: str, *statuses: int) -> dict[str, Any]:
    """Return the parts of the description of a route that sends a stream of text."""
    content = {media: {"schema": {"type": "string"}}}
    answers: dict[int | str, dict[str, Any]] = {200: {"content": content, "description": about}}
    return {"response_class": StreamingResponse, "responses": answers | errors_of(*statuses)}


def _entry(route: Route) -> Any:
    """Return the type of the entries of a route's page."""
    (entry,) = route.answer.__args__
    assert route.answer.__origin__ is Page
    return entry


def _extra(route: Route) -> dict[str, Any]:
    """Return the parts of a route's description that are not derived from its signature."""
    extra: dict[str, Any] = {"x-role": route.role.value}
    body = body_of(route)
    if body is not None:
        needed = any(field.is_required() for field in body.model_fields.values())
        content = {"application/json": {"schema": {"$ref": _REF.format(model=body.__name__)}}}
        extra["requestBody"] = {"required": needed, "content": content}
    elif route.raw:
        # Generators that know no other binary media type make the call with the second one.
        binary = {"schema": {"type": "string", "format": "binary"}}
        extra["requestBody"] = {"required": True, "content": {route.media: binary, "application/octet-stream": binary}}
    headers = []
    if route.method == "GET" and _has_etag(route):
        headers.append(_header("If-None-Match", "ETag of a state: 304 if this is still the current state", 200))
    if route.changes:
        headers += [
            _header(name, f"{what}, for the audit log; percent-encoded if it is not plain ASCII", 1000)
            for name, what in (
                ("Lodger-Why", "reason of the change"),
                ("Lodger-Acting-As", "user in whose name the caller acts"),
            )
        ]
        if not route.declared.secret:
            headers.append(
                _header("Idempotency-Key", "a repeated request with the same key is carried out only once", 200)
            )
        if route.declared.tagged:
            headers.append(
                _header("If-Match", "ETag of a state: the change is made only if this is still the current state", 200)
            )
            if route.method == "PUT":
                headers.append(_header("If-None-Match", "*: the object is created only if it does not exist yet", 200))
    if headers:
        extra["parameters"] = headers
    return extra


def _header(name: str, what: str, maximum: int) -> dict[str, Any]:
    """Return the description of a request header."""
    schema: dict[str, Any] = {"type": "string", "maxLength": maximum}
    if name == "Idempotency-Key":
        schema |= {"minLength": 1, "pattern": "^[A-Za-z0-9._:-]+$"}
    elif name.startswith("Lodger-"):
        schema["pattern"] = "^[A-Za-z0-9 _.:,;!?()'/+=@#%-]*$"
    return {"name": name, "in": "header", "required": False, "description": what, "schema": schema}


def document(app: FastAPI, routes: Iterable[Route], *by_hand: type[RequestModel]) -> dict[str, Any]:
    """Return the whole description, with the models of bodies of these routes and others, which the framework does not know."""
    made = get_openapi(
        title="Lodger",
        version=VERSION,
        license_info={"name": "MIT", "identifier": "MIT"},
        description="Run untrusted scripts on a schedule, in a sandbox. Errors are problem documents with stable codes.",
        routes=app.routes,
    )
    bodies: list[type[RequestModel]] = [body for body in (body_of(route) for route in routes) if body is not None]
    bodies += by_hand
    _, defined = models_json_schema([(body, "validation") for body in bodies], ref_template=_REF)
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {name: schema for name, schema in defined.get("$defs", {}).items() if name not in schemas}
    for name, schema in schemas.items():
        if name not in defined["$defs"] and "properties" in schema:
            schema["required"] = list(schema["properties"])  # answers have every field
    _, problem = models_json_schema([(Problem, "serialization")], ref_template=_REF)
    schemas |= problem["$defs"]
    for pairs in _without_items(schemas):
        pairs["items"] = {}  # tools want it beside "prefixItems", which say all of a pair
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    made["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "lodger token create NAME ROLE"},
        "session": {"type": "apiKey", "in": "cookie", "name": "lodger", "description": "POST /api/v1/session"},
    }
    made["security"] = [{"token": []}, {"session": []}]
    verbs = [verb for path in made["paths"].values() for verb in path.values()]
    for schema in schemas.values():
        _explain(schema, schema.get("properties", {}))
    for verb in verbs:
        content = verb.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        body = schemas.get(content.get("$ref", "").rpartition("/")[2], {})
        _explain(verb, body.get("properties", {}) | {each["name"]: each for each in verb.get("parameters", ())})
    for name, schema in schemas.items():
        for field in schema.get("properties", {}).values():
            # Generators of clients would require a field with a default of a body.
            if (default := field.pop("default", None)) is not None and name in defined["$defs"]:
                field["description"] = f"{field.get('description', '')} Default: {json.dumps(default)}.".strip()
    made["tags"] = [{"name": tag} for tag in sorted({tag for verb in verbs for tag in verb["tags"]})]
    return made


def _explain(documented: dict[str, Any], fields: dict[str, Any]) -> None:
    """Move a docstring's texts about arguments or attributes to the fields of these names."""
    lead, *sections = _SECTION.split(documented.get("description", ""))
    if sections:
        documented["description"] = lead
        for names, about in _ABOUT.findall(sections[0]):
            for name in names.split(", "):
                fields.get(name, {}).setdefault("description", re.sub(r"\bNone\b", "null", " ".join(about.split())))


def _without_items(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the array schemas that describe their items by position (``prefixItems``)."""
    if isinstance(schema, dict) and "prefixItems" in schema:
        yield schema
    for inside in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _without_items(inside)
