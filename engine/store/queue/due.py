"""Due clocks: read by their index and locked with their tenants; clocks locked by another transaction are skipped.

They come oldest first. In a backlog every second tick gives half of its batch to the tenants with the fewest due clocks, so that a
tenant with one slot does not wait for thousands of others that are older or due at the same instant.

With LATERAL, the other rows of each clock are looked up by key behind an optimization fence: without statistics on a
freshly filled table, PostgreSQL joined all tenants with all scripts to find five hundred clocks (365 ms instead of 8).
"""

from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.selectable import LateralFromClause

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
_OWN = (
    _clock.tenant_id, _clock.schedule_id, _clock.state, _clock.next_at, _clock.accounted_us, _clock.revision, _clock.wake_at,
    _clock.searching, _clock.last_slot_us,
)  # fmt: skip
_rows = (
    sa.select(
        *_OWN, schedules.c.script_id, schedules.c.failures, scripts.c.version.label("script_version"),
        limits_in_effect.label("tenant_limits"),
    )
    .join_from(schedule_clock, schedules, (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id))
    .join(scripts, (scripts.c.tenant_id == schedules.c.tenant_id) & (scripts.c.id == schedules.c.script_id))
    .join(tenants, tenants.c.id == _clock.tenant_id)
)  # fmt: skip
_perhaps: Any = sa.literal_column("1").label("may_be_busy")
#: A clock with all columns that a tick needs.
clocks = _rows.add_columns(_perhaps)


def _joined(when: sa.ColumnElement[int], first: Any = None) -> sa.Select[Any]:
    """Return the query of due clocks, or of those among ``first``, for databases that join tables by key whatever their statistics
    are."""
    query = _rows if first is None else _rows.join(first, _is_same(first.c, _clock))
    return query.add_columns(tenants.c.generation, _has_open.label("may_be_busy")).where(
        _is_due(when, first), tenants.c.state == "active"
    )


def _is_due(when: sa.ColumnElement[int], first: Any) -> sa.ColumnElement[bool]:
    """Return the condition that a clock's instant has come; with ``first``, keys of clocks, the planner uses no index for it."""
    # A sum has no index: keys that are given are looked up, whatever the statistics of due clocks are.
    found: sa.ColumnElement[bool] = (when if first is None else when + sa.literal_column("0")) <= sa.bindparam("now")
    return found


def _is_same(one: Any, other: Any) -> sa.ColumnElement[bool]:
    """Return the condition that two rows have the same tenant and schedule."""
    found: sa.ColumnElement[bool] = (one.tenant_id == other.tenant_id) & (one.schedule_id == other.schedule_id)
    return found


def _lateral(name: str, table: sa.Table, *columns: Any, where: sa.ColumnElement[bool]) -> LateralFromClause:
    """Return a lateral query that the planner does not merge into the outer one."""
    fenced = sa.select(*columns).select_from(table).where(where).offset(sa.literal_column("0"))
    return fenced.correlate_except(table).lateral(name)


def _fenced(when: sa.ColumnElement[int], first: Any = None) -> sa.Select[Any]:
    """Return the query of due clocks with fences that keep the planner from reading whole tables."""
    # Keys of ``first``, if given: no other tenant is locked, in whichever order the planner joins.
    key, given = (_clock, schedule_clock) if first is None else (first.c, first)
    tenant = _lateral(
        "tenant",
        tenants,
        tenants.c.generation,
        limits_in_effect.label("tenant_limits"),
        where=(tenants.c.id == key.tenant_id) & (tenants.c.state == "active"),
    )
    # The tenant's lock: if another transaction holds it, the row and thus the clock are skipped.
    home = (
        sa.select(turns.c.tenant_id)
        .where(turns.c.tenant_id == key.tenant_id, turns.c.requires == "")
        .correlate_except(turns)
        .with_for_update(skip_locked=True)
        .lateral("home")
    )
    own = (schedules.c.tenant_id == key.tenant_id) & (schedules.c.id == key.schedule_id)
    schedule = _lateral("schedule", schedules, schedules.c.script_id, schedules.c.failures, where=own)
    script = _lateral(
        "script",
        scripts,
        scripts.c.version.label("script_version"),
        where=(scripts.c.tenant_id == key.tenant_id) & (scripts.c.id == schedule.c.script_id),
    )
    joined = given.join(tenant, sa.true()).join(home, sa.true()).join(schedule, sa.true()).join(script, sa.true())
    return (
        sa.select(
            *_OWN,
            schedule.c.script_id,
            schedule.c.failures,
            script.c.script_version,
            tenant.c.tenant_limits,
            tenant.c.generation,
            # What ends while this waits for a lock is seen by the next statement only.
            _perhaps,
        )
        .select_from(joined if first is None else joined.join(schedule_clock, _is_same(first.c, _clock)))
        .where(_is_due(when, first))
        .with_for_update(skip_locked=True, of=schedule_clock)
    )


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
    query = (_fenced if driver.has_lateral else _joined)(when, first)
    return query.order_by(*((when,) if first is None else (first.c.number, when))).limit(sa.bindparam("most"))


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
