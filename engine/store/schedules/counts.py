"""Counts what became of a schedule's actions. An index by schedule and state answers without reading a row of history."""

from sqlalchemy import Connection, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.store.records import Counters, Schedule
from lodger.engine.store.schema.scheduling import actions


def of_schedule(connection: Connection, schedule: Schedule) -> Counters:
    """Count by state, and what was skipped by its reason."""
    mine = (actions.c.tenant_id == schedule.tenant_id, actions.c.schedule_id == schedule.id)
    states = connection.execute(select(actions.c.state, func.count()).where(*mine).group_by(actions.c.state))
    reasons = connection.execute(
        select(actions.c.reason, func.count()).where(*mine, actions.c.state == "skipped").group_by(actions.c.reason)
    )
    oldest = connection.scalar(select(func.min(actions.c.due_at)).where(*mine))
    return Counters(
        schedule_id=schedule.id,
        actions={row[0]: row[1] for row in states},
        skipped={row[0]: row[1] for row in reasons},
        failures=schedule.failures,
        since=None if oldest is None else from_us(oldest),
    )
