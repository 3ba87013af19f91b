"""The ready queue: rows derived from a tenant's actions, so that a claim never searches the actions.

A tenant has one row for actions that any node may run (``requires`` ``''``), and one for each set of labels that its
actions have required. The first is also the tenant's lock. On PostgreSQL many transactions write at once, and one that
decides by a tenant's clocks and actions must not run beside another that changes them: a tick that saw a run which a
commit is just ending would hold the next action for ever. Every transaction that changes a tenant's clocks or actions
locks this row first, several in the order of their ids: :func:`lock` waits; a tick and a claim skip locked rows. SQLite
has one writer and needs no lock.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lodger.engine.core.access.labels import carries
from lodger.engine.policy.conduct import Priority
from lodger.engine.store.bulk import ManyRows
from lodger.engine.store.drivers import Driver, driver_of
from lodger.engine.store.drivers.prepared import Answer, Prepared
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import (
    actions,
    is_expiring,
    is_running,
    is_startable,
    script_may_start,
    tenants,
    turns,
)

#: Maximum number of different sets of labels that a node considers.
MAX_SETS = 1000
#: An action is overdue if it has been due for longer than this, microseconds.
GRACE_US = 10_000_000

#: Number of running actions of a row's tenant.
running = (
    sa.select(sa.func.count()).select_from(actions).where(actions.c.tenant_id == turns.c.tenant_id, is_running)
).scalar_subquery()


def _first(rank: int) -> sa.Select[Any]:
    """Return the query of when the first ready action with this priority of a tenant's queue is due."""
    # One index lookup per priority, instead of a sort of all waiting actions.
    first = (
        sa.select(actions.c.due_at)
        .where(
            actions.c.tenant_id == turns.c.tenant_id,
            actions.c.requires == turns.c.requires,
            is_startable,
            script_may_start,
            actions.c.priority == sa.literal_column(str(rank)),
        )
        .order_by(actions.c.due_at)
        .limit(sa.literal_column("1"))
        .correlate(turns)
        .subquery()
    )
    return sa.select(first.c.due_at)


_firsts = sa.union_all(*(_first(int(rank)) for rank in Priority)).subquery()
_earliest = sa.select(sa.func.min(_firsts.c.due_at)).scalar_subquery()
_active = sa.select(tenants.c.state).where(tenants.c.id == turns.c.tenant_id).scalar_subquery() == "active"
_derived = sa.case((sa.and_(_active, running < turns.c.cap), _earliest), else_=None)

#: Derives a tenant's rows in one statement; where there are row versions, unchanged rows are not written.
_refresh = ManyRows(
    {"tenant": turns.c.tenant_id},
    lambda given, driver: _derive(given, driver, turns.c.startable_at.is_distinct_from),
)
_serve = ManyRows(
    {"tenant": turns.c.tenant_id, "now": turns.c.served_us},
    lambda given, driver: _derive(given, driver, lambda _at: sa.true(), served_us=given.c.now),
)


def _derive(given: Any, driver: Driver, changed: Callable[[Any], Any], **more: Any) -> Any:
    """Return the statement that derives queues anew from the ready actions."""
    if not driver.has_row_locks:  # no row versions: to find an unchanged row costs more than to write it
        return sa.update(turns).where(turns.c.tenant_id == given.c.tenant).values({"startable_at": _derived} | more)
    # A subquery computes the values first: writing an unchanged row would leave a dead version of it.
    now = (
        sa.select(turns.c.tenant_id, turns.c.requires, _derived.label("at"), *(more[name].label(name) for name in more))
        .where(turns.c.tenant_id == given.c.tenant)
        .correlate(None)
        .subquery("derived")
    )
    statement = sa.update(turns).where(turns.c.tenant_id == now.c.tenant_id, turns.c.requires == now.c.requires)
    return statement.where(changed(now.c.at)).values({"startable_at": now.c.at} | {name: now.c[name] for name in more})


def lock(connection: sa.Connection, tenant_ids: Iterable[str]) -> None:
    """Lock these tenants until the transaction ends; called before reads that the transaction acts upon.

    The locks are taken with the next statement that is waited for, before it.
    """
    wanted = sorted(set(tenant_ids))
    if wanted and driver_of(connection).has_row_locks:
        _lock.ask(connection, {"tenants": wanted})


def ask_free(connection: sa.Connection, tenant_ids: Iterable[str]) -> Answer:
    """Lock those of these tenants that no other transaction has locked, and hand them on as ``free``; where there are row locks."""
    return _free.ask(connection, {"tenants": sorted(set(tenant_ids))})


def lock_matching(connection: sa.Connection, statement: sa.Select[Any], params: dict[str, Any] | None = None) -> None:
    """Lock the tenants that a query returns; the query runs only on databases with row locks."""
    if driver_of(connection).has_row_locks:
        lock(connection, connection.scalars(statement, params or {}))


def _homes(driver: Driver) -> sa.Select[Any]:
    """Select the rows that are locked for their tenants, in the order in which they are."""
    mine = driver.among(turns.c.tenant_id, "tenants"), turns.c.requires == ""
    return sa.select(turns.c.tenant_id).where(*mine).order_by(turns.c.tenant_id)


_lock = Prepared(lambda driver: _homes(driver).with_for_update())
_free = Prepared(lambda driver: driver.hand_on(_homes(driver).with_for_update(skip_locked=True), "tenant_id", "free"))


