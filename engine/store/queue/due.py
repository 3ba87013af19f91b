"""Which clocks are due: read by their index, oldest first, and locked with their tenants; what another transaction holds is passed by.

Where a subquery may refer to tables before it, each clock's other rows are looked up by key behind a fence that the planner does not
take down: without statistics of a table that has just been filled, PostgreSQL joined all tenants with all scripts to find five
hundred clocks (365 ms instead of 8).
"""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    bindparam,
    literal_column,
    select,
    true,
)
from sqlalchemy.sql.selectable import LateralFromClause

from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import schedule_clock, schedules, scripts, tenants, turns
from lodger.engine.store.stores import PerDriver

_clock = schedule_clock.c
_OWN = (
    _clock.tenant_id, _clock.schedule_id, _clock.state, _clock.next_at, _clock.accounted_us, _clock.revision, _clock.wake_at,
    _clock.searching, _clock.last_slot_us,
)  # fmt: skip
#: A clock with all that a tick needs to know about it.
clocks = (
    select(
        *_OWN, schedules.c.script_id, schedules.c.failures, scripts.c.version.label("script_version"),
        tenants.c.limits.label("tenant_limits"),
    )
    .join_from(schedule_clock, schedules, (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id))
    .join(scripts, (scripts.c.tenant_id == schedules.c.tenant_id) & (scripts.c.id == schedules.c.script_id))
    .join(tenants, tenants.c.id == _clock.tenant_id)
)  # fmt: skip


def _joined(when: ColumnElement[int]) -> Select[Any]:
    """The question where tables are joined by key whatever the planner knows of them."""
    return (
        clocks.add_columns(tenants.c.generation)
        .where(when <= bindparam("now"), tenants.c.state == "active")
        .order_by(when)
        .limit(bindparam("most"))
    )


def _beside(name: str, table: Table, *columns: Any, where: ColumnElement[bool]) -> LateralFromClause:
    fenced = select(*columns).select_from(table).where(where).offset(literal_column("0"))
    return fenced.correlate_except(table).lateral(name)


def _fenced(when: ColumnElement[int]) -> Select[Any]:
    """The question behind fences."""
    tenant = _beside(
        "tenant",
        tenants,
        tenants.c.generation,
        tenants.c.limits.label("tenant_limits"),
        where=(tenants.c.id == _clock.tenant_id) & (tenants.c.state == "active"),
    )
    # The tenant's lock: what another transaction holds has no row here, and its clock none in the answer.
    home = (
        select(turns.c.tenant_id)
        .where(turns.c.tenant_id == _clock.tenant_id, turns.c.requires == "")
        .correlate_except(turns)
        .with_for_update(skip_locked=True)
        .lateral("home")
    )
    own = (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id)
    schedule = _beside("schedule", schedules, schedules.c.script_id, schedules.c.failures, where=own)
    script = _beside(
        "script",
        scripts,
        scripts.c.version.label("script_version"),
        where=(scripts.c.tenant_id == _clock.tenant_id) & (scripts.c.id == schedule.c.script_id),
    )
    return (
        select(
            *_OWN,
            schedule.c.script_id,
            schedule.c.failures,
            script.c.script_version,
            tenant.c.tenant_limits,
            tenant.c.generation,
        )
        .select_from(schedule_clock.join(tenant, true()).join(home, true()).join(schedule, true()).join(script, true()))
        .where(when <= bindparam("now"))
        .order_by(when)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True, of=schedule_clock)
    )


#: Whether any pause is over: a tick with slots to name learns it by the way.
_any_awake = (
    select(_clock.wake_at).where(_clock.wake_at <= bindparam("now")).correlate(None).exists().label("any_awake")
)
_due = PerDriver(lambda driver: (_fenced if driver.has_lateral else _joined)(_clock.next_at).add_columns(_any_awake))
_awake = PerDriver(lambda driver: (_fenced if driver.has_lateral else _joined)(_clock.wake_at))


def due(connection: Connection, now_us: int, maximum: int) -> list[AnyRow]:
    """Return up to ``most`` clocks whose slot has come, oldest first; each says whether the pause of any clock is over."""
    return list(connection.execute(_due.of(connection), {"now": now_us, "most": maximum}).all())


def awake(connection: Connection, now_us: int, maximum: int) -> list[AnyRow]:
    """Return up to ``most`` clocks whose pause is over, oldest first."""
    return list(connection.execute(_awake.of(connection), {"now": now_us, "most": maximum}).all())
