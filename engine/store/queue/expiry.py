"""Expiry of actions that have not started by ``expires_at``."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from lodger.engine.store.queue import ready_queue, schedule_concurrency
from lodger.engine.store.schema.scheduling import actions, is_expiring

_expire = (
    update(actions)
    .where(is_expiring, actions.c.expires_at <= bindparam("now"))
    .values(state="expired", reason="expired", held=0, finished_us=bindparam("now"))
    .returning(actions.c.tenant_id, actions.c.schedule_id, actions.c.node_key, actions.c.id)
)
_waiting_of = select(actions.c.tenant_id).where(is_expiring, actions.c.expires_at <= bindparam("now")).distinct()


def expire(connection: Connection, now_us: int) -> Sequence[Any]:
    """Expire overdue actions; return (tenant_id, schedule_id, node_key, id) of each."""
    ready_queue.lock_matching(connection, _waiting_of, {"now": now_us})
    rows = connection.execute(_expire, {"now": now_us}).all()
    if rows:
        lines = {(row.tenant_id, row.schedule_id, row.node_key) for row in rows if row.schedule_id is not None}
        schedule_concurrency.release(connection, lines)
        ready_queue.refresh(connection, {row.tenant_id for row in rows})
    return rows
