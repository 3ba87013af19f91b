"""The audit log: a row for every change, written in the transaction of the change, never touched again."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, false, insert, select

from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.clock import from_us, to_us
from lodger.engine.core.ids import is_id
from lodger.engine.store.context import StoreContext
from lodger.engine.store.pages import Cut, read
from lodger.engine.store.records import AnyRow, AuditEntry, Json
from lodger.engine.store.schema.access import audit

#: The platform's own rows belong to no tenant.
PLATFORM = ""
#: A value longer than this, as JSON, is told by its length and digest: the log keeps what changed, not a second copy of it.
MAX_BYTES = 8192
#: Rows that an export reads at once.
PAGE = 500

_t = audit.c


@dataclass(frozen=True, slots=True)
class Doing:
    """What is done to what: a verb such as ``schedules.pause``, whose it is, the id it has and the name people know."""

    verb: str
    tenant_id: str | None
    target: str
    named: str | None = None


def write(
    context: StoreContext,
    connection: Connection,
    audit_context: AuditContext,
    doing: Doing,
    before: Json,
    after: Json,
    now_us: int,
    *,
    brief: bool = False,
) -> None:
    """Add a row.

    Args:
        before, after: JSON values; None where there is nothing.
        brief: store lengths and digests only, because the tenant has no room left: its changes are logged all the same.
    """
    maximum = 0 if brief else MAX_BYTES
    connection.execute(
        insert(audit).values(
            tenant_id=PLATFORM if doing.tenant_id is None else doing.tenant_id,
            id=context.ids.new(),
            at_us=now_us,
            actor=audit_context.actor,
            via=audit_context.via,
            verb=doing.verb,
            target=doing.target[:200],
            named=doing.named[:200] if doing.named else None,
            before=_kept(before, maximum),
            after=_kept(after, maximum),
            why=audit_context.why,
            request_id=audit_context.request_id,
        )
    )


def _kept(body: Json, maximum: int) -> str | None:
    if body is None:
        return None
    if maximum == 0:
        body = _short(body, maximum)
    elif isinstance(body, dict):
        body = {name: _short(value, maximum) for name, value in body.items()}
    return _text(body)


def _short(value: Json, maximum: int) -> Json:
    text = _text(value)
    if len(text) <= maximum:
        return value
    return {"bytes": len(text.encode("utf-8", "surrogatepass")), "sha256": _digest(text)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(body: Json) -> str:
    # Escapes, not letters: a result may hold half of a surrogate pair or a NUL, which no database stores.
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Sought:
    """Which rows are wanted; None is any. ``tenant_id`` "" is the platform's own."""

    tenant_id: str | None = None
    verb: str | None = None
    target: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def some(connection: Connection, sought: Sought, *, limit: int | None, before: str | None = None) -> Cut[AuditEntry]:
    """Give rows, newest first; ``before`` is the id of the last one of the page before."""
    statement = _which(sought).order_by(_t.id.desc())
    if before is not None:
        statement = statement.where(_t.id < before if is_id(before) else false())
    return read(connection, statement, limit, lambda rows: [_entry(row) for row in rows])


def every(connection: Connection, sought: Sought) -> Iterator[AuditEntry]:
    """Give rows, oldest first, reading a page at a time."""
    last: str | None = None
    while True:
        statement = _which(sought).order_by(_t.id).limit(PAGE)
        rows = connection.execute(statement if last is None else statement.where(_t.id > last)).all()
        yield from (_entry(row) for row in rows)
        if len(rows) < PAGE:
            return
        last = rows[-1].id


def _which(sought: Sought) -> Select[Any]:
    statement = select(audit)
    for column, value in ((_t.tenant_id, sought.tenant_id), (_t.actor, sought.actor)):
        if value is not None:
            statement = statement.where(column == value)
    if sought.target is not None:
        statement = statement.where((_t.target == sought.target) | (_t.named == sought.target))
    if sought.verb is not None:
        noun = sought.verb.endswith(".")
        statement = statement.where(
            _t.verb.startswith(sought.verb, autoescape=True) if noun else _t.verb == sought.verb
        )
    if sought.since is not None:
        statement = statement.where(_t.at_us >= to_us(sought.since))
    if sought.until is not None:
        statement = statement.where(_t.at_us < to_us(sought.until))
    return statement


def _entry(row: AnyRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=from_us(row.at_us),
        tenant_id=row.tenant_id or None,
        actor=row.actor,
        via=row.via,
        verb=row.verb,
        target=row.target,
        named=row.named,
        before=None if row.before is None else json.loads(row.before),
        after=None if row.after is None else json.loads(row.after),
        why=row.why,
        request_id=row.request_id,
    )
