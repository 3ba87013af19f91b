"""Makes an endpoint of every route of the table: who may, what was said, the verb, the answer."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from lodger.engine.server.bodies import Bodies
from lodger.engine.server.calls import Calls, permission
from lodger.engine.server.models import LONGEST, Queried, body_of, query_of, said
from lodger.engine.server.problems import Refused
from lodger.engine.server.schema import described
from lodger.engine.service.operations.route import ROOT, Route
from lodger.engine.service.operations.table import ROUTES
from lodger.engine.sync import Engine


def add(made: APIRouter, engine: Engine, calls: Calls, bodies: Bodies, uploads: Bodies) -> None:
    """Make every verb of the table an endpoint."""
    for route in ROUTES:
        made.add_api_route(
            ROOT + route.path,
            _endpoint(engine, calls, uploads if route.raw else bodies, route),
            methods=[route.method],
            operation_id=route.identity,
            summary=route.summary,
            description=route.described,
            tags=[route.noun],
            status_code=route.status,
            response_model=None,
            dependencies=[permission(route.role, of_tenant=route.of_tenant)],
            **described(route),
        )


def _endpoint(engine: Engine, calls: Calls, bodies: Bodies, route: Route) -> Callable[..., Any]:
    noun = getattr(engine, route.noun)
    body_model, query_model = body_of(route), query_of(route)
    takes_many = {
        name for name, each in inspect.signature(route.function).parameters.items() if each.kind is each.VAR_POSITIONAL
    }

    async def endpoint(request: Request, **given: Any) -> Response:
        query = given.pop("query", None)
        _each_once(request, query_model)
        arguments = {"tenant_id": None, **given} if route.everywhere else dict(given)
        if isinstance(query, Queried):
            arguments |= said(query)
            if route.kind == "page":
                arguments["limit"] = query.limit  # type: ignore[attr-defined]  # made at run time
        if route.raw:
            async with bodies.read(request) as raw, calls.lane(route):
                return await carried(request, given, arguments | {route.raw: raw}, lambda: raw)
        if body_model is not None:
            async with (
                bodies.read(request) as sent,
                calls.lane(route),
                bodies.json(request, body_model, sent, long=route.long) as body,
            ):
                return await carried(request, given, arguments | said(body), lambda: body.model_dump_json().encode())
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            raise Refused(400, "request_invalid", "this route takes no body", fix="send none")
        async with calls.lane(route):
            return await carried(request, given, arguments, bytes)

    async def carried(
        request: Request, given: dict[str, Any], arguments: dict[str, Any], raw: Callable[[], bytes]
    ) -> Response:
        many = [one for name in takes_many for one in arguments.pop(name)]
        verb = partial(route.function, noun, **arguments)
        if many:
            # Only a noun's own argument stands before those.
            first = next(iter(given))
            verb = partial(route.function, noun, arguments.pop(first), *many, **arguments)
        return await calls.carry_out(request, route, verb, raw)

    endpoint.__signature__ = _signature(route, query_model)  # type: ignore[attr-defined]  # what the framework reads
    endpoint.__name__ = route.identity
    return endpoint


def _signature(route: Route, query_model: type[Queried] | None) -> inspect.Signature:
    keyword = inspect.Parameter.KEYWORD_ONLY
    found = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    text = Annotated[str, Path(min_length=1, max_length=LONGEST)]
    found += [inspect.Parameter(each.name, keyword, annotation=text) for each in route.at("path")]
    if query_model is not None:
        found.append(inspect.Parameter("query", keyword, annotation=Annotated[query_model, Query()]))
    return inspect.Signature(found)


def _each_once(request: Request, model: type[Queried] | None) -> None:
    if model is None and request.scope["query_string"]:
        raise Refused(400, "request_invalid", "this route takes no query", fix="leave out what comes after ?")
    lists = {name for name, field in model.model_fields.items() if "list" in str(field.annotation)} if model else set()
    names = [name for name, _value in request.query_params.multi_items() if name not in lists]
    if len(names) != len(set(names)):
        raise Refused(400, "request_invalid", "something is said twice in the query", fix="say it once")
