"""Webhooks: the receivers of a tenant's events, by name, each with its own encrypted secret."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

import sqlalchemy as sa

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.core.ids import PLATFORM
from lodger.engine.egress import signature, target
from lodger.engine.egress.request_errors import Refused
from lodger.engine.store.drivers import prepared
from lodger.engine.store.queue import outbox, ready_queue
from lodger.engine.store.queue.events import EVENT_NAME, matches
from lodger.engine.store.records import Json
from lodger.engine.store.rows import record
from lodger.engine.store.schema.metadata import ARCHIVED, SEALED, table_of_tenants
from lodger.engine.store.schema.script_data import TABLES
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.named import Named
from lodger.engine.vault.vault import Sealed, Vault

MAX_WEBHOOKS = 50
MAX_EVENTS = 50
#: Why a message of a deleted webhook is not sent.
DELETED = "the webhook was deleted"
#: Forms of a body: Standard Webhooks, or the JSON that Slack and compatible chats accept.
STYLES = ("standard", "slack")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,61}", re.ASCII)  # messages to the platform's have an @ before it


def _check_row(row: dict[str, Any], cells: dict[str, Any]) -> None:
    """Check the row of a webhook in an archive."""
    check(row["name"], row["url"], cells["events"], row["style"])


#: Receivers of events; secrets are encrypted like tenants' own.
webhooks = table_of_tenants(
    "lodger_webhooks",
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    # Of the bodies: standard, or slack.
    sa.Column("style", sa.String(16), nullable=False, server_default="standard"),
    sa.Index("ix_lodger_webhooks_key", "key_id"),
    info={
        ARCHIVED: _check_row,
        SEALED: lambda row: ("webhook", row["tenant_id"], row["name"]),
    },
)
TABLES.append(webhooks)
_c = webhooks.c


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of events.

    Attributes:
        events: names, ``prefix.*`` and ``*``.
        style: of the bodies, one of :data:`STYLES`.
    """

    ETAG: ClassVar = ("name", "created_at", "updated_at")

    tenant_id: str
    name: str
    url: str
    events: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    style: str = "standard"


@dataclass(frozen=True, slots=True)
class CreatedWebhook:
    """A webhook with the secret for its receiver's signature checks; shown only once."""

    webhook: Webhook
    secret: str = field(repr=False)


def put(
    vault: Vault,
    connection: sa.Connection,
    tenant_id: str,
    name: str,
    url: str,
    events: Iterable[str],
    now_us: int,
    *,
    style: str = "standard",
) -> CreatedWebhook | Webhook:
    """Create a webhook and return it with its secret; or change the URL and events of an existing one, which keeps its secret.

    Raises:
        InputError: webhook_name_invalid, webhook_url_invalid, webhook_style_unknown, event_invalid, webhooks_full.
        NotFound: tenant_unknown.
        Unavailable: the keys are not available.
    """
    wanted = check(name, url, events, style)
    ready_queue.lock(connection, [tenant_id])
    tenants.get(connection, tenant_id)
    mine = (_c.tenant_id == tenant_id, _c.name == name)
    values = {"url": url, "events": json.dumps(wanted), "style": style, "updated_us": now_us}
    if connection.execute(sa.update(webhooks).where(*mine).values(values)).rowcount:
        return named.get(connection, tenant_id, name)
    if named.count(connection, tenant_id) >= MAX_WEBHOOKS:
        raise InputError("webhooks_full", tenant=tenant_id, maximum=MAX_WEBHOOKS)
    secret = signature.new_secret()
    sealed = vault.seal(secret, "webhook", tenant_id, name)
    keys = {"key_id": sealed.key_id, "sealed": sealed.text}
    prepared.write(
        connection, sa.insert(webhooks).values(tenant_id=tenant_id, name=name, created_us=now_us, **values, **keys)
    )
    return CreatedWebhook(named.get(connection, tenant_id, name), secret)


def renew_secret(vault: Vault, connection: sa.Connection, tenant_id: str, name: str, now_us: int) -> CreatedWebhook:
    """Create a new secret of a webhook, which signs from now on.

    Raises:
        NotFound: webhook_unknown.
        Unavailable: the keys are not available.
    """
    ready_queue.lock(connection, [tenant_id])
    named.get(connection, tenant_id, name)
    secret = signature.new_secret()
    sealed = vault.seal(secret, "webhook", tenant_id, name)
    values = {"key_id": sealed.key_id, "sealed": sealed.text, "updated_us": now_us}
    prepared.write(connection, sa.update(webhooks).where(_c.tenant_id == tenant_id, _c.name == name).values(values))
    return CreatedWebhook(named.get(connection, tenant_id, name), secret)


