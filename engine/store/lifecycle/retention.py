"""Retention: deletes old history in bounded transactions, separate from claims."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, String, bindparam, case, cast, delete, exists, func, select, tuple_, update

from lodger.engine.core.ids import first_id_at
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import (
    actions,
    attempt_logs,
    attempt_records,
    attempts,
    limits_in_effect,
    schedules,
    tenants,
    usage_days,
)
from lodger.engine.store.schema.script_data import fetches, kv, outbox, reservations
from lodger.engine.store.usage import budget_reservations, storage_usage
from lodger.engine.store.usage.usage import DAY_US

#: Maximum number of rows that one transaction deletes.
MAX_ROWS = 100
#: Maximum time for which one transaction holds the tenant's lock, or SQLite's writer, seconds. Its commit comes on top: one write to disk.
MAX_HELD_S = 0.1
#: Number of actions measured in one query, oldest first: SQLite reads them whole, and one can have megabytes.
MEASURED_ROWS = 16
#: Days for which usage is kept for billing, whatever the tenant's retention.
USAGE_DAYS = 400

_over = actions.c.state.in_(("done", "failed", "cancelled", "skipped", "expired"))
_ended = case((actions.c.finished_us.is_not(None), actions.c.finished_us), else_=actions.c.due_at)
# The last successful run passes its result to the next one, however old it is.
_done = actions.alias("done")
_last_done = (actions.c.state == "done") & (
    actions.c.slot
    == select(_done.c.slot)
    .where(_done.c.schedule_id == actions.c.schedule_id, _done.c.state == "done", _done.c.slot.is_not(None))
    .order_by(_done.c.slot.desc())
    .limit(1)
    .correlate(actions)
    .scalar_subquery()
)
# The history of an unsent message is its action.
_unsent = exists().where(
    outbox.c.tenant_id == actions.c.tenant_id,
    outbox.c.action_id == cast(actions.c.id, String),
    outbox.c.state.in_(("queued", "sending")),
)
_dispensable = _over & ~func.coalesce(_last_done, False) & ~_unsent
_columns = (actions.c.tenant_id, actions.c.id, actions.c.schedule_id, actions.c.slot, actions.c.slot_to)
_some = select(*_columns).where(_dispensable).limit(MAX_ROWS)
_of_tenant = _some.where(actions.c.tenant_id == bindparam("tenant"))
# Ids begin with their creation time: an action created later cannot have ended before.
_older = _of_tenant.where(actions.c.id < bindparam("horizon"), _ended < bindparam("before"))
_further = _some.where(actions.c.schedule_id == bindparam("schedule"), actions.c.id < bindparam("oldest"))
_first = _of_tenant.order_by(actions.c.id)
_oldest = (
    select(actions.c.id)
    .where(actions.c.schedule_id == bindparam("schedule"), _over)
    .order_by(actions.c.id.desc())
    .limit(1)
    .offset(bindparam("skipped"))
)


def find_old(
    context: StoreContext, connection: Connection, tenant_id: str, now_us: int, skipped: Collection[AnyRow] = ()
) -> list[AnyRow]:
    """Return up to :data:`MAX_ROWS` actions of a tenant that are past retention, without the skipped ones; reads only.

    The newest ``retention_runs`` of each schedule are kept if they ended within ``retention_days``, and the last
    successful one always. While the tenant uses more than its ``storage_bytes``, the oldest actions are returned too.
    """
    limits = connection.scalar(select(limits_in_effect).where(tenants.c.id == tenant_id))
    if limits is None:
        return []
    allowed = context.content_cache.allowance(limits)
    before = now_us - allowed.retention_days * DAY_US
    values: dict[str, Any] = {"tenant": tenant_id, "before": before, "horizon": first_id_at(max(0, before))}
    found = list(connection.execute(_older, values).all())
    seen = {*found, *skipped}
    found = [row for row in found if row not in skipped]
    for (schedule,) in connection.execute(select(schedules.c.id).where(schedules.c.tenant_id == tenant_id)).all():
        if len(found) >= MAX_ROWS:
            break
        oldest = connection.scalar(_oldest, {"schedule": schedule, "skipped": allowed.retention_runs - 1})
        if oldest is not None:
            rows = connection.execute(_further, {"schedule": schedule, "oldest": oldest}).all()
            found += [row for row in rows if row not in seen]
    return found[:MAX_ROWS] or _over_limit(connection, tenant_id, allowed.storage_bytes, skipped)


def _over_limit(connection: Connection, tenant_id: str, max_bytes: int, skipped: Collection[AnyRow]) -> list[AnyRow]:
    """Return the oldest actions that must be deleted to get below the tenant's storage limit."""
    over = storage_usage.of_tenant(connection, tenant_id).total - max_bytes
    if over <= 0:
        return []
    rows = [row for row in connection.execute(_first, {"tenant": tenant_id}) if row not in skipped]
    found: list[AnyRow] = []
    while rows[len(found) :] and over > 0:
        portion = rows[len(found) : len(found) + MEASURED_ROWS]
        sizes = storage_usage.of_actions(connection, tenant_id, [row.id for row in portion], messages=True)
        for row in portion:
            if over <= 0:
                break
            found.append(row)
            over -= sizes[row.id]
    return found


