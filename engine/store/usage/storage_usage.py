"""Bytes that each tenant uses: stored data (counted by triggers), and history.

Triggers count stored data, whatever program writes it: documents and keyed values, the write sets of sealed attempts,
script versions, shadows and schedule revisions; also messages, which are history, and separately the audit log. The rest of
history (params of requests, results, errors, effects, logs and records of attempts) is added when it is stored and subtracted
when retention deletes it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, select

from lodger.engine.store.bulk import add_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import (
    actions,
    attempt_logs,
    attempt_records,
    attempts,
    limits_in_effect,
    tenants,
)
from lodger.engine.store.schema.script_data import outbox, storage

_c = storage.c


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Bytes of a tenant."""

    kept: int = 0
    history: int = 0

    @property
    def total(self) -> int:
        """Sum of kept and history bytes."""
        return self.kept + self.history


_of = select(_c.kept_bytes, _c.history_bytes).where(_c.tenant_id == bindparam("tenant"))


def of_tenant(connection: Connection, tenant_id: str) -> StoredBytes:
    """Return the stored bytes of a tenant."""
    row = connection.execute(_of, {"tenant": tenant_id}).first()
    return StoredBytes() if row is None else StoredBytes(row.kept_bytes, row.history_bytes)


_limited = Prepared(
    lambda _driver: (
        select(
            *(func.coalesce(each, 0).label(each.name) for each in (_c.kept_bytes, _c.history_bytes, _c.audit_bytes)),
            limits_in_effect,
            tenants.c.state,
        )
        .select_from(tenants.outerjoin(storage, tenants.c.id == _c.tenant_id))
        .where(tenants.c.id == bindparam("tenant"))
    )
)


#: More than one change stores.
MAX_CHANGE = 64 << 20


@dataclass(frozen=True, slots=True)
class Excess:
    """Which of a tenant's bytes exceed its ``storage_bytes``: stored data, these and its history, or its audit log alone.

    Attributes:
        moves: it moves to another ledger, so that nothing of it may change.
        is_near: one change may exceed the limit.
    """

    limit: int
    kept: bool = False
    total: bool = False
    audit: bool = False
    moves: bool = False
    is_near: bool = True


def excess(context: StoreContext, connection: Connection, tenant_id: str) -> Excess:
    """Return which of a tenant's bytes exceed its limit."""
    return ask_excess(context, connection, tenant_id)()


def ask_excess(context: StoreContext, connection: Connection, tenant_id: str) -> Callable[[], Excess]:
    """Ask how a tenant's bytes compare with its limit; the returned function returns the answer."""

    def make_excess(rows: list[AnyRow]) -> Excess:
        """Return how the tenant's stored bytes compare with its limit."""
        if not rows:
            return Excess(context.settings.storage_bytes)
        (row,) = rows
        limit = context.content_cache.allowance(row.limits).storage_bytes
        total = row.kept_bytes + row.history_bytes
        return Excess(
            limit, row.kept_bytes > limit, total > limit, row.audit_bytes > limit, row.state == "moving",
            total + MAX_CHANGE > limit,
        )  # fmt: skip

    return _limited.answer(connection, {"tenant": tenant_id}, make_excess)


def ask_kept_bytes(connection: Connection, tenant_ids: Collection[str]) -> Callable[[], dict[str, int]]:
    """Ask for the bytes of stored data of these tenants; the returned function returns them, without tenants that have none."""
    values = {"tenants": sorted(tenant_ids)}
    return _kept.answer(connection, values, lambda rows: {row.tenant_id: row.kept_bytes for row in rows})


_kept = Prepared(lambda driver: select(_c.tenant_id, _c.kept_bytes).where(driver.among(_c.tenant_id, "tenants")))


def over_limit(context: StoreContext, connection: Connection) -> list[str]:
    """Return tenants above their limit, among the hundred largest ones; tenants with lower limits of their own come later."""
    total = _c.kept_bytes + _c.history_bytes
    found = (
        select(_c.tenant_id, total.label("total"), limits_in_effect)
        .join(tenants, tenants.c.id == _c.tenant_id)
        .where(total > context.settings.storage_bytes, _c.history_bytes > 0)
        .order_by(total.desc(), _c.tenant_id)
        .limit(100)
    )
    rows = connection.execute(found)
    return [row.tenant_id for row in rows if row.total > context.content_cache.allowance(row.limits).storage_bytes]


def add_history(connection: Connection, bytes_of: Mapping[str, int]) -> None:
    """Add to the history of tenants; negative numbers subtract."""
    rows = [
        {"tenant_id": tenant, "kept_bytes": 0, "history_bytes": amount}
        for tenant, amount in sorted(bytes_of.items())
        if amount
    ]
    add_many(connection, storage, ("tenant_id",), rows)


def size(*texts: str | bytes | None) -> int:
    """Return the number of bytes that texts take when they are stored."""
    return sum(len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text) for text in texts if text)


#: The parts of an action's history: table, column of the action's id, counted columns.
_HISTORY = (
    (actions, actions.c.id, (actions.c.result, actions.c.params)),
    (attempts, attempts.c.action_id, (attempts.c.error, attempts.c.effects)),
    (attempt_logs, attempt_logs.c.action_id, (attempt_logs.c.lines,)),
    (attempt_records, attempt_records.c.action_id, (attempt_records.c.body,)),
)


def of_actions(
    connection: Connection, tenant_id: str, action_ids: Sequence[str], *, messages: bool = False
) -> Counter[str]:
    """Return the bytes of the history of actions, by action; with ``messages`` those of their messages too.

    :func:`add_history` subtracts the amount without messages when they are deleted.
    """
    found: Counter[str] = Counter()
    more = ((outbox, outbox.c.action_id, (outbox.c.payload,)),) if messages else ()
    for table, key, columns in (*_HISTORY, *more):
        size_of = sum((_bytes(connection, column) for column in columns[1:]), _bytes(connection, columns[0]))
        mine = (table.c.tenant_id == tenant_id, key.in_(action_ids))
        for action, total in connection.execute(select(key, func.sum(size_of)).where(*mine).group_by(key)):
            found[str(action)] += int(total)
    return found


def _bytes(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the number of bytes of a column, 0 for null."""
    return func.coalesce(driver_of(connection).byte_length(column), 0)
