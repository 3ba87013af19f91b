"""The schedule as its scripts see it: its last successful run and its next slots."""

from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import Connection, case, literal_column, select

from lodger.engine.core.clock import from_us, to_us
from lodger.engine.recurrence.on_changes import END
from lodger.engine.store.drivers.prepared import Prepared
from lodger.engine.store.revision_cache import Revision
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import actions, attempts, schedule_clock

#: Number of next slots that a script can read.
UPCOMING = 3


_END_US = to_us(END)


def upcoming(revision: Revision, next_us: int | None) -> tuple[int, ...]:
    """Return the next slots, beginning with the clock's next one."""
    slots: list[int] = []
    while next_us is not None and next_us < _END_US and len(slots) < UPCOMING:
        slots.append(next_us)
        following = revision.recurrence.next_after(from_us(next_us)) if len(slots) < UPCOMING else None
        next_us = to_us(following) if isinstance(following, datetime) else None
    return tuple(slots)


#: Next slot; slot, result, start and node of the last successful run.
ScheduleRuns = tuple[int | None, int | None, str | None, int | None, str | None]
NO_RUNS: ScheduleRuns = (None, None, None, None, None)
_done = actions.alias("done")
_last = actions.alias("last")
_by_schedule = select(
    schedule_clock.c.schedule_id,
    case((schedule_clock.c.searching == 0, schedule_clock.c.next_at)),
    _last.c.slot,
    _last.c.result,
    _last.c.started_us,
    nodes.c.name,
).select_from(
    schedule_clock.outerjoin(
        _last,
        (_last.c.tenant_id == schedule_clock.c.tenant_id)
        # The index (schedule_id, state, slot) has the latest done action at its end.
        & (
            _last.c.id
            == select(_done.c.id)
            .where(
                _done.c.schedule_id == schedule_clock.c.schedule_id,
                # A literal, see ready_queue.
                _done.c.state == literal_column("'done'"),
                _done.c.slot.is_not(None),
            )
            .order_by(_done.c.slot.desc())
            .limit(1)
            .correlate(schedule_clock)
            .scalar_subquery()
        ),
    )
    .outerjoin(
        attempts,
        (attempts.c.tenant_id == _last.c.tenant_id)
        & (attempts.c.action_id == _last.c.id)
        & (attempts.c.step == _last.c.step)
        & (attempts.c.n == _last.c.attempt),
    )
    .outerjoin(nodes, nodes.c.id == attempts.c.node_id)
)
_of_schedules = Prepared(lambda driver: _by_schedule.where(driver.among(schedule_clock.c.schedule_id, "schedules")))


def ask_schedule_runs(
    connection: Connection, schedule_ids: Iterable[str]
) -> Callable[[], dict[str | None, ScheduleRuns]]:
    """Ask for the :data:`ScheduleRuns` of those schedules that exist."""
    wanted = sorted(set(schedule_ids))
    if not wanted:
        return dict
    values = {"schedules": wanted}
    return _of_schedules.answer(connection, values, lambda rows: {row[0]: tuple(row[1:]) for row in rows})
