"""Reservations: shares of a tenant's day budgets that running attempts hold before their use is charged.

An attempt reserves a share before it uses something that cannot be rolled back, such as a request or a query; a sealed
attempt holds the amounts that it will write. A share is released in the transaction that charges the attempt, so that
use and reservations together never exceed the limit of a day, on any number of nodes. The share of a cancelled attempt
is held until its node reports the use, or until that node's lease has ended: after that nothing can be charged any
more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, select, tuple_

from lodger.engine.store.bulk import ManyRows, add_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.scheduling import actions, attempts
from lodger.engine.store.schema.script_data import reservations
from lodger.engine.store.usage import usage

_c = reservations.c
_t = attempts.c
#: Shares are larger than needed while more than this many of that size are left.
PLENTY = 8


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """A requested reservation: at least ``need``, or ``lot`` while enough is left; ``day`` is the day of the attempt's start."""

    tenant_id: str
    action_id: str
    attempt: int
    day: int
    budget: str
    need: int
    lot: int


#: Remaining amounts by tenant, day and budget.
Free = dict[tuple[str, int, str], int]


def reserve(context: StoreContext, connection: Connection, wishes: Sequence[ReservationRequest]) -> list[int]:
    """Return a share for each request, in order: its ``lot`` while enough is left, else its ``need``, or what is left of that.

    An attempt that is over, or has moved to another node, gets nothing.
    """
    ready_queue.lock(connection, {wish.tenant_id for wish in wishes})
    free: Free = {}
    for day in sorted({wish.day for wish in wishes}):
        tenant_ids = {wish.tenant_id for wish in wishes if wish.day == day}
        for tenant, known in usage.usages_of_day(context, connection, tenant_ids, day).items():
            taken = reserved(connection, tenant, day)
            for name in {wish.budget for wish in wishes}:
                limit = known.allowed.of_day(name)
                if limit is not None:
                    free[tenant, day, name] = max(0, limit - known.used[name] - taken.get(name, 0))
    return [_reserve(connection, wish, free) for wish in wishes]


_mine = select(actions.c.attempt).where(
    actions.c.tenant_id == bindparam("tenant"), actions.c.id == bindparam("action"), actions.c.state == "running"
)


def _reserve(connection: Connection, wish: ReservationRequest, free: Free) -> int:
    """Reserve an amount for one attempt; return the reserved amount."""
    if connection.scalar(_mine, {"tenant": wish.tenant_id, "action": wish.action_id}) != wish.attempt:
        return 0
    key = (wish.tenant_id, wish.day, wish.budget)
    if key not in free:
        return max(wish.need, wish.lot)  # the budget has no limit any more
    plenty = free[key] > PLENTY * wish.lot
    share = min(free[key], max(wish.need, wish.lot) if plenty else wish.need)
    if share > 0:
        free[key] -= share
        add(connection, wish.tenant_id, wish.action_id, wish.attempt, wish.day, {wish.budget: share})
    return share


_held = (
    select(_c.budget, func.sum(_c.amount))
    .where(_c.tenant_id == bindparam("tenant"), _c.day == bindparam("day"))
    .group_by(_c.budget)
)


def reserved(connection: Connection, tenant_id: str, day: int) -> dict[str, int]:
    """Return the reserved amounts of a tenant's day, by budget."""
    rows = connection.execute(_held, {"tenant": tenant_id, "day": day})
    return {name: int(amount) for name, amount in rows}


def add(
    connection: Connection, tenant_id: str, action_id: str, attempt: int, day: int, amounts: Mapping[str, int]
) -> None:
    """Add to an attempt's reservation; the caller holds the tenant's lock and has checked the limit."""
    attempts_day = {"tenant_id": tenant_id, "action_id": action_id, "attempt": attempt, "day": day}
    rows = [attempts_day | {"budget": name, "amount": amount} for name, amount in amounts.items()]
    add_many(connection, reservations, (*attempts_day, "budget"), rows)


_over = ManyRows(
    {"tenant": _c.tenant_id, "action": _c.action_id, "n": _c.attempt},
    lambda given, _driver: delete(reservations).where(
        tuple_(_c.tenant_id, _c.action_id, _c.attempt).in_(select(given.c.tenant, given.c.action, given.c.n))
    ),
)


def release(connection: Connection, attempts: Iterable[tuple[str, str, int]]) -> None:
    """Release the reservations of attempts (tenant, action, number); their use is charged in the same transaction."""
    keys = [{"tenant": tenant, "action": action, "n": attempt} for tenant, action, attempt in attempts]
    _over.rows(connection, keys)


def release_unreported(connection: Connection, node_ids: Collection[str]) -> None:
    """Release the reservations of cancelled attempts of these nodes; their use is never reported, because the leases have ended."""
    theirs = (
        select(_t.n)
        .where(
            _t.tenant_id == _c.tenant_id,
            _t.action_id == _c.action_id,
            _t.n == _c.attempt,
            _t.node_id.in_(node_ids),
            _t.outcome == "cancelled",
        )
        .limit(1)
        .scalar_subquery()
    )
    # Not EXISTS: without statistics PostgreSQL would begin with all attempts.
    connection.execute(delete(reservations).where(theirs.is_not(None)))


def delete_old(connection: Connection, tenant_ids: Collection[str], day: int) -> None:
    """Delete the reservations of the days before ``day``."""
    connection.execute(delete(reservations).where(_c.tenant_id.in_(tenant_ids), _c.day < day))
