"""Connections: a client at an OAuth 2 provider, with the tokens of its grant, encrypted, by name."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

import sqlalchemy as sa

from lodger.engine.core.access.origins import Origin, parse_origin
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.egress import target
from lodger.engine.egress.request_errors import Refused
from lodger.engine.features.connections.tokens import NoTokens, Tokens
from lodger.engine.store.bulk import update_row
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import events, ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.metadata import ARCHIVED, SEALED, UNDER_WAY, table_of_tenants
from lodger.engine.store.schema.script_data import TABLES, secrets
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.named import Named
from lodger.engine.store.tenants.tokens import digest
from lodger.engine.vault.vault import Sealed, Vault

MAX_CONNECTIONS, MAX_HOSTS = 50, 20
#: Most characters of all scopes, which are a part of an address that browsers open.
MAX_SCOPES = 4000
#: How the client authenticates itself, and how a grant comes about.
AUTH = ("basic", "post")
ConnectionState = Literal["waiting", "ready", "revoked", "failed"]
#: End of the address to which a provider sends a browser back.
CALLBACK = "/oauth/callback"
#: How long a link and a consent are valid, and how long a node has for one renewal, microseconds.
CONSENT_US, RENEWING_US = 600_000_000, 60_000_000
EVENT = events.ENGINE_PREFIX + "connection.revoked"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}", re.ASCII)
_LOOPBACK = re.compile(r"127(\.\d+){3}")
_TEXT = re.compile(r"[!-~]{1,2000}", re.ASCII)


def _place(row: Any) -> tuple[str, ...]:
    """Return the place that a row's encrypted values are bound to: tenant, name and settings, with where its tokens may be sent."""
    return ("connection", row["tenant_id"], row["name"], row["settings"])


def _check_row(row: dict[str, Any], cells: dict[str, Any]) -> None:
    """Check the row of a connection in an archive."""
    _check(row["name"], **json.loads(row["settings"]))


#: ``settings`` is JSON; ``sealed`` the client's secret and the tokens.
connections = table_of_tenants(
    "lodger_connections",
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("problem", sa.Text),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("expires_us", sa.BigInteger),
    sa.Column("renewing_us", sa.BigInteger),
    # Digest of the link of a consent, then of its state, which is made from the cookie of the browser that began it.
    sa.Column("consent", sa.String(64)),
    sa.Column("consent_us", sa.BigInteger),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    sa.CheckConstraint("state IN ('waiting', 'ready', 'revoked', 'failed')", name="state"),
    sa.Index("ix_lodger_connections_key", "key_id"),
    sa.Index("ix_lodger_connections_consent", "consent"),
    info={
        ARCHIVED: _check_row,
        SEALED: _place,
        UNDER_WAY: ("renewing_us", "consent", "consent_us"),
    },
)
TABLES.append(connections)
_c = connections.c


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection without its secrets.

    Attributes:
        state: waiting for consent or for a first use, ready, revoked by the provider, or failed with ``problem``.
        authorize_url: where a person consents; None for client credentials.
        hosts: hosts that requests may send the token to.
        expires_at: end of the present token, which is renewed before.
    """

    ETAG: ClassVar = ("name", "updated_at", "state")

    tenant_id: str
    name: str
    state: ConnectionState
    problem: str | None
    token_url: str
    client_id: str
    hosts: tuple[str, ...]
    scopes: tuple[str, ...]
    authorize_url: str | None
    redirect_uri: str | None
    auth: str
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """The secret values of a connection."""

    client_secret: str = field(repr=False)
    access: str | None = field(default=None, repr=False)
    refresh: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection with its secret values.

    Attributes:
        settings: JSON text as stored, which the values are bound to.
    """

    about: Connected
    kept: Kept
    expires_us: int | None
    settings: str


def _check(name: str, **settings: Any) -> None:
    """Raise InputError (connection_invalid, host_invalid) unless name and settings of a connection are valid."""
    for field_name, reason in _problems(name, **settings):
        raise InputError("connection_invalid", field=field_name, reason=reason)


