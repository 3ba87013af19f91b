"""One-time sign-in links: a code that its first use replaces by the browser's own session."""

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.service.engine import Engine
from lodger.engine.store import audit
from lodger.engine.store.context import StoreContext
from lodger.engine.store.tenants import sessions, sign_in_codes
from lodger.engine.store.tenants.sessions import NewSession


def link(engine: Engine) -> str | None:
    """Return the path of a one-time link for the oldest valid administrator's token; None if there is none."""
    code = engine.tokens.sign_in_code()
    return None if code is None else f"/sign-in?code={code}"


def redeem(context: StoreContext, code: str, address: str, request_id: str) -> NewSession | None:
    """Begin a browser's session with the code of a link; None if the code is unknown, used or too old."""
    now_us = context.clock.now_us()
    with context.database.write() as connection:
        caller = sign_in_codes.redeem(connection, code, now_us)
        if caller is None:
            return None
        doing = audit.AuditSubject("sessions.begin", caller.tenant_id, caller.token_id, caller.name)
        audit_context = AuditContext(caller.called, "http", None, request_id)
        audit.write(context, connection, audit_context, doing, None, {"address": address, "by": "sign-in link"}, now_us)
        return sessions.begin(connection, caller, now_us)
