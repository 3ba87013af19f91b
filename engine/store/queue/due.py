"""Due clocks: read by their index, oldest first, and locked with their tenants; clocks locked by another transaction are skipped.

With LATERAL, the other rows of each clock are looked up by key behind an optimization fence: without statistics on a
freshly filled table, PostgreSQL joined all tenants with all scripts to find five hundred clocks (365 ms instead of 8).
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

_clock = schedule_clock.c
_OWN = (
    _clock.tenant_id, _clock.schedule_id, _clock.state, _clock.next_at, _clock.accounted_us, _clock.revision, _clock.wake_at,
    _clock.searching, _clock.last_slot_us,
)  # fmt: skip
_rows = (
    select(
        *_OWN, schedules.c.script_id, schedules.c.failures, scripts.c.version.label("script_version"),
        limits_in_effect.label("tenant_limits"),
    )
    .join_from(schedule_clock, schedules, (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id))
    .join(scripts, (scripts.c.tenant_id == schedules.c.tenant_id) & (scripts.c.id == schedules.c.script_id))
    .join(tenants, tenants.c.id == _clock.tenant_id)
)  # fmt: skip
_perhaps: Any = literal_column("1").label("may_be_busy")
#: A clock with all columns that a tick needs.
clocks = _rows.add_columns(_perhaps)


def _joined(when: ColumnElement[int]) -> Select[Any]:
    """Return the query for databases that join tables by key whatever their statistics are."""
    return (
        _rows.add_columns(tenants.c.generation, _has_open.label("may_be_busy"))
        .where(when <= bindparam("now"), tenants.c.state == "active")
        .order_by(when)
        .limit(bindparam("most"))
    )


def _lateral(name: str, table: Table, *columns: Any, where: ColumnElement[bool]) -> LateralFromClause:
    """Return a lateral query that the planner does not merge into the outer one."""
    fenced = select(*columns).select_from(table).where(where).offset(literal_column("0"))
    return fenced.correlate_except(table).lateral(name)


def _fenced(when: ColumnElement[int]) -> Select[Any]:
    """Return the query with optimization fences."""
    tenant = _lateral(
        "tenant",
        tenants,
        tenants.c.generation,
        limits_in_effect.label("tenant_limits"),
        where=(tenants.c.id == _clock.tenant_id) & (tenants.c.state == "active"),
    )
    # The tenant's lock: if another transaction holds it, the row and thus the clock are skipped.
    home = (
        select(turns.c.tenant_id)
        .where(turns.c.tenant_id == _clock.tenant_id, turns.c.requires == "")
        .correlate_except(turns)
        .with_for_update(skip_locked=True)
        .lateral("home")
    )
    own = (schedules.c.tenant_id == _clock.tenant_id) & (schedules.c.id == _clock.schedule_id)
    schedule = _lateral("schedule", schedules, schedules.c.script_id, schedules.c.failures, where=own)
    script = _lateral(
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
            # What ends while this waits for a lock is seen by the next statement only.
            _perhaps,
        )
        .select_from(schedule_clock.join(tenant, true()).join(home, true()).join(schedule, true()).join(script, true()))
        .where(when <= bindparam("now"))
        .order_by(when)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True, of=schedule_clock)
    )


_has_open = (
    select(actions.c.id).where(actions.c.schedule_id == _clock.schedule_id, is_open).correlate(schedule_clock).exists()
)
#: Whether any pause has ended; read together with the due clocks.
_any_pause_ended = (
    select(_clock.wake_at).where(_clock.wake_at <= bindparam("now")).correlate(None).exists().label("any_awake")
)
_due = Prepared(
    lambda driver: (_fenced if driver.has_lateral else _joined)(_clock.next_at).add_columns(_any_pause_ended)
)
_handing = Prepared(
    lambda driver: driver.hand_on(_fenced(_clock.next_at).add_columns(_any_pause_ended), "schedule_id", "clocks")
)
_ended_pauses = Prepared(lambda driver: (_fenced if driver.has_lateral else _joined)(_clock.wake_at))


def due_clocks(connection: Connection, now_us: int, maximum: int) -> list[AnyRow]:
    """Return up to ``maximum`` clocks with a due slot, oldest first.

    ``any_awake`` says whether the pause of any clock has ended, ``may_be_busy`` whether a schedule may have unfinished actions.
    """
    return _due.rows(connection, {"now": now_us, "most": maximum})


def ask_due_clocks(connection: Connection, now_us: int, maximum: int) -> Answer:
    """Ask for the same, and hand the schedules on as ``clocks``, where the driver has row locks."""
    return _handing.ask(connection, {"now": now_us, "most": maximum})


def ended_pauses(connection: Connection, now_us: int, maximum: int) -> list[AnyRow]:
    """Return up to ``maximum`` clocks with an ended pause, oldest first."""
    return _ended_pauses.rows(connection, {"now": now_us, "most": maximum})
