"""Whose turn it is: one row per tenant, derived from the tenant's actions, so that a claim never searches for work.

The row is also the tenant's lock. On PostgreSQL many transactions write at once, and one that decides by a tenant's clocks
and actions (is an earlier one unfinished, who is held, what may start) must not do so beside another that changes them: a
tick that sees a run which a commit is just ending would hold its action for ever. So whoever changes a tenant's clocks or
actions takes the row first, several in the order of their ids: :func:`lock` waits, a tick and a claim pass by what is taken.
SQLite has one writer and needs none of it.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, func, literal_column, select, union_all, update

from lodger.engine.ledger.schema.scheduling import actions, is_running, is_startable, tenants, turns
from lodger.engine.policy.conduct import Priority

_running = (
    select(func.count()).select_from(actions).where(actions.c.tenant_id == bindparam("tenant"), is_running)
).scalar_subquery()


def _first(rank: int) -> Select[Any]:
    # One short look at the index per priority, instead of a sort over all that waits.
    first = (
        select(actions.c.due_at)
        .where(
            actions.c.tenant_id == bindparam("tenant"),
            is_startable,
            actions.c.priority == literal_column(str(rank)),
        )
        .order_by(actions.c.due_at)
        .limit(literal_column("1"))
        .subquery()
    )
    return select(first.c.due_at)


_firsts = union_all(*(_first(int(rank)) for rank in Priority)).subquery()
_earliest = select(func.min(_firsts.c.due_at)).scalar_subquery()
_active = select(tenants.c.state).where(tenants.c.id == turns.c.tenant_id).scalar_subquery() == "active"

_refresh = (
    update(turns)
    .where(turns.c.tenant_id == bindparam("tenant"))
    .values(startable_at=case((and_(_active, _running < turns.c.cap), _earliest), else_=None))
)


def lock(connection: Connection, tenant_ids: Iterable[str]) -> None:
    """Take the locks of these tenants until the transaction ends; before anything of theirs is read that is acted upon."""
    wanted = sorted(set(tenant_ids))
    if wanted and connection.dialect.name != "sqlite":
        connection.execute(_lock, {"tenants": wanted})


_lock = (
    select(turns.c.tenant_id)
    .where(turns.c.tenant_id.in_(bindparam("tenants", expanding=True)))
    .order_by(turns.c.tenant_id)
    .with_for_update()
)


def refresh(connection: Connection, tenant_ids: Iterable[str]) -> None:
    """Derive the turns of these tenants anew; the last statement of every transaction that touched their actions."""
    touched = [{"tenant": tenant} for tenant in sorted(set(tenant_ids))]
    if touched:
        connection.execute(_refresh, touched)


def served(connection: Connection, tenant_ids: Iterable[str], now_us: int) -> None:
    """Put these tenants at the end of the line."""
    rows = [{"tenant": tenant, "now": now_us} for tenant in tenant_ids]
    if rows:
        connection.execute(_served, rows)


_served = update(turns).where(turns.c.tenant_id == bindparam("tenant")).values(served_us=bindparam("now"))


def next_startable(connection: Connection, until_us: int) -> int | None:
    """Give the earliest instant up to ``until_us`` at which something may start; None when nothing may."""
    found: int | None = connection.scalar(_next_startable, {"until": until_us})
    return found


_next_startable = (
    select(turns.c.startable_at)
    .where(turns.c.startable_at <= bindparam("until"))
    .order_by(turns.c.startable_at)
    .limit(1)
)