def delete(connection: sa.Connection, tenant_id: str, name: str) -> Webhook:
    """Delete a webhook and return it; its waiting messages fail now, so that a later one of its name does not get them.

    Raises:
        NotFound: webhook_unknown.
    """
    found = named.erase(connection, tenant_id, name)
    everywhere = tenant_id == PLATFORM
    target, of = (f"@{name}", None) if everywhere else (name, tenant_id)
    outbox.give_up(connection, "webhook", target, of, DELETED)
    return found


def route(vault: Vault, connection: sa.Connection, tenant_id: str, name: str) -> tuple[Webhook, str] | None:
    """Return a webhook with the secret that signs; None if it does not exist.

    Raises:
        Unavailable: the keys are not available, or the row was modified.
    """
    row = connection.execute(sa.select(webhooks).where(_c.tenant_id == tenant_id, _c.name == name)).first()
    if row is None:
        return None
    return named.make(row), vault.open(Sealed(row.key_id, row.sealed), "webhook", tenant_id, name)


def check(name: str, url: str, events: Iterable[str], style: str = "standard") -> list[str]:
    """Check the parts of a webhook and return its events in order, without duplicates.

    Raises:
        InputError: webhook_name_invalid, webhook_url_invalid, webhook_style_unknown, event_invalid.
    """
    if style not in STYLES:
        raise InputError("webhook_style_unknown", style=style)
    if not _NAME.fullmatch(name):
        raise InputError("webhook_name_invalid", name=name)  # fmt: skip
    try:
        target.read(url)
    except Refused as refused:
        raise InputError("webhook_url_invalid", url=url, reason=refused.reason) from None  # fmt: skip
    wanted = sorted(set(events))
    for each in wanted:
        if each != "*" and not EVENT_NAME.fullmatch(each.removesuffix(".*")):
            raise InputError("event_invalid", event=each)  # fmt: skip
    if not 0 < len(wanted) <= MAX_EVENTS:
        raise InputError("event_invalid.count", count=len(wanted), maximum=MAX_EVENTS)
    return wanted


def enqueue(
    connection: sa.Connection, tenant_id: str, event: str, data: Json, place: tuple[str, int, int], now_us: int
) -> int:
    """Enqueue an event for every webhook that subscribes to it; see :func:`lodger.engine.store.queue.events.enqueue`."""
    rows = connection.execute(sa.select(webhooks).where(_c.tenant_id.in_({tenant_id, PLATFORM}))).all()
    action_id, step, number = place
    made: list[dict[str, Any]] = []
    for row in rows:
        if not matches(json.loads(row.events), event):
            continue
        theirs = {} if row.tenant_id == tenant_id else {"tenant": tenant_id}
        name = f"@{row.name}" if theirs else row.name
        body = json.dumps({"type": event, **theirs, "data": data}, ensure_ascii=False, separators=(",", ":"))
        text = json.dumps([tenant_id, action_id, step, number, name])
        identity = "msg_" + hashlib.sha256(text.encode()).hexdigest()[:32]
        made.append({"tenant_id": tenant_id, "id": identity, "action_id": action_id, "step": step, "n": number, "kind": "webhook",
                     "target": name, "message_id": identity, "payload": body})  # fmt: skip
    outbox.enqueue(connection, made, now_us)
    return len(made)


def subscriptions(connection: sa.Connection, tenant_ids: Sequence[str]) -> dict[str, list[list[str]]]:
    """Return the patterns of events of each webhook, by tenant."""
    wanted = sa.select(_c.tenant_id, _c.events).where(_c.tenant_id.in_({*tenant_ids, PLATFORM}))
    found: dict[str, list[list[str]]] = {}
    for row in connection.execute(wanted):
        for tenant_id in tenant_ids if row.tenant_id == PLATFORM else (row.tenant_id,):
            found.setdefault(tenant_id, []).append(json.loads(row.events))
    return found


def exist(tenant: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return the SQL condition that the tenant in this column, or the platform, has a webhook."""
    return sa.exists().where(_c.tenant_id.in_((tenant, PLATFORM)))


def owner(tenant_id: str, to: str) -> tuple[str, str]:
    """Return tenant and name of the webhook that a tenant's message goes to: those of the platform begin with @."""
    return (PLATFORM, to[1:]) if to.startswith("@") else (tenant_id, to)


named = Named(
    webhooks,
    sa.select(webhooks),
    partial(record, Webhook),
    lambda tenant, name: NotFound("webhook_unknown", tenant=tenant, name=name),
)
