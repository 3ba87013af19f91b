"""The audit log: one row for every change, written in the same transaction as the change and never modified."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.clock import to_us
from lodger.engine.store import pages
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.list_filter import Filter
from lodger.engine.store.records import AnyRow, AuditEntry, Json, Page
from lodger.engine.store.rows import record
from lodger.engine.store.schema.access import audit

#: ``tenant_id`` of the rows of the platform itself.
PLATFORM = ""
#: Values that are longer than this as JSON are stored as their length and digest.
MAX_BYTES = 8192
#: Rows that an export reads in one query.
PAGE = 500

_t = audit.c


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """The subject of an audit row: the operation, such as ``schedules.pause``, and the tenant, id and name of its target."""

    verb: str
    tenant_id: str | None
    target: str
    named: str | None = None


def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Insert audit rows, made by :func:`row`."""
    insert_many(connection, audit, rows)


def row(
    context: StoreContext,
    audit_context: AuditContext,
    doing: AuditSubject,
    before: Json,
    after: Json,
    now_us: int,
    *,
    brief: bool = False,
) -> dict[str, Any]:
    """Return an audit row.

    Args:
        before, after: JSON values; None if the target does not exist.
        brief: store only lengths and digests, for a tenant that has used up its storage.
    """
    maximum = 0 if brief else MAX_BYTES
    return {
        "tenant_id": PLATFORM if doing.tenant_id is None else doing.tenant_id,
        "id": context.ids.new(),
        "at_us": now_us,
        "actor": audit_context.actor,
        "via": audit_context.via,
        "verb": doing.verb,
        "target": doing.target[:200],
        "named": doing.named[:200] if doing.named else None,
        "before": _encode(before, maximum),
        "after": _encode(after, maximum),
        "why": audit_context.why,
        "request_id": audit_context.request_id,
    }


def _encode(body: Json, maximum: int) -> str | None:
    """Return a state for the audit log as JSON text, shortened to a maximum."""
    if body is None:
        return None
    if maximum == 0:
        body = _shorten(body, maximum)
    elif isinstance(body, dict):
        body = {name: _shorten(value, maximum) for name, value in body.items()}
    return _json(body)


def _shorten(value: Json, maximum: int) -> Json:
    """Return a value, or its size and digest if it is longer than a maximum."""
    text = _json(value)
    if len(text) <= maximum:
        return value
    return {"bytes": len(text.encode("utf-8", "surrogatepass")), "sha256": _digest(text)}


def _digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _json(body: Json) -> str:
    """Return canonical JSON text."""
    # ASCII escapes: a result may hold a lone surrogate or a NUL character, which databases do not store.
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filters of a query on the audit log; None matches any row. ``tenant_id`` "" selects the platform's rows."""

    tenant_id: str | None = None
    verb: str | None = None
    target: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_page(
    connection: Connection, filters: AuditFilter, limit: int | None, cursor: str | None, *, oldest: bool = False
) -> Page[AuditEntry]:
    """Return a page of the rows that filters match, newest or oldest first."""
    of, order = f"audit:{filters}{':oldest' if oldest else ''}", Filter((_t.id,), falls=not oldest)

    def make_entries(rows: list[AnyRow]) -> list[AuditEntry]:
        """Return the entries of rows; those of the platform have no tenant."""
        return [record(AuditEntry, row, tenant_id=row.tenant_id or None) for row in rows]

    return pages.read(connection, of, order, matching(filters), make_entries, limit, cursor)


def iterate(connection: Connection, filters: AuditFilter) -> Iterator[AuditEntry]:
    """Return rows, oldest first, reading one page at a time."""
    cursor: str | None = None
    while True:
        page = list_page(connection, filters, PAGE, cursor, oldest=True)
        yield from page
        cursor = page.next
        if cursor is None:
            return


def matching(filters: AuditFilter) -> Select[Any]:
    """Select the entries that filters match."""
    statement = select(audit)
    for column, value in ((_t.tenant_id, filters.tenant_id), (_t.actor, filters.actor)):
        if value is not None:
            statement = statement.where(column == value)
    if filters.target is not None:
        statement = statement.where((_t.target == filters.target) | (_t.named == filters.target))
    if filters.verb is not None:
        noun = filters.verb.endswith(".")
        statement = statement.where(
            _t.verb.startswith(filters.verb, autoescape=True) if noun else _t.verb == filters.verb
        )
    if filters.since is not None:
        statement = statement.where(_t.at_us >= to_us(filters.since))
    if filters.until is not None:
        statement = statement.where(_t.at_us < to_us(filters.until))
    return statement
