"""One-time sign-in links: a session of an administrator that its first use replaces by the browser's own."""

from sqlalchemy import Connection

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.store.context import StoreContext
from lodger.engine.store.tenants import sessions, tokens
from lodger.engine.store.tenants.sessions import NewSession
from lodger.engine.sync import Engine

#: The longest time between making a link and its use, microseconds.
LINK_US = 15 * 60 * 1_000_000


def link(engine: Engine) -> str | None:
    """Return the path of a one-time link for the oldest valid administrator's token; None if there is none."""
    context, now_us = engine.context, engine.context.clock.now_us()
    admins = [each for each in engine.tokens.list(limit=None) if each.role == Role.ADMIN and each.revoked_at is None]
    with context.database.write() as connection:
        for token in sorted(admins, key=lambda each: each.created_at):
            found = tokens.caller_by_id(connection, token.id, now_us)
            if isinstance(found, Caller):
                return f"/sign-in?code={sessions.begin(connection, found, now_us).text}"
    return None


def redeem(context: StoreContext, code: str) -> NewSession | None:
    """End the session of a link and begin the browser's own; None if the link is unknown, used or too old."""
    now_us = context.clock.now_us()

    def work(connection: Connection) -> NewSession | None:
        found = sessions.find_caller(connection, code, now_us)
        if found is None or sessions.age_us(connection, code, now_us) > LINK_US:
            return None
        sessions.end(connection, code)
        return sessions.begin(connection, found[0], now_us)

    with context.database.write() as connection:
        return work(connection)
