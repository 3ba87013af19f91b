"""Due clocks: read by their index and locked with their tenants; clocks locked by another transaction are skipped.

They come oldest first. In a backlog every second tick gives half of its batch to the tenants with the fewest due clocks, so that a
tenant with one slot does not wait for thousands of others that are older or due at the same instant.

The other rows of each clock are looked up by key in subqueries: without statistics on a freshly filled table, PostgreSQL joined all
tenants with all scripts to find five hundred clocks (365 ms instead of 8).
"""

from functools import partial
from typing import Any

import sqlalchemy as sa

from lodger.engine.store.drivers import Driver
from lodger.engine.store.drivers.prepared import Answer, Prepared
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import (
    actions,
    is_open,
    limits_in_effect,
    schedule_clock,
    schedules,
    scripts,
    tenants,
    turns,
)

#: The fewest due clocks of a tenant are counted among so many of the latest: one look costs the same in any backlog.
MAX_COUNTED = 20_000

_clock = schedule_clock.c
_is_own = (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id)
_has_script = (scripts.c.tenant_id == schedules.c.tenant_id) & (scripts.c.id == schedules.c.script_id)


def _of_tenant(key: Any, column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """Return the query of a value of the tenant of a clock's key."""
    return sa.select(column).where(tenants.c.id == key.tenant_id).correlate_except(tenants).scalar_subquery()


_perhaps: Any = sa.literal_column("1").label("may_be_busy")
_columns = (
    _clock.tenant_id, _clock.schedule_id, _clock.state, _clock.next_at, _clock.accounted_us, _clock.revision, _clock.wake_at,
    _clock.searching, _clock.last_slot_us,
    *(sa.select(each).where(_is_own).scalar_subquery().label(each.name) for each in (schedules.c.script_id, schedules.c.failures)),
    sa.select(scripts.c.version).join_from(schedules, scripts, _has_script).where(_is_own).scalar_subquery().label("script_version"),
    _of_tenant(_clock, limits_in_effect).label("tenant_limits"),
)  # fmt: skip
#: A clock with all columns that a tick needs.
clocks = sa.select(*_columns, _perhaps)


def _of_fewest() -> Any:
    """Return the keys of due clocks: for one half of the batch the oldest, then those of the tenants with the fewest."""
    due = sa.select(_clock.tenant_id, _clock.schedule_id, _clock.next_at).where(_clock.next_at <= sa.bindparam("now"))
    counted = due.order_by(_clock.next_at.desc()).limit(sa.literal_column(str(MAX_COUNTED))).subquery()
    # A window, because a join of these rows with their number by tenant is planned for the few that statistics promise.
    number = sa.func.count().over(partition_by=counted.c.tenant_id).label("number")
    numbered = sa.select(counted, number).subquery()
    fewest = sa.select(numbered).order_by(numbered.c.number, numbered.c.next_at).limit(sa.bindparam("most")).subquery()
    oldest = due.order_by(_clock.next_at).limit(sa.bindparam("half")).subquery()
    both = sa.union_all(sa.select(oldest, sa.literal_column("0").label("number")), sa.select(fewest)).subquery()
    key = (both.c.tenant_id, both.c.schedule_id)
    found = sa.select(*key, sa.func.min(both.c.number).label("number")).group_by(*key)
    return (
        found.order_by(sa.func.min(both.c.number), sa.func.min(both.c.next_at)).limit(sa.bindparam("most")).cte("first")
    )


def _due_clocks(driver: Driver, when: sa.ColumnElement[int], *, fewest_first: bool = False) -> sa.Select[Any]:
    """Return the query of due clocks: the oldest, or those of the tenants with the fewest."""
    first = _of_fewest() if fewest_first else None
    # Keys of ``first``, if given: no other tenant is locked, in whichever order the planner joins. A sum has no index: these keys
    # are looked up, whatever the statistics of due clocks are.
    key, instant = (_clock, when) if first is None else (first.c, when + sa.literal_column("0"))
    # The tenant's lock: if another transaction holds it, the row and thus the clock are skipped.
    home = (
        sa.select(turns.c.tenant_id)
        .where(turns.c.tenant_id == key.tenant_id, turns.c.requires == "")
        .correlate_except(turns)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    # What ends while a query waits for a lock is seen by the next statement only.
    is_busy = _perhaps if driver.has_row_locks else _has_open.label("may_be_busy")
    query = sa.select(*_columns, _of_tenant(_clock, tenants.c.generation).label("generation"), is_busy).where(
        instant <= sa.bindparam("now"), _of_tenant(key, tenants.c.state) == "active", home.is_not(None)
    )
    if first is not None:
        same = (first.c.tenant_id == _clock.tenant_id) & (first.c.schedule_id == _clock.schedule_id)
        query = query.join_from(first, schedule_clock, same)
    return (
        query.order_by(*((when,) if first is None else (first.c.number, when)))
        .limit(sa.bindparam("most"))
        .with_for_update(skip_locked=True, of=schedule_clock)
    )


_has_open = (
    sa.select(actions.c.id)
    .where(actions.c.schedule_id == _clock.schedule_id, is_open)
    .correlate(schedule_clock)
    .exists()
)
#: Whether any pause has ended; read together with the due clocks.
_any_pause_ended = (
    sa.select(_clock.wake_at).where(_clock.wake_at <= sa.bindparam("now")).correlate(None).exists().label("any_awake")
)


def _with_awake(driver: Driver, *, fewest_first: bool) -> sa.Select[Any]:
    """Return the query of due clocks with a column that says whether the pause of any clock has ended; it hands their schedules on."""
    query = _due_clocks(driver, _clock.next_at, fewest_first=fewest_first).add_columns(_any_pause_ended)
    return driver.hand_on(query, "schedule_id", "clocks")


#: By whether the tenants with the fewest come first.
_due = {each: Prepared(partial(_with_awake, fewest_first=each)) for each in (False, True)}
_ended_pauses = Prepared(lambda driver: _due_clocks(driver, _clock.wake_at))


def ask_due_clocks(connection: sa.Connection, now_us: int, maximum: int, *, fewest_first: bool = False) -> Answer:
    """Ask for up to ``maximum`` clocks with a due slot, oldest first, or the tenants with the fewest first.

    ``any_awake`` says whether the pause of any clock has ended, ``may_be_busy`` whether a schedule may have unfinished actions. Where the
    driver has row locks, the schedules are handed on as ``clocks`` to the next query.
    """
    return _due[fewest_first].ask(connection, {"now": now_us, "most": maximum, "half": maximum // 2})


def ended_pauses(connection: sa.Connection, now_us: int, maximum: int) -> list[AnyRow]:
    """Return up to ``maximum`` clocks with an ended pause, oldest first."""
    return _ended_pauses.rows(connection, {"now": now_us, "most": maximum})
