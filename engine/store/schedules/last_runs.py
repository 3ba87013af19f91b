"""The latest run of a schedule, for people and programs that ask."""

from sqlalchemy import Connection, bindparam, func, select

from lodger.engine.core.clock import from_us
from lodger.engine.store.records import LastRun
from lodger.engine.store.schema.nodes import nodes
from lodger.engine.store.schema.scheduling import actions, attempts
from lodger.sandbox.outcome import Outcome

_last = (
    select(
        actions.c.id, actions.c.slot, actions.c.due_at, actions.c.state, actions.c.outcome, actions.c.started_us,
        actions.c.finished_us, nodes.c.name,
    )
    .outerjoin_from(
        actions,
        attempts,
        (attempts.c.tenant_id == actions.c.tenant_id)
        & (attempts.c.action_id == actions.c.id)
        & (attempts.c.n == actions.c.attempt),
    )
    # While it runs the action itself knows its node.
    .outerjoin(nodes, nodes.c.id == func.coalesce(actions.c.node_id, attempts.c.node_id))
    .where(
        actions.c.tenant_id == bindparam("tenant"),
        actions.c.schedule_id == bindparam("schedule"),
        actions.c.started_us.is_not(None),
    )
    .order_by(actions.c.started_us.desc(), actions.c.id.desc())
    .limit(1)
)  # fmt: skip


def last_run(connection: Connection, tenant_id: str, schedule_id: str) -> LastRun | None:
    """Give the run of this schedule that started last; None when nothing ever has."""
    row = connection.execute(_last, {"tenant": tenant_id, "schedule": schedule_id}).first()
    if row is None:
        return None
    return LastRun(
        row.id,
        None if row.slot is None else from_us(row.slot),
        from_us(row.due_at),
        from_us(row.started_us),
        None if row.finished_us is None else from_us(row.finished_us),
        row.state,
        Outcome(row.outcome) if row.outcome else None,
        row.name or "",
    )
