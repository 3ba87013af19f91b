"""Sessions of browsers that begin without a token: by a link that works once, or at a provider; and the page that follows."""

import logging
import re
from collections.abc import Callable

from sqlalchemy import Connection
from starlette.requests import Request

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.access.roles import Caller
from lodger.engine.server.auth import client, session_of
from lodger.engine.server.operation_call import request_id
from lodger.engine.service.engine import Engine
from lodger.engine.store import audit
from lodger.engine.store.context import StoreContext
from lodger.engine.store.tenants import sessions
from lodger.engine.store.tenants.sessions import NewSession
from lodger.engine.web.page import root_of

log = logging.getLogger("lodger.api")
FindCaller = Callable[[Connection], Caller | None]
#: A path of this host: no other host after two slashes or a backslash, and nothing that a header or a browser reads differently.
PATH = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}", re.ASCII)


def link(engine: Engine) -> str | None:
    """Return the path of a one-time link for the oldest valid administrator's token; None if there is none."""
    code = engine.tokens.sign_in_code()
    return None if code is None else f"/sign-in?code={code}"


def begin(
    context: StoreContext,
    request: Request,
    find: FindCaller,
    by: str,
    *,
    life_us: int = sessions.LIFE_US,
    id_token: str | None = None,
) -> NewSession | None:
    """Begin a session of the browser in place of the one that it has; None if there is no caller.

    Args:
        find: returns the caller, in the transaction in which the session begins.
        by: how the browser signs in, for the audit log.
        life_us, id_token: see :func:`lodger.engine.store.tenants.sessions.begin`.
    """
    now_us, before = context.clock.now_us(), session_of(request)
    with context.database.write() as connection:
        caller = find(connection)
        if caller is None:
            return None
        if before is not None:
            sessions.end(connection, before)
        doing = audit.AuditSubject("sessions.begin", caller.tenant_id, caller.token_id, caller.name)
        audit_context = AuditContext(caller.called, "http", request_id=request_id(request))
        audit.write(context, connection, audit_context, doing, None, {"address": client(request), "by": by}, now_us)
        return sessions.begin(connection, caller, now_us, life_us=life_us, id_token=id_token)


def own_path(request: Request, place: str) -> str:
    """Return the path and query of an address of this dashboard; its root for any other."""
    root, host = root_of(request), re.escape(request.headers.get("host", ""))
    wanted = re.sub(rf"^https?://{host}(?=/)", "", place).partition("#")[0]
    return wanted if PATH.fullmatch(wanted) and wanted.startswith(root + "/") else root + "/"


def page_after(request: Request) -> str:
    """Return the page of the dashboard that a request names with ``next``, but for the page to sign in; else the root."""
    wanted = own_path(request, request.query_params.get("next", ""))
    return root_of(request) + "/" if wanted.startswith(root_of(request) + "/sign-in") else wanted