def _problems(
    name: str, *, token_url: str, client_id: str, hosts: Iterable[str], scopes: Iterable[str], authorize_url: str | None,
    redirect_uri: str | None, auth: str,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield the settings of a connection that are invalid, each with the reason."""
    if not _NAME.fullmatch(name):
        yield "name", "1 to 63 ASCII letters, digits and _"
    for label, url in (("token_url", token_url), ("authorize_url", authorize_url), ("redirect_uri", redirect_uri)):
        if url is None:
            continue
        if "#" in url:
            yield label, "it has a fragment"
        try:
            origin = target.read(url).origin
            if label != "redirect_uri" and _in_the_clear(origin):
                yield label, "http is for this machine alone; use https"
        except Refused as refused:
            yield label, refused.reason
    if (authorize_url is None) != (redirect_uri is None):
        yield "redirect_uri", "a consent needs authorize_url and redirect_uri"
    if redirect_uri is not None and ("?" in redirect_uri or not redirect_uri.endswith(CALLBACK)):
        yield "redirect_uri", f"it is this server's address with {CALLBACK}"
    if auth not in AUTH:
        yield "auth", f"one of {', '.join(AUTH)}"
    if not _TEXT.fullmatch(client_id) or not all(_TEXT.fullmatch(each) for each in scopes):
        yield "client_id or scopes", "printable ASCII without spaces"
    if len(" ".join(scopes)) > MAX_SCOPES:
        yield "scopes", f"up to {MAX_SCOPES} characters together"
    origins = [parse_origin(each) for each in hosts]
    if not 1 <= len(origins) <= MAX_HOSTS:
        yield "hosts", f"1 to {MAX_HOSTS} hosts"
    for each in origins:
        if each.host == "*" or (each.host.startswith("*.") and "." not in each.host[2:]):
            yield "hosts", f"{each} would give the token to any host; name the hosts"
        if _in_the_clear(each):
            yield "hosts", f"{each} would get the token in the clear; use https"


def _in_the_clear(origin: Origin) -> bool:
    """Whether requests to an origin cross a network without TLS."""
    return origin.scheme == "http" and not (origin.host in {"localhost", "::1"} or _LOOPBACK.fullmatch(origin.host))


def put(
    vault: Vault, connection: sa.Connection, tenant_id: str, name: str, client_secret: str, settings: dict[str, Any], now_us: int
) -> Connected:  # fmt: skip
    """Create a connection or replace it; its tokens are given up.

    Raises:
        InputError: connection_invalid, connections_full, host_invalid.
        Conflict: connection_name_taken.
        NotFound: tenant_unknown.
        Unavailable: the keys are not available.
    """
    _check(name, **settings)
    if len(client_secret) > 2000 or not client_secret.isprintable():
        raise InputError("connection_invalid", field="client_secret", reason="up to 2000 printable characters")
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    if connection.scalar(sa.select(secrets.c.name).where(secrets.c.tenant_id == tenant_id, secrets.c.name == name)):
        raise Conflict("connection_name_taken", name=name)
    hosts = sorted({str(parse_origin(host)) for host in settings["hosts"]})
    text = json.dumps(settings | {"hosts": hosts}, sort_keys=True)
    key = {"tenant_id": tenant_id, "name": name}
    sealed = _seal(vault, key | {"settings": text}, Kept(client_secret))
    values = {
        "settings": text, "state": "waiting", "problem": None, "updated_us": now_us, "key_id": sealed.key_id, "sealed": sealed.text,
        "expires_us": None, "renewing_us": None, "consent": None, "consent_us": None,
    }  # fmt: skip
    if not connection.execute(sa.update(connections).where(*_mine(tenant_id, name)).values(values)).rowcount:
        if named.count(connection, tenant_id) >= MAX_CONNECTIONS:
            raise InputError("connections_full", tenant=tenant_id, maximum=MAX_CONNECTIONS)
        prepared.write(connection, sa.insert(connections).values(key | values | {"created_us": now_us}))
    return named.get(connection, tenant_id, name)


def _mine(tenant_id: str, name: str) -> tuple[Any, Any]:
    """Return the SQL conditions that a row is the connection of this name of a tenant."""
    return _c.tenant_id == tenant_id, _c.name == name


def _seal(vault: Vault, row: dict[str, Any], kept: Kept) -> Sealed:
    """Encrypt the secret values of a connection, bound to its row."""
    return vault.seal(json.dumps(asdict(kept)), *_place(row))


def open_row(vault: Vault, row: AnyRow) -> Opened:
    """Decrypt a row.

    Raises:
        Unavailable: the keys are not available, or the row was modified.
    """
    kept = Kept(**json.loads(vault.open(Sealed(row.key_id, row.sealed), *_place(row._mapping))))
    return Opened(_connected(row), kept, row.expires_us, row.settings)


def find(vault: Vault, connection: sa.Connection, tenant_id: str, name: str) -> Opened | None:
    """Return a connection with its values, None if there is none."""
    row = connection.execute(sa.select(connections).where(*_mine(tenant_id, name))).first()
    return None if row is None else open_row(vault, row)


def begin_renewal(vault: Vault, tenant_id: str, name: str, now_us: int, connection: sa.Connection) -> Opened | None:
    """Let this node renew the token, and return the connection as it is now; None while another node does, or without one."""
    free = (_c.renewing_us.is_(None)) | (_c.renewing_us < now_us)
    taken = connection.execute(
        sa.update(connections).where(*_mine(tenant_id, name), free).values(renewing_us=now_us + RENEWING_US)
    )
    return find(vault, connection, tenant_id, name) if taken.rowcount else None


def end_renewal(connection: sa.Connection, tenant_id: str, name: str) -> None:
    """Let another node begin to renew the token of a connection."""
    update_row(connection, connections, tenant_id, name, renewing_us=None)


def keep(
    vault: Vault, before: Opened, tokens: Tokens, now_us: int, connection: sa.Connection, *, consented: bool = False
) -> None:  # fmt: skip
    """Store new tokens, unless the connection was replaced meanwhile, or its grant by a person's consent."""
    row = _row_if_same(vault, connection, before, consented=consented)
    if row is None:
        return
    made = Kept(before.kept.client_secret, tokens.access, tokens.refresh or before.kept.refresh)
    sealed = _seal(vault, dict(row._mapping), made)
    values = {
        "key_id": sealed.key_id, "sealed": sealed.text, "state": "ready", "problem": None, "renewing_us": None,
        "expires_us": now_us + tokens.lasts_s * 1_000_000, "updated_us": now_us,
    }  # fmt: skip
    update_row(connection, connections, row.tenant_id, row.name, **values)


def _row_if_same(vault: Vault, connection: sa.Connection, before: Opened, *, consented: bool = False) -> AnyRow | None:
    """Return the row of a connection if it was not replaced since ``before``: same client, and same grant unless a person has
    consented anew."""
    about = before.about
    row = connection.execute(
        sa.select(connections).where(*_mine(about.tenant_id, about.name)).with_for_update()
    ).first()
    if row is None or _connected(row).created_at != about.created_at or row.settings != before.settings:
        return None
    now = open_row(vault, row).kept
    same = now.client_secret == before.kept.client_secret and (consented or now.refresh == before.kept.refresh)
    return row if same else None


def give_up(vault: Vault, context: StoreContext, before: Opened, answer: NoTokens, connection: sa.Connection) -> None:
    """Note that a provider refuses; tell the tenant's receivers of events when a grant was revoked."""
    about, now_us, state = before.about, context.clock.now_us(), "revoked" if answer.revoked else "failed"
    values = {"state": state, "problem": answer.reason, "renewing_us": None, "updated_us": now_us}
    row = _row_if_same(vault, connection, before)
    if row is None:
        return
    if row.state == state:
        end_renewal(connection, about.tenant_id, about.name)
        return
    update_row(connection, connections, about.tenant_id, about.name, **values)
    if answer.revoked:
        data = {"connection": about.name, "reason": answer.reason}
        events.enqueue(connection, about.tenant_id, EVENT, data, (context.ids.new(), 0, 0), now_us)


def begin_consent(connection: sa.Connection, tenant_id: str, name: str, link: str, now_us: int) -> None:
    """Store the digest of a link that starts a consent; an earlier link is no longer valid."""
    consent, end_us = digest(f"link {link}"), now_us + CONSENT_US
    update_row(connection, connections, tenant_id, name, consent=consent, consent_us=end_us)


def of_consent(
    vault: Vault, connection: sa.Connection, text: str, now_us: int, state: str | None = None
) -> Opened | None:
    """Return the connection of a link or a state; each of them is valid once.

    Args:
        state: for a link: the state that the provider's answer must come with.
    """
    kind = "state" if state is None else "link"  # a state, which the provider knows, is no link
    mine = (_c.consent == digest(f"{kind} {text}"), _c.consent_us > now_us)
    wanted = sa.select(connections).where(*mine).with_for_update()
    row = connection.execute(wanted).first()
    if row is None:
        return None
    following = None if state is None else digest(f"state {state}")
    update_row(connection, connections, row.tenant_id, row.name, consent=following)
    return open_row(vault, row)


def _connected(row: AnyRow) -> Connected:
    """Return the connection of a row, without its secrets."""
    settings = json.loads(row.settings)
    return record(Connected, row, **settings | {name: tuple(settings[name]) for name in ("hosts", "scopes")})


named = Named(
    connections, sa.select(connections), _connected, lambda tenant, name: NotFound("connection_missing", tenant=tenant, name=name)
)  # fmt: skip
