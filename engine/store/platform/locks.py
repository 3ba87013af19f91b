"""Named locks between processes of the platform: one holder at a time until its lease ends, at most once for each slot."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, or_, select, update

from lodger.engine.core.ids import PLATFORM
from lodger.engine.store.context import StoreContext
from lodger.engine.store.drivers import driver_of
from lodger.engine.store.records import AnyRow
from lodger.engine.store.rows import record
from lodger.engine.store.schema.nodes import locks

_l = locks.c


@dataclass(frozen=True, slots=True)
class Lock:
    """A named lock.

    Attributes:
        holder: its holder, or None if it is free.
        epoch: incremented each time it is taken, so that writes can be fenced with it.
        until: end of the lease.
        slot: the last slot that it was taken for.
    """

    name: str
    holder: str | None
    epoch: int
    until: datetime
    slot: datetime | None
    taken_at: datetime
    freed_at: datetime | None


def take(
    context: StoreContext,
    connection: Connection,
    name: str,
    holder: str,
    lease_us: int,
    slot_us: int | None,
    now_us: int,
) -> Lock | None:
    """Take a lock, or renew it for its holder; return None if another holds it, or held it for this or a later slot."""
    now = context.lease_us(connection, now_us)
    mine = (_l.holder == holder) & (_l.until_us > now)
    free = _l.holder.is_(None) | (_l.until_us <= now)
    if slot_us is not None:
        free = free & or_(_l.slot.is_(None), _l.slot < slot_us)
    renewed = connection.execute(
        update(locks).where(*_named(name), mine).values(until_us=now + lease_us).returning(locks)
    ).first()
    if renewed is not None:
        # The holder may renew it for the slot that it was taken for, not for a later one.
        return _lock(renewed, now) if slot_us is None or renewed.slot == slot_us else None
    fresh = {"holder": holder, "until_us": now + lease_us, "taken_us": now, "freed_us": None, "node": holder}
    fresh |= {} if slot_us is None else {"slot": slot_us}
    statement = driver_of(connection).insert(locks).values(tenant_id=PLATFORM, name=name, epoch=1, **fresh)
    taken = connection.execute(
        statement.on_conflict_do_update(
            index_elements=["tenant_id", "name"], set_=fresh | {"epoch": locks.c.epoch + 1}, where=free
        ).returning(locks)
    ).first()
    return None if taken is None else _lock(taken, now)


def free(context: StoreContext, connection: Connection, name: str, holder: str, now_us: int) -> bool:
    """Release a lock; return whether this holder had it."""
    now = context.lease_us(connection, now_us)
    mine = (*_named(name), _l.holder == holder, _l.until_us > now)
    return connection.execute(update(locks).where(*mine).values(holder=None, freed_us=now)).rowcount == 1


def list_all(context: StoreContext, connection: Connection, now_us: int) -> list[Lock]:
    """Return every lock that was ever taken, by name."""
    now = context.lease_us(connection, now_us)
    rows = connection.execute(select(locks).where(_l.tenant_id == PLATFORM).order_by(_l.name))
    return [_lock(row, now) for row in rows]


def _named(name: str) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for the lock of this name."""
    return (_l.tenant_id == PLATFORM, _l.name == name)


def _lock(row: AnyRow, now_us: int) -> Lock:
    """Return the lock of a row; one that has run out has no holder."""
    return record(Lock, row, holder=row.holder if row.until_us > now_us else None)
