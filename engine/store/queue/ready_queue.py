"""Whose turn it is: rows derived from a tenant's actions, so that a claim never searches for work.

A tenant has one row for what any node may run (``requires`` ``''``), and one for each set of labels that its actions have
required. The first is also the tenant's lock. On PostgreSQL many transactions write at once, and one that decides by a tenant's
clocks and actions (is an earlier one unfinished, who is held, what may start) must not do so beside another that changes them: a
tick that sees a run which a commit is just ending would hold its action for ever. So whoever changes a tenant's clocks or
actions takes the row first, several in the order of their ids: :func:`lock` waits, a tick and a claim pass by what is taken.
SQLite has one writer and needs none of it.
"""

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import (
    ARRAY,
    Connection,
    Select,
    and_,
    any_,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from lodger.engine.core.access.labels import carries
from lodger.engine.policy.conduct import Priority
from lodger.engine.store.bulk import EachRow
from lodger.engine.store.insert_ignore import dialect_insert
from lodger.engine.store.schema.scheduling import Name, actions, is_running, is_startable, tenants, turns

#: Most different sets of labels that a node looks at.
MOST_SETS = 1000

_home = turns.alias("home")
_running = (
    select(func.count()).select_from(actions).where(actions.c.tenant_id == turns.c.tenant_id, is_running)
).scalar_subquery()


def _first(rank: int) -> Select[Any]:
    # One short look at the index per priority, instead of a sort over all that waits.
    first = (
        select(actions.c.due_at)
        .where(
            actions.c.tenant_id == turns.c.tenant_id,
            actions.c.requires == turns.c.requires,
            is_startable,
            actions.c.priority == literal_column(str(rank)),
        )
        .order_by(actions.c.due_at)
        .limit(literal_column("1"))
        .correlate(turns)
        .subquery()
    )
    return select(first.c.due_at)


_firsts = union_all(*(_first(int(rank)) for rank in Priority)).subquery()
_earliest = select(func.min(_firsts.c.due_at)).scalar_subquery()
_active = select(tenants.c.state).where(tenants.c.id == turns.c.tenant_id).scalar_subquery() == "active"
_derived = case((and_(_active, _running < turns.c.cap), _earliest), else_=None)

_refresh = update(turns).values(startable_at=_derived)
_refresh_each = EachRow(
    _refresh.where(turns.c.tenant_id == bindparam("tenant")), lambda given: _refresh.where(turns.c.tenant_id == given.c.tenant)
)  # fmt: skip
_given = any_(bindparam("tenants", type_=ARRAY(Name)))
_now = (
    select(turns.c.tenant_id, turns.c.requires, _derived.label("at"))
    .where(turns.c.tenant_id == _given)
    .correlate(None)
    .subquery("derived")
)
# One sentence for all, and nothing is written where nothing has changed: each write would leave a dead row behind.
_refresh_all = (
    update(turns)
    .where(
        turns.c.tenant_id == _now.c.tenant_id,
        turns.c.requires == _now.c.requires,
        turns.c.startable_at.is_distinct_from(_now.c.at),
    )
    .values(startable_at=_now.c.at)
)


def lock(connection: Connection, tenant_ids: Iterable[str]) -> None:
    """Take the locks of these tenants until the transaction ends; before anything of theirs is read that is acted upon."""
    wanted = sorted(set(tenant_ids))
    if wanted and connection.dialect.name != "sqlite":
        connection.execute(_lock, {"tenants": wanted})


_lock = (
    select(turns.c.tenant_id)
    .where(turns.c.tenant_id == _given, turns.c.requires == "")
    .order_by(turns.c.tenant_id)
    .with_for_update()
)


def refresh(connection: Connection, tenant_ids: Iterable[str]) -> None:
    """Derive the turns of these tenants anew; the last statement of every transaction that touched their actions."""
    touched = sorted(set(tenant_ids))
    if touched and connection.dialect.name == "sqlite":
        _refresh_each.run(connection, [{"tenant": tenant} for tenant in touched])
    elif touched:
        connection.execute(_refresh_all, {"tenants": touched})


def widen(connection: Connection, wanted: Iterable[tuple[str, str]]) -> None:
    """Give tenants a row for each of these (tenant, labels) that they lack; before :func:`refresh`."""
    for tenant, requires in sorted({each for each in wanted if each[1]}):
        row = select(
            turns.c.tenant_id,
            bindparam("wanted", requires, type_=turns.c.requires.type),
            turns.c.bound,
            turns.c.served_us,
            turns.c.cap,
        ).where(turns.c.tenant_id == tenant, turns.c.requires == "")
        made = dialect_insert(connection, turns).from_select(
            ["tenant_id", "requires", "bound", "served_us", "cap"], row
        )
        connection.execute(made.on_conflict_do_nothing())


def served(connection: Connection, tenant_ids: Iterable[str], now_us: int) -> None:
    """Put these tenants at the end of the line."""
    wanted = sorted(set(tenant_ids))
    if wanted and connection.dialect.name == "sqlite":
        _served.run(connection, [{"tenant": tenant, "now": now_us} for tenant in wanted])
    elif wanted:
        connection.execute(_served_all, {"tenants": wanted, "now": now_us})


_served = EachRow(
    update(turns).where(turns.c.tenant_id == bindparam("tenant")).values(served_us=bindparam("now")),
    lambda given: update(turns).where(turns.c.tenant_id == given.c.tenant).values(served_us=given.c.now),
)
_served_all = update(turns).where(turns.c.tenant_id == _given).values(served_us=bindparam("now"))


def fitting(connection: Connection, labels: Collection[str]) -> tuple[list[str], list[str]]:
    """Give what a node with these labels may look at: sets of labels that actions require, and that tenants are bound to.

    Both have the empty set; there are as many questions as there are sets, and mostly there is none.
    """
    required = ["", *(each for each in _sets(connection, _next_required) if carries(labels, each))]
    bound = ["", *(each for each in _sets(connection, _next_bound) if carries(labels, each))]
    return required, bound


def _sets(connection: Connection, after: Select[Any]) -> list[str]:
    """Leap over an index from one value to the next."""
    found: list[str] = []
    while len(found) < MOST_SETS:
        following = connection.scalar(after, {"after": found[-1] if found else ""})
        if following is None:
            break
        found.append(following)
    return found


_next_required = select(func.min(turns.c.requires)).where(
    turns.c.requires > bindparam("after"), turns.c.startable_at.is_not(None)
)
_next_bound = select(func.min(turns.c.bound)).where(turns.c.bound > bindparam("after"), turns.c.bound != "")


def next_startable(connection: Connection, until_us: int, labels: Collection[str] = ()) -> int | None:
    """Give the earliest instant up to ``until_us`` at which a node with these labels may start something; None when it may not."""
    required, bound = fitting(connection, labels)
    found = [connection.scalar(_next_startable, {"until": until_us, "one": one, "bound": bound}) for one in required]
    return min((each for each in found if each is not None), default=None)


_next_startable = (
    select(turns.c.startable_at)
    .where(
        turns.c.requires == bindparam("one"),
        turns.c.startable_at <= bindparam("until"),
        turns.c.bound.in_(bindparam("bound", expanding=True)),
    )
    .order_by(turns.c.startable_at)
    .limit(1)
)
