"""Routes that are no verb of the engine: who am I, the description, the audit log as lines, whether the service lives."""

import json
from collections.abc import Callable, Generator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from lodger.engine.core.access.roles import MEANING, Role
from lodger.engine.core.serialization import shaped
from lodger.engine.server.calls import Calls, asker, permission
from lodger.engine.server.models import Queried
from lodger.engine.server.schema import errors_of
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT, Instant
from lodger.engine.store.records import AuditEntry
from lodger.engine.store.tenants import tenants

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
#: Lines that an export reads before it hands them on.
TOGETHER = 200


class Me(BaseModel):
    """Whoever asks."""

    token_id: str
    name: str
    prefix: str
    role: Role
    tenant_id: str | None
    may: str


class Exported(Queried):
    """Which part of the audit log is wanted: [since, until)."""

    since: Instant | None = None
    until: Instant | None = None


def add(made: APIRouter, engine: Engine, calls: Calls, description: Callable[[], dict[str, Any]]) -> None:
    """Add the routes."""

    @made.get("/healthz", operation_id="healthz", tags=["service"], include_in_schema=False)
    async def healthz() -> Response:
        """Say that the process answers."""
        return JSONResponse({"ok": True})

    @made.get(ROOT + "/me", operation_id="me", tags=["service"], response_model=Me, responses=errors_of(401, 429))
    async def me(request: Request) -> Response:
        """Say who asks, and what the role may."""
        caller = asker(request).caller
        said = Me(
            token_id=caller.token_id, name=caller.name, prefix=caller.prefix, role=caller.role,
            tenant_id=caller.tenant_id, may=MEANING[caller.role],
        )  # fmt: skip
        return JSONResponse(said.model_dump(mode="json"))

    @made.get(ROOT + "/openapi.json", operation_id="openapi", tags=["service"], include_in_schema=False)
    async def openapi() -> Response:
        """Give this description."""
        return JSONResponse(description())

    @made.get(
        ROOT + "/metrics/text",
        operation_id="metrics_text",
        tags=["metrics"],
        dependencies=[permission(Role.OPERATOR, of_tenant=False)],
        response_class=PlainTextResponse,
        responses=errors_of(401, 403, 429),
    )
    async def metrics_text() -> Response:
        """Return every metric in Prometheus' text format: the ledger's, this process's, and those of all nodes."""
        return PlainTextResponse(await calls.run(engine.metrics.text), media_type=PROMETHEUS)

    async def lines(tenant_id: str | None, query: Exported) -> Response:
        if tenant_id is not None:
            await calls.run(lambda: _there(engine, tenant_id))
        entries = engine.audit.export(tenant_id, since=query.since, until=query.until)
        return StreamingResponse(_lines(calls, entries), media_type="application/x-ndjson")

    streams: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}, "description": "one entry a line"}
    }
    more: dict[str, Any] = {"tags": ["audit"], "response_class": StreamingResponse}

    @made.get(
        ROOT + "/audit/export",
        operation_id="audit_export_everywhere",
        dependencies=[permission(Role.OPERATOR, of_tenant=False)],
        responses=streams | errors_of(400, 401, 403, 422, 429),
        **more,
    )
    async def export_all(query: Annotated[Exported, Query()]) -> Response:
        """Give the whole audit log, oldest first, one JSON object a line."""
        return await lines(None, query)

    @made.get(
        ROOT + "/tenants/{tenant_id}/audit/export", operation_id="audit_export", dependencies=[permission(Role.VIEWER, of_tenant=True)],
        responses=streams | errors_of(400, 401, 403, 404, 422, 429), **more,
    )  # fmt: skip
    async def export_one(
        tenant_id: Annotated[str, Path(max_length=200)], query: Annotated[Exported, Query()]
    ) -> Response:
        """Give a tenant's audit log, oldest first, one JSON object a line."""
        return await lines(tenant_id, query)


def _there(engine: Engine, tenant_id: str) -> None:
    with engine.books.database.read() as connection:
        tenants.get(connection, tenant_id)


async def _lines(calls: Calls, entries: Generator[AuditEntry]) -> Any:  # noqa: ANN401 - an async generator of text
    def some() -> str:
        said = []
        for entry in entries:
            said.append(json.dumps(shaped(entry)) + "\n")
            if len(said) == TOGETHER:
                break
        return "".join(said)

    try:
        while text := await calls.run(some):
            yield text
    finally:
        entries.close()
