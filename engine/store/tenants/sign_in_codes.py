"""Codes of one-time sign-in links: valid once, for a short time, stored as a hash apart from sessions and tokens."""

import hashlib
import secrets

from sqlalchemy import Connection, delete, insert

from lodger.engine.core.access.roles import Caller
from lodger.engine.store.schema.access import sign_in_codes
from lodger.engine.store.tenants import tokens

#: Maximum time between making a link and its use.
LIFE_US = 15 * 60 * 1_000_000

_c = sign_in_codes.c


def create(connection: Connection, token_id: str, now_us: int) -> str:
    """Return a new code for the caller of a token; expired codes are deleted."""
    code = secrets.token_urlsafe(32)
    connection.execute(delete(sign_in_codes).where(_c.expires_us <= now_us))
    connection.execute(
        insert(sign_in_codes).values(digest=_digest(code), token_id=token_id, expires_us=now_us + LIFE_US)
    )
    return code


def redeem(connection: Connection, code: str, now_us: int) -> Caller | None:
    """Use up a code and return its caller; None if it is unknown, used or expired, or its token is no longer valid."""
    used = delete(sign_in_codes).where(_c.digest == _digest(code)).returning(_c.token_id, _c.expires_us)
    row = connection.execute(used).first()
    if row is None or row.expires_us <= now_us:
        return None
    found = tokens.caller_by_id(connection, row.token_id, now_us)
    return None if isinstance(found, str) else found


def _digest(code: str) -> str:
    """Return the hash by which a code is stored."""
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
