"""Bearer tokens: shown once, stored as a hash, found by their public prefix, ended by expiry or revocation."""

import hashlib
import hmac
import re
import secrets

from sqlalchemy import Connection, and_, insert, or_, select, update

from lodger.engine.core.access.roles import Caller, Role
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.store import pages
from lodger.engine.store.bulk import update_row
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.list_filter import Filter
from lodger.engine.store.records import AnyRow, CreatedToken, Page, Token
from lodger.engine.store.rows import record
from lodger.engine.store.schema.access import sessions, tokens
from lodger.engine.store.tenants import tenants

#: 32 random bytes cannot be guessed, so one round of SHA-256 suffices.
SECRET_BYTES = 32
PREFIX_CHARACTERS = 10
_FORM = re.compile(r"(lodger_[a-z2-7]{10})_[A-Za-z0-9_-]{43}", re.ASCII)
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"
#: Resolution of ``used_us``, microseconds: a write per request would cost more than the response.
USED_US = 60_000_000

_t = tokens.c


def create(
    context: StoreContext,
    connection: Connection,
    name: str,
    role: str,
    tenant_id: str | None,
    expires_us: int | None,
    created_by: str,
    now_us: int,
) -> CreatedToken:
    """Create a token; only the returned value contains its text.

    Raises:
        InputError: role_unknown, token_scope, token_name_invalid, expiry_past.
        NotFound: tenant_unknown.
    """
    found = _role(role)
    if found.of_platform != (tenant_id is None):
        raise InputError("token_scope.platform" if found.of_platform else "token_scope", role=found.value)
    check_name(name)
    if tenant_id is not None:
        tenants.get(connection, tenant_id)
    if expires_us is not None and expires_us <= now_us:
        raise InputError("expiry_past")
    prefix = "lodger_" + "".join(secrets.choice(_CHARACTERS) for _ in range(PREFIX_CHARACTERS))
    text = f"{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    token_id = context.ids.new()
    prepared.write(connection, insert(tokens).values(
            id=token_id, tenant_id=tenant_id, name=name, role=found.value, prefix=prefix, digest=digest(text),
            created_us=now_us, created_by=created_by, expires_us=expires_us,
        ))  # fmt: skip
    return CreatedToken(get(connection, token_id), text)


def check_name(name: str) -> None:
    """Check the name of a token or of a user.

    Raises:
        InputError: token_name_invalid.
    """
    if not 1 <= len(name) <= 100 or not name.isprintable() or name != name.strip():
        raise InputError("token_name_invalid", name=name)


def _role(word: str) -> Role:
    """Return the role that a word names."""
    try:
        return Role(word)
    except ValueError:
        raise InputError("role_unknown", role=word, roles=Role) from None


def digest(text: str) -> str:
    """Return the hash by which a token, a session or a code is stored."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def get(connection: Connection, token: str, tenant_id: str | None = None) -> Token:
    """Return a token by id or prefix, of one tenant if it is given.

    Raises:
        NotFound: token_unknown.
    """
    which = (_t.id == token) if is_id(token) else (_t.prefix == token)
    row = connection.execute(select(tokens).where(which)).first()
    if row is None or tenant_id not in {None, row.tenant_id}:
        raise NotFound("token_unknown", token=token)
    return record(Token, row)


def list_page(connection: Connection, tenant_id: str | None, limit: int | None, cursor: str | None) -> Page[Token]:
    """Return a page of the tokens, newest first, revoked and expired ones included."""
    of, newest = f"tokens:{tenant_id}", Filter((_t.id,))
    mine = select(tokens) if tenant_id is None else select(tokens).where(_t.tenant_id == tenant_id)
    return pages.read(connection, of, newest, mine, lambda rows: [record(Token, row) for row in rows], limit, cursor)


def revoke(connection: Connection, token: str, now_us: int) -> Token:
    """Revoke a token and its sessions at once; a revoked one is left unchanged."""
    found = get(connection, token)
    if found.revoked_at is None:
        update_row(connection, tokens, found.id, revoked_us=now_us)
    prepared.write(connection, sessions.delete().where(sessions.c.token_id == found.id))
    return get(connection, found.id)


def any_of_platform(connection: Connection) -> bool:
    """Whether an admin token was ever created in this ledger."""
    statement = select(_t.id).where(_t.role == Role.ADMIN.value, _t.copied == 0).limit(1)
    return connection.scalar(statement) is not None


def shown(text: str) -> str:
    """Return the public prefix of a token; of a text that is no token of Lodger, nothing."""
    form = _FORM.fullmatch(text)
    return f"{form[1]}…" if form else "***"


def oldest_administrator(connection: Connection, now_us: int) -> str | None:
    """Return the id of the oldest admin token that is neither revoked nor expired, or None."""
    valid = and_(_t.copied == 0, _t.revoked_us.is_(None), or_(_t.expires_us.is_(None), _t.expires_us > now_us))
    statement = select(_t.id).where(_t.role == Role.ADMIN.value, valid).order_by(_t.created_us, _t.id).limit(1)
    return connection.scalar(statement)


def authenticate(connection: Connection, text: str, now_us: int) -> tuple[Caller, int | None] | str:
    """Return the caller of a token and its last use; or the reason for refusal: ``unknown``, ``expired``, ``revoked``.

    The cost is the same for unknown and wrong tokens: always one query and one comparison. It is the last one of its read.
    """
    form = _FORM.fullmatch(text)
    prepared.last(connection)
    row = connection.execute(select(tokens).where(_t.prefix == (form[1] if form else ""))).first()
    if not hmac.compare_digest(digest(text), row.digest if row is not None else digest("nobody's")) or row is None:
        return "unknown"
    return _caller_or_refusal(row, now_us)


def caller_by_id(connection: Connection, token_id: str, now_us: int) -> Caller | str:
    """Return the caller of a token, for a session that was begun with it; or the reason for refusal."""
    return caller_of(connection.execute(select(tokens).where(_t.id == token_id)).first(), now_us)


def caller_of(row: AnyRow | None, now_us: int) -> Caller | str:
    """Return the caller of a token's row; or the reason for refusal. A row without an id is none."""
    if row is None or row.id is None:
        return "unknown"
    standing = _caller_or_refusal(row, now_us)
    return standing if isinstance(standing, str) else standing[0]


def _caller_or_refusal(row: AnyRow, now_us: int) -> tuple[Caller, int | None] | str:
    """Return the caller of a token's row with its last use, or the reason for refusal: ``expired``, ``revoked``."""
    if row.revoked_us is not None:
        return "revoked"
    if row.expires_us is not None and row.expires_us <= now_us:
        return "expired"
    return Caller(row.id, row.name, row.prefix, Role(row.role), row.tenant_id, copied=bool(row.copied)), row.used_us


def record_use(connection: Connection, token_id: str, now_us: int) -> None:
    """Record the use of a token."""
    stale = or_(_t.used_us.is_(None), _t.used_us < now_us - USED_US)
    prepared.write(connection, update(tokens).where(and_(_t.id == token_id, stale)).values(used_us=now_us))
