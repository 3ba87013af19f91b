"""Browser sessions, and the codes of one-time sign-in links that begin them; both are stored as a hash, like a token.

A session is begun with a token or for a user, and ended with the token, by time, idleness or logout. A code is valid once, for a
short time; codes have a table of their own, in which no cookie is looked up.
"""

import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.store import signing_keys
from lodger.engine.store.bulk import update_row
from lodger.engine.store.drivers import prepared
from lodger.engine.store.schema.access import sessions, sign_in_codes
from lodger.engine.store.schema.access import tokens as token_table
from lodger.engine.store.tenants import tokens

#: Maximum duration of a session, and maximum time between two requests.
LIFE_US = 12 * 3600 * 1_000_000
IDLE_US = 2 * 3600 * 1_000_000
#: Maximum number of sessions of one token: the oldest ends when another begins.
MAX_SESSIONS = 20
#: Resolution of ``seen_us``, microseconds.
SEEN_US = 60_000_000
#: Maximum time between making a sign-in link and its use.
CODE_LIFE_US = 15 * 60 * 1_000_000

_t, _c = sessions.c, sign_in_codes.c
#: A session with its token; a user's has none.
_with_token = select(
    _t.token_id, _t.seen_us, _t.expires_us.label("until_us"), _t.name.label("user_name"), _t.role.label("user_role"),
    _t.tenant_id.label("user_tenant"), token_table,
).outerjoin_from(sessions, token_table, token_table.c.id == _t.token_id)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session. ``text`` is the cookie's value; ``csrf`` must be sent with every change."""

    text: str
    csrf: str
    expires_us: int


def begin(
    connection: Connection, caller: Caller, now_us: int, *, life_us: int = LIFE_US, id_token: str | None = None
) -> NewSession:
    """Begin a session with a new random id, which prevents session fixation.

    Expired sessions, and the oldest of the same token beyond MAX_SESSIONS, are deleted. ``id_token`` is shown to the provider when the
    session ends.
    """
    text = secrets.token_urlsafe(32)
    prepared.write(connection, delete(sessions).where(_t.expires_us < now_us))
    mine = (
        select(_t.digest).where(_t.token_id == caller.token_id).order_by(_t.created_us.desc()).offset(MAX_SESSIONS - 1)
    )
    prepared.write(connection, delete(sessions).where(_t.digest.in_(list(connection.scalars(mine)))))
    prepared.write(connection, insert(sessions).values(
            digest=tokens.digest(text), token_id=caller.token_id, tenant_id=caller.tenant_id, created_us=now_us,
            expires_us=now_us + life_us, seen_us=now_us, id_token=id_token,
            **({} if caller.prefix else {"name": caller.name, "role": caller.role.value}),
        ))  # fmt: skip
    return NewSession(text, csrf(connection, text), now_us + life_us)


def find_caller(connection: Connection, text: str, now_us: int) -> tuple[Caller, bool] | None:
    """Return the caller of a session and whether to update ``seen_us``; None if the session is unknown or over."""
    row = connection.execute(_with_token.where(_t.digest == tokens.digest(text))).first()
    if row is None or row.until_us <= now_us or row.seen_us + IDLE_US <= now_us:
        return None
    found = (
        Caller(row.token_id, row.user_name, "", Role(row.user_role), row.user_tenant)
        if row.user_role is not None
        else tokens.caller_of(row, now_us)
    )
    return None if isinstance(found, str) else (found, row.seen_us + SEEN_US < now_us)


def record_seen(connection: Connection, text: str, now_us: int) -> None:
    """Update the time of the last request."""
    update_row(connection, sessions, tokens.digest(text), seen_us=now_us)


def end(connection: Connection, text: str) -> str | None:
    """End a session; return the provider's ID token if it was begun with one."""
    return connection.scalar(delete(sessions).where(_t.digest == tokens.digest(text)).returning(_t.id_token))


def csrf(connection: Connection, text: str) -> str:
    """Return the CSRF token that pages of this session send with changes."""
    return hmac.new(signing_keys.signing_key(connection), b"lodger.csrf:" + text.encode(), "sha256").hexdigest()


def create_code(connection: Connection, caller: Caller | str, now_us: int, *, life_us: int = CODE_LIFE_US) -> str:
    """Return a new code for a user, or for the caller of the token with an id; expired codes are deleted."""
    code = secrets.token_urlsafe(32)
    if isinstance(caller, str):
        _store_code(connection, code, now_us + life_us, token_id=caller)
    else:
        user = {"name": caller.name, "role": caller.role.value, "tenant_id": caller.tenant_id}
        _store_code(connection, code, now_us + life_us, token_id=caller.token_id, **user)
    prepared.write(connection, delete(sign_in_codes).where(_c.expires_us <= now_us))
    return code


def redeem_code(connection: Connection, code: str, now_us: int) -> Caller | None:
    """Use up a code and return its caller; None if it is unknown, used or expired, or its token is no longer valid."""
    row = connection.execute(
        delete(sign_in_codes).where(_c.digest == tokens.digest(code)).returning(sign_in_codes)
    ).first()
    if row is None or row.expires_us <= now_us or row.token_id is None:
        return None
    if row.role is not None:
        return Caller(row.token_id, row.name, "", Role(row.role), row.tenant_id)
    found = tokens.caller_by_id(connection, row.token_id, now_us)
    return None if isinstance(found, str) else found


def spend_state(connection: Connection, state: str, now_us: int) -> bool:
    """Use up the state of a sign-in; False if it was used up before."""
    if connection.scalar(select(_c.digest).where(_c.digest == tokens.digest(state))) is not None:
        return False
    _store_code(connection, state, now_us + CODE_LIFE_US)
    return True


def _store_code(connection: Connection, code: str, expires_us: int, **values: str | None) -> None:
    """Insert a code, as its hash."""
    prepared.write(
        connection, insert(sign_in_codes).values(digest=tokens.digest(code), expires_us=expires_us, **values)
    )