def refresh(connection: sa.Connection, tenant_ids: Iterable[str], touched: set[str] | None = None) -> None:
    """Derive the rows of these tenants; the last statement of every transaction that changed their actions.

    Args:
        touched: receives the tenants instead, of which the caller derives the rows once for several changes.
    """
    if touched is not None:
        touched.update(tenant_ids)
        return
    _refresh.rows(connection, [{"tenant": tenant} for tenant in sorted(set(tenant_ids))])


def add_queues(connection: sa.Connection, wanted: Iterable[tuple[str, str]]) -> None:
    """Insert the missing rows for these (tenant, labels); called before :func:`refresh`."""
    for tenant, requires in sorted({each for each in wanted if each[1]}):
        row = sa.select(
            turns.c.tenant_id,
            sa.bindparam("wanted", requires, type_=turns.c.requires.type),
            turns.c.bound,
            turns.c.served_us,
            turns.c.cap,
        ).where(turns.c.tenant_id == tenant, turns.c.requires == "")
        made = (
            driver_of(connection).insert(turns).from_select(["tenant_id", "requires", "bound", "served_us", "cap"], row)
        )
        connection.execute(made.on_conflict_do_nothing())


def record_served(connection: sa.Connection, tenant_ids: Iterable[str], now_us: int) -> None:
    """Set the time of last service of these tenants, and derive their rows."""
    _serve.rows(connection, [{"tenant": tenant, "now": now_us} for tenant in sorted(set(tenant_ids))])


@dataclass(frozen=True, slots=True)
class LabelSets:
    """Sets of labels that a node may serve, each list with the empty set.

    Attributes:
        required: sets that actions require.
        bound: sets that tenants are bound to.
        expiring: whether any action has to expire.
        startable_us: earliest instant at which an action of the two empty sets may start, or None.
    """

    required: list[str]
    bound: list[str]
    expiring: bool
    startable_us: int | None


def label_sets(connection: sa.Connection, labels: Collection[str], first: AnyRow) -> LabelSets:
    """Return the sets of labels that a node with these labels may serve: one query for each set after the first.

    Args:
        first: the row of :data:`sets_in_use`.
    """
    required = ["", *(each for each in _sets(connection, _next_required, first.required) if carries(labels, each))]
    bound = ["", *(each for each in _sets(connection, _next_bound, first.bound) if carries(labels, each))]
    return LabelSets(required, bound, bool(first.expiring), first.startable)


def _sets(connection: sa.Connection, after: sa.Select[Any], following: str | None) -> list[str]:
    """Return the distinct sets of labels in an index, each found by one lookup behind the one before; ``following`` is the first."""
    found: list[str] = []
    while following is not None and len(found) < MAX_SETS:
        found.append(following)
        following = connection.scalar(after, {"after": following})
    return found


_next_required = sa.select(sa.func.min(turns.c.requires)).where(
    turns.c.requires > sa.bindparam("after"), turns.c.startable_at.is_not(None)
)
# A literal: SQLite compares a bound value with the index's condition, and then plans the statement anew each time.
_EMPTY: sa.ColumnElement[str] = sa.literal_column("''")
_next_bound = sa.select(sa.func.min(turns.c.bound)).where(
    turns.c.bound > sa.bindparam("after"), turns.c.bound != _EMPTY
)
#: Whether any action has expired; the bound value is ``expired``.
any_expiring = sa.exists().where(is_expiring, actions.c.expires_at <= sa.bindparam("expired", type_=sa.BigInteger))
#: The first sets of labels in use, and whether any action has expired; bound values are ``after``, which is "", and ``expired``.
sets_in_use = sa.select(
    _next_required.scalar_subquery().label("required"),
    _next_bound.scalar_subquery().label("bound"),
    any_expiring.label("expiring"),
    sa.select(turns.c.startable_at)
    .where(turns.c.requires == _EMPTY, turns.c.bound == _EMPTY, turns.c.startable_at.is_not(None))
    .order_by(turns.c.startable_at)
    .limit(1)
    .scalar_subquery()
    .label("startable"),
)
_first_sets = Prepared(lambda _driver: sets_in_use)


def next_startable(connection: sa.Connection, labels: Collection[str] = ()) -> int | None:
    """Return the earliest instant at which a node with these labels may start an action, or None."""
    sets = label_sets(connection, labels, _first_sets.rows(connection, {"after": "", "expired": 0})[0])
    if len(sets.required) == len(sets.bound) == 1:
        return sets.startable_us
    found = [connection.scalar(_next_startable, {"one": one, "bound": sets.bound}) for one in sets.required]
    return min((each for each in found if each is not None), default=None)


def ask_startable(connection: sa.Connection) -> Callable[[], tuple[int | None, bool]]:
    """Ask when an action that requires no label may start; the answer also says whether there are any labels in use."""

    def make_startable(rows: list[AnyRow]) -> tuple[int | None, bool]:
        """Return when the next action may start, None for never, and whether actions are for certain nodes."""
        (first,) = rows
        return first.startable, first.required is not None or first.bound is not None

    return _first_sets.answer(connection, {"after": "", "expired": 0}, make_startable)


_next_startable = (
    sa.select(turns.c.startable_at)
    .where(
        turns.c.requires == sa.bindparam("one"),
        turns.c.startable_at.is_not(None),
        turns.c.bound.in_(sa.bindparam("bound", expanding=True)),
    )
    .order_by(turns.c.startable_at)
    .limit(1)
)
