"""An endpoint for each operation of the table, and the few routes that are no operation: health, caller, description, audit export."""

import asyncio
import inspect
import json
from collections.abc import Callable, Generator
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute

from lodger.engine.core.access.roles import MEANING, Role
from lodger.engine.core.metrics import health
from lodger.engine.core.serialization import to_jsonable
from lodger.engine.server.bodies import Bodies
from lodger.engine.server.openapi import MAX_TEXT, QueryModel, body_of, described, errors_of, given, query_of, streamed
from lodger.engine.server.operation_call import Calls, authenticated, permission
from lodger.engine.server.problems import ProblemRoute, Refused
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT, Instant, Route
from lodger.engine.service.operations.table import OperationTable
from lodger.engine.store.records import AuditEntry

LINES = "application/x-ndjson"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
#: How long a readiness check waits for the ledger, seconds.
READY_S = 5.0
#: Lines that an export reads at once.
EXPORTED = 200


class Me(BaseModel):
    """The caller of a request."""

    token_id: str
    name: str
    prefix: str
    role: Role
    tenant_id: str | None
    may: str


class Readiness:
    """Asks for problems in a thread, one question at a time, at most once a second: these requests need no token."""

    def __init__(self, problems: Callable[[], list[str]]) -> None:
        self._problems = problems
        self._asked: asyncio.Future[list[str]] | None = None
        self._asked_s = float("-inf")

    async def problems(self) -> list[str]:
        """Return the latest answer; a problem if it does not come within :data:`READY_S`."""
        loop = asyncio.get_running_loop()
        if self._asked is None or (self._asked.done() and loop.time() - self._asked_s >= 1):
            self._asked, self._asked_s = asyncio.ensure_future(asyncio.to_thread(self._problems)), loop.time()
        answered, _ = await asyncio.wait({self._asked}, timeout=READY_S)
        return self._asked.result() if answered else ["the ledger does not answer"]


class ExportQuery(QueryModel):
    """The part of the audit log: [since, until)."""

    since: Instant | None = None
    until: Instant | None = None


def add(
    framework: FastAPI, engine: Engine, calls: Calls, bodies: Bodies, description: Callable[[], dict[str, Any]]
) -> None:
    """Add an endpoint for each operation of the table, and the routes that are no operation."""
    framework.state.engine, framework.state.calls, framework.state.bodies = engine, calls, bodies
    framework.router.routes.extend(_operation_routes(engine.table))
    _add_others(framework.router, engine, calls, description)


