"""Codes of one-time sign-in links: valid once, for a short time, stored as a hash apart from sessions and tokens."""

import secrets

from sqlalchemy import Connection, delete, insert, select

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.store.drivers import prepared
from lodger.engine.store.schema.access import sign_in_codes
from lodger.engine.store.tenants import tokens

#: Maximum time between making a link and its use.
LIFE_US = 15 * 60 * 1_000_000

_c = sign_in_codes.c


def create(connection: Connection, caller: Caller | str, now_us: int, *, life_us: int = LIFE_US) -> str:
    """Return a new code for a user, or for the caller of the token with an id; expired codes are deleted."""
    code = secrets.token_urlsafe(32)
    if isinstance(caller, str):
        _store(connection, code, now_us + life_us, token_id=caller)
    else:
        user = {"name": caller.name, "role": caller.role.value, "tenant_id": caller.tenant_id}
        _store(connection, code, now_us + life_us, token_id=caller.token_id, **user)
    prepared.write(connection, delete(sign_in_codes).where(_c.expires_us <= now_us))
    return code


def redeem(connection: Connection, code: str, now_us: int) -> Caller | None:
    """Use up a code and return its caller; None if it is unknown, used or expired, or its token is no longer valid."""
    row = connection.execute(
        delete(sign_in_codes).where(_c.digest == tokens.digest(code)).returning(sign_in_codes)
    ).first()
    if row is None or row.expires_us <= now_us or row.token_id is None:
        return None
    if row.role is None:
        found = tokens.caller_by_id(connection, row.token_id, now_us)
        return None if isinstance(found, str) else found
    return Caller(row.token_id, row.name, "", Role(row.role), row.tenant_id)


def spend(connection: Connection, state: str, now_us: int) -> bool:
    """Use up the state of a sign-in; False if it was used up before."""
    if connection.scalar(select(_c.digest).where(_c.digest == tokens.digest(state))) is not None:
        return False
    _store(connection, state, now_us + LIFE_US)
    return True


def _store(connection: Connection, code: str, expires_us: int, **values: str | None) -> None:
    """Insert a code, as its hash."""
    prepared.write(
        connection, insert(sign_in_codes).values(digest=tokens.digest(code), expires_us=expires_us, **values)
    )
