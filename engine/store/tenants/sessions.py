"""Sessions of browsers: begun with a token, ended with it, by time, by idleness or by hand. Kept as a hash, like a token."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from lodger.engine.core.access.roles import Caller
from lodger.engine.store import signing_keys
from lodger.engine.store.schema.access import sessions
from lodger.engine.store.tenants import tokens

#: Longest session, and longest pause between two requests.
LIFE_US = 12 * 3600 * 1_000_000
IDLE_US = 2 * 3600 * 1_000_000
#: Most sessions of one token: an older one ends when another begins.
MAX_SESSIONS = 20
#: ``seen_us`` is told to so many microseconds.
SEEN_US = 60_000_000

_t = sessions.c


@dataclass(frozen=True, slots=True)
class Begun:
    """A session just begun. ``text`` is the cookie's value; ``csrf`` has to come with everything that changes something."""

    text: str
    csrf: str
    expires_us: int


def begin(connection: Connection, caller: Caller, now_us: int) -> Begun:
    """Begin a session with a name that nobody could have chosen before."""
    text = secrets.token_urlsafe(32)
    connection.execute(delete(sessions).where(_t.expires_us < now_us))
    mine = (
        select(_t.digest).where(_t.token_id == caller.token_id).order_by(_t.created_us.desc()).offset(MAX_SESSIONS - 1)
    )
    connection.execute(delete(sessions).where(_t.digest.in_(list(connection.scalars(mine)))))
    connection.execute(
        insert(sessions).values(
            digest=_digest(text), token_id=caller.token_id, tenant_id=caller.tenant_id, created_us=now_us,
            expires_us=now_us + LIFE_US, seen_us=now_us,
        )
    )  # fmt: skip
    return Begun(text, csrf(connection, text), now_us + LIFE_US)


def caller(connection: Connection, text: str, now_us: int) -> tuple[Caller, bool] | None:
    """Give whose session this is, and whether its last sight should be noted; None when it is none or is over."""
    row = connection.execute(select(sessions).where(_t.digest == _digest(text))).first()
    if row is None or row.expires_us <= now_us or row.seen_us + IDLE_US <= now_us:
        return None
    found = tokens.by_id(connection, row.token_id, now_us)
    return None if isinstance(found, str) else (found, row.seen_us + SEEN_US < now_us)


def seen(connection: Connection, text: str, now_us: int) -> None:
    """Note that a session is alive."""
    connection.execute(update(sessions).where(_t.digest == _digest(text)).values(seen_us=now_us))


def end(connection: Connection, text: str) -> None:
    """End a session."""
    connection.execute(delete(sessions).where(_t.digest == _digest(text)))


def csrf(connection: Connection, text: str) -> str:
    """Give what a page of this session sends along, which no other page can know."""
    return hmac.new(signing_keys.signing(connection), b"lodger.csrf:" + text.encode(), "sha256").hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