_deletes = [
    delete(table).where(table.c.tenant_id == bindparam("tenant"), table.c[column].in_(bindparam("ids", expanding=True)))
    for table, column in (
        (outbox, "action_id"),
        (fetches, "action_id"),
        (reservations, "action_id"),
        (attempt_logs, "action_id"),
        (attempt_records, "action_id"),
        (attempts, "action_id"),
        (actions, "id"),
    )
]


def delete_actions(
    connection: Connection, rows: Sequence[AnyRow], now_us: int, elapsed_s: Callable[[], float]
) -> float:
    """Delete these actions with their attempts, logs and messages, and usage older than :data:`USAGE_DAYS`.

    Deleted slots can never be backfilled, because the ledger no longer knows whether they ran.

    Returns:
        Seconds for which the locks were held, without the commit.

    Raises:
        StatementTimeout: it would take longer than :data:`MAX_HELD_S`.
    """
    return _in_time(connection, rows, elapsed_s, lambda tenants: _delete_actions(connection, rows, tenants, now_us))


def _in_time(
    connection: Connection,
    rows: Sequence[AnyRow],
    elapsed_s: Callable[[], float],
    work: Callable[[list[str]], object],
) -> float:
    """Lock the tenants of these rows, which may take as long as other transactions hold them, and then work for a limited time."""
    tenant_ids = sorted({row.tenant_id for row in rows})
    ready_queue.lock(connection, tenant_ids)
    begun_s = elapsed_s()
    # A statement may end a tenth of the limit after it.
    with driver_of(connection).time_limit(connection, MAX_HELD_S / 1.1, elapsed_s):
        work(tenant_ids)
    return elapsed_s() - begun_s


def _delete_actions(connection: Connection, rows: Sequence[AnyRow], tenant_ids: list[str], now_us: int) -> None:
    """Delete these actions of locked tenants with all that belongs to them, and note which slots are gone."""
    for tenant in tenant_ids:
        sizes = storage_usage.of_actions(connection, tenant, [row.id for row in rows if row.tenant_id == tenant])
        storage_usage.add_history(connection, {tenant: -sizes.total()})
        values = {"tenant": tenant, "ids": [row.id for row in rows if row.tenant_id == tenant]}
        for statement in _deletes:
            connection.execute(statement, values)
    latest: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.schedule_id is not None and row.slot is not None:
            key = (row.tenant_id, row.schedule_id)
            latest[key] = max(latest.get(key, 0), row.slot_to or row.slot)
    if latest:
        # One statement: the time limit counts a statement, however many rows of values it is sent with.
        slot = case(
            *(((schedules.c.tenant_id == tenant) & (schedules.c.id == id_), at) for (tenant, id_), at in latest.items())
        )
        forgotten = schedules.c.tenant_id.in_(tenant_ids) & schedules.c.id.in_([id_ for _tenant, id_ in latest])
        older = func.coalesce(schedules.c.forgotten_us, 0) < slot
        connection.execute(update(schedules).where(forgotten, older).values(forgotten_us=slot))
    day = now_us // DAY_US - USAGE_DAYS
    for tenant in tenant_ids:
        connection.execute(delete(usage_days).where(usage_days.c.tenant_id == tenant, usage_days.c.day < day))
    budget_reservations.delete_old(connection, tenant_ids, now_us // DAY_US - 1)


_expired = (
    select(kv.c.tenant_id, kv.c.scope, kv.c.key)
    .where(kv.c.tenant_id == bindparam("tenant"), kv.c.expires_us <= bindparam("now"))
    .limit(MAX_ROWS)
)


def find_expired(connection: Connection, tenant_id: str, now_us: int, skipped: Collection[AnyRow] = ()) -> list[AnyRow]:
    """Return up to :data:`MAX_ROWS` expired keyed values of a tenant, already invisible to scripts, without the skipped ones."""
    found = connection.execute(_expired, {"tenant": tenant_id, "now": now_us})
    return [row for row in found if row not in skipped]


def delete_expired(
    connection: Connection, keys: Sequence[AnyRow], now_us: int, elapsed_s: Callable[[], float]
) -> float:
    """Delete these keyed values, except those set again meanwhile; result and error as of :func:`delete_actions`."""
    named = tuple_(kv.c.tenant_id, kv.c.scope, kv.c.key).in_([tuple(row) for row in keys])
    statement = delete(kv).where(named, kv.c.expires_us <= now_us)
    return _in_time(connection, keys, elapsed_s, lambda _tenants: connection.execute(statement))


_has_history = select(actions.c.id).where(actions.c.tenant_id == tenants.c.id).exists()
_has_expiring = select(kv.c.key).where(kv.c.tenant_id == tenants.c.id, kv.c.expires_us.is_not(None)).exists()


def tenants_after(connection: Connection, tenant_id: str) -> list[str]:
    """Return the next hundred tenants by id that have history or expiring values, for iteration over all of them."""
    found = select(tenants.c.id).where(
        tenants.c.id > tenant_id, tenants.c.state != "deleted", _has_history | _has_expiring
    )
    return list(connection.scalars(found.order_by(tenants.c.id).limit(100)))
