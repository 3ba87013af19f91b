"""Sessions for browsers: begun with a token, held in a cookie that scripts cannot read and other sites cannot send."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.clock import from_us
from lodger.engine.server.auth import MAX_HEADER, Authentication, client, keep_session, own_site, session_of
from lodger.engine.server.bodies import Bodies, media
from lodger.engine.server.openapi import RequestModel, errors_of
from lodger.engine.server.operation_call import authenticated, request_id
from lodger.engine.server.problems import Refused
from lodger.engine.service.engine import Engine
from lodger.engine.service.operations.route import ROOT
from lodger.engine.store import audit
from lodger.engine.store.context import StoreContext
from lodger.engine.store.tenants import sessions
from lodger.engine.store.tenants.sessions import NewSession


class Login(RequestModel):
    """The token that begins a session; it is not kept."""

    token: str = Field(max_length=MAX_HEADER)


class BrowserSession(RequestModel):
    """A session. ``csrf`` goes into X-CSRF-Token of every request that changes something."""

    name: str
    role: Role
    tenant_id: str | None
    csrf: str
    expires_at: datetime | None = None


def begin_session(
    context: StoreContext, connection: Connection, request: Request, caller: Caller, by: str, **more: Any
) -> NewSession:
    """Store a new session in place of the browser's present one, and audit it.

    Args:
        by: how the browser signs in.
        more: ``life_us`` and ``id_token``, see :func:`lodger.engine.store.tenants.sessions.begin`.
    """
    before, now_us = session_of(request), context.clock.now_us()
    if before is not None:
        sessions.end(connection, before)
    audit_context = AuditContext(caller.called, "http", request_id=request_id(request))
    doing = audit.AuditSubject("sessions.begin", caller.tenant_id, caller.token_id, caller.name)
    after = {"address": client(request), "by": by}
    audit.write(connection, [audit.row(context, audit_context, doing, None, after, now_us)])
    return sessions.begin(connection, caller, now_us, **more)


def add(router: APIRouter, engine: Engine, bodies: Bodies, authentication: Authentication) -> None:
    """Add the routes of sessions."""
    context = engine.context

    @router.post(
        ROOT + "/session", status_code=201, operation_id="session_begin", tags=["session"], response_model=BrowserSession,
        responses=errors_of(400, 401, 403, 413, 415, 422, 429),
        openapi_extra={
            "security": [],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Login"}}},
            },
        },
    )  # fmt: skip
    async def begin(request: Request) -> Response:
        """Begin a session with a token; the answer sets a cookie."""
        if authentication.by_platform is not None:
            raise _no_session()
        own_site(request)
        if media(request) != "application/json":
            # The form of another site cannot send this media type.
            raise Refused(415, "media_type")
        async with bodies.read(request, client(request)) as sent:
            token = (await bodies.json(request, Login, sent, client(request))).token
        caller = await authentication.by_token(request, f"Bearer {token}")

        def store_session(connection: Connection) -> NewSession:
            """Store the session of the token's caller."""
            return begin_session(context, connection, request, caller, "token")

        begun = await authentication.in_ledger_of(caller, client(request), store_session, writes=True)
        answer = JSONResponse(_body(caller, begun.csrf, from_us(begun.expires_us)), 201)
        keep_session(answer, request, begun.text, sessions.LIFE_US, context.settings)
        return answer

    @router.get(
        ROOT + "/session", operation_id="session_get", tags=["session"], response_model=BrowserSession,
        responses=errors_of(401, 404, 429),
    )  # fmt: skip
    async def get(request: Request) -> Response:
        """Return the caller of this session, and the value that X-CSRF-Token of a change has to have."""
        found = authenticated(request)
        if found.by == "platform":
            return JSONResponse(_body(found.caller, "1", None))
        text = _require_session(request)

        value = await authentication.in_ledger_of(
            found.caller, client(request), lambda connection: sessions.csrf(connection, text)
        )
        return JSONResponse(_body(found.caller, value, None))

    @router.delete(
        ROOT + "/session",
        status_code=204,
        operation_id="session_end",
        tags=["session"],
        responses=errors_of(401, 403, 404, 429),
    )
    async def end(request: Request) -> Response:
        """End this session. If it was begun at a provider that ends sessions, Location is the page that does so."""
        text, found = _require_session(request), authenticated(request)

        id_token = await authentication.in_ledger_of(
            found.caller, client(request), lambda connection: sessions.end(connection, text), writes=True
        )
        answer = Response(status_code=204)
        if id_token is not None and authentication.signed_out is not None:
            place = await authentication.signed_out(request, id_token)
            if place is not None:
                answer.headers["Location"] = place
        keep_session(answer, request, "", 0, context.settings)
        return answer


def _require_session(request: Request) -> str:
    """Return the text of the session cookie; raises Refused without one."""
    text = session_of(request)
    if text is None or authenticated(request).by != "session":
        raise _no_session()
    return text


def _no_session() -> Refused:
    """Return the refusal of a request without a session."""
    return Refused(404, "session_none")


def _body(caller: Caller, csrf: str, expires: datetime | None) -> dict[str, Any]:
    """Return a session as JSON-able values."""
    session = BrowserSession(
        name=caller.name, role=caller.role, tenant_id=caller.tenant_id, csrf=csrf, expires_at=expires
    )
    return session.model_dump(mode="json")