@cache
def _operation_routes(table: OperationTable) -> list[BaseRoute]:
    """Return the routes of a table's operations, made once in a process: endpoints ask the application of a request for its engine."""
    router = APIRouter(route_class=ProblemRoute)
    for route in table.routes:
        router.add_api_route(
            ROOT + route.path,
            _endpoint(route),
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
    return router.routes


def _endpoint(route: Route) -> Callable[..., Any]:
    """Return the function that answers requests of a route."""
    body_model, query_model = body_of(route), query_of(route)

    async def answer_request(request: Request, **path: Any) -> Response:
        """Check a request's query and body, and carry out the route's operation."""
        calls: Calls = request.app.state.calls
        bodies: Bodies = request.app.state.bodies
        query = path.pop("query", None)
        check_query(request, query_model)
        arguments = {"tenant_id": None, **path} if route.everywhere else dict(path)
        if isinstance(query, QueryModel):
            arguments |= given(query)
            if route.kind == "page":
                arguments["limit"] = query.limit  # type: ignore[attr-defined]  # made at run time
        if route.raw:
            async with bodies.read(request, authenticated(request).key, upload=True) as raw, calls.lane(request, route):
                return await calls.carry_out(request, route, arguments | {route.raw: raw}, lambda: raw)
        if body_model is not None:
            key = authenticated(request).key
            async with bodies.read(request, key) as sent:
                body = await bodies.json(request, body_model, sent, key)
                async with calls.lane(request, route):
                    arguments |= given(body)
                    return await calls.carry_out(request, route, arguments, lambda: body.model_dump_json().encode())
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            raise Refused(400, "request_invalid.no_body")
        async with calls.lane(request, route):
            return await calls.carry_out(request, route, arguments, bytes)

    answer_request.__signature__ = _signature(route, query_model)  # type: ignore[attr-defined]  # what the framework reads
    answer_request.__name__ = route.identity
    return answer_request


def _signature(route: Route, query_model: type[QueryModel] | None) -> inspect.Signature:
    """Return the signature that FastAPI inspects: the request, the path's parameters and the query model."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    found = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    text = Annotated[str, Path(min_length=1, max_length=MAX_TEXT)]
    found += [inspect.Parameter(each.name, keyword, annotation=text) for each in route.at("path")]
    if query_model is not None:
        found.append(inspect.Parameter("query", keyword, annotation=Annotated[query_model, Query()]))
    return inspect.Signature(found)


def check_query(request: Request, model: type[QueryModel] | None) -> None:
    """Refuse a query on a route that takes none, and a name that occurs twice, except lists."""
    if model is None and request.scope["query_string"]:
        raise Refused(400, "request_invalid.no_query")
    lists = {name for name, field in model.model_fields.items() if "list" in str(field.annotation)} if model else set()
    names = [name for name, _value in request.query_params.multi_items() if name not in lists]
    if len(names) != len(set(names)):
        raise Refused(400, "request_invalid.repeated")


def _add_others(router: APIRouter, engine: Engine, calls: Calls, description: Callable[[], dict[str, Any]]) -> None:
    """Add the routes that are no operations."""
    readiness = Readiness(engine.unready)

    @router.get("/healthz", operation_id="healthz", tags=["service"], include_in_schema=False)
    @router.get("/health/live", operation_id="health_live", tags=["service"], include_in_schema=False)
    async def live() -> Response:
        """Answer that the process lives."""
        return JSONResponse({"ok": True})

    @router.get("/health/ready", operation_id="health_ready", tags=["service"], include_in_schema=False)
    async def ready() -> Response:
        """Answer whether the ledger answers; 503 if not."""
        ok, body = health(await readiness.problems())
        return JSONResponse(body, 200 if ok else 503)

    @router.get(ROOT + "/me", operation_id="me", tags=["service"], response_model=Me, responses=errors_of(401, 429))
    async def me(request: Request) -> Response:
        """Return the caller, and the operations of its role."""
        caller = authenticated(request).caller
        known = {name: getattr(caller, name) for name in Me.model_fields.keys() - {"may"}}
        return JSONResponse(Me(**known, may=MEANING[caller.role]).model_dump(mode="json"))

    @router.get(ROOT + "/openapi.json", operation_id="openapi", tags=["service"], include_in_schema=False)
    async def openapi(request: Request) -> Response:
        """Return this description, with the place that the API is mounted at."""
        return JSONResponse(description() | {"servers": [{"url": request.scope.get("root_path") or "/"}]})

    async def stream_entries(request: Request, tenant_id: str | None, query: ExportQuery) -> Response:
        """Answer with all entries of the audit log, a line of JSON each."""
        share = authenticated(request).key
        if tenant_id is not None:
            await calls.run(share, lambda: engine.tenants.get(tenant_id))
        entries = engine.audit.export(tenant_id, since=query.since, until=query.until)
        return StreamingResponse(_lines(calls, share, entries), media_type=LINES)

    more = streamed(LINES, "one entry per line", 400, 401, 403, 404, 422, 429) | {"tags": ["audit"]}

    @router.get(
        ROOT + "/metrics/text",
        operation_id="metrics_text",
        tags=["metrics"],
        dependencies=[permission(Role.AUDITOR, of_tenant=False)],
        response_class=PlainTextResponse,
        responses=errors_of(401, 403, 429),
    )
    async def metrics_text(request: Request) -> Response:
        """Return every metric in Prometheus' text format: the ledger's, this process's, and those of all nodes."""
        return PlainTextResponse(
            await calls.run(authenticated(request).key, engine.metrics.text), media_type=PROMETHEUS
        )

    @router.get(
        ROOT + "/audit/export",
        operation_id="audit_export_everywhere",
        dependencies=[permission(Role.AUDITOR, of_tenant=False)],
        **more,
    )
    async def export_all(request: Request, query: Annotated[ExportQuery, Query()]) -> Response:
        """Return the whole audit log, oldest first, one JSON object a line."""
        return await stream_entries(request, None, query)

    @router.get(
        ROOT + "/tenants/{tenant_id}/audit/export", operation_id="audit_export", dependencies=[permission(Role.VIEWER, of_tenant=True)],
        **more,
    )  # fmt: skip
    async def export_one(
        request: Request, tenant_id: Annotated[str, Path(max_length=200)], query: Annotated[ExportQuery, Query()]
    ) -> Response:
        """Return a tenant's audit log, oldest first, one JSON object a line."""
        return await stream_entries(request, tenant_id, query)


async def _lines(calls: Calls, share: str, entries: Generator[AuditEntry]) -> Any:
    """Yield audit entries as JSON lines, read in chunks on threads; ``share``: see :attr:`lodger.engine.server.auth.Authenticated.key`."""

    def next_lines() -> str:
        """Return the next lines of the export, "" after the last."""
        texts = []
        for entry in entries:
            texts.append(json.dumps(to_jsonable(entry)) + "\n")
            if len(texts) == EXPORTED:
                break
        return "".join(texts)

    try:
        while text := await calls.run(share, next_lines):
            yield text
    finally:
        entries.close()
