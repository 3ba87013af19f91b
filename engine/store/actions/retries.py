"""Trying again by hand: a failed action goes on at the step that failed."""

from typing import Any

from sqlalchemy import Connection, select, update

from lodger.engine.core.errors import Conflict, NotFound
from lodger.engine.core.ids import is_id
from lodger.engine.policy.plan import Overlap
from lodger.engine.store.actions import actions
from lodger.engine.store.context import Books
from lodger.engine.store.queue import ready_queue, schedule_concurrency
from lodger.engine.store.records import Action
from lodger.engine.store.schema import scheduling as tables
from lodger.engine.store.tenants import tenants

RETRIED = "retried"
_a = tables.actions.c


def retry(books: Books, connection: Connection, tenant_id: str, action_id: str, now_us: int) -> Action:
    """Let a failed action start again at its failed step, with the versions, the params and the results that it had.

    Its tries are counted anew, it expires no more, and it waits for what of its schedule is unfinished unless overlap is ``allow``.

    Raises:
        NotFound: action_unknown.
        Conflict: action_not_failed, tenant_suspended.
    """
    tenants.demand_active(connection, tenant_id)
    which = select(tables.actions).where(_a.tenant_id == tenant_id, _a.id == action_id)
    row = connection.execute(which).first() if is_id(action_id) else None
    if row is None:
        raise NotFound("action_unknown", f"there is no action {action_id!r}", fix="list the actions")
    if row.state != "failed":
        raise Conflict(
            "action_not_failed",
            f"the action is {row.state}",
            why="only what has failed can go on where it failed",
            fix="replay it from its first step",
        )
    held = False
    if row.schedule_id is not None:
        revision = books.rulebook.revision(connection, tenant_id, row.schedule_id, row.revision)
        held = revision.terms.overlap is not Overlap.ALLOW and schedule_concurrency.busy(
            connection, row.schedule_id, row.node_key
        )
    values: dict[str, Any] = {
        "state": "ready", "held": int(held), "due_at": now_us, "reason": RETRIED, "finished_us": None, "expires_at": None,
        "tenant_faults": 0, "engine_faults": 0, "conflicts": 0,
    }  # fmt: skip
    connection.execute(update(tables.actions).where(_a.tenant_id == tenant_id, _a.id == action_id).values(values))
    ready_queue.widen(connection, [(tenant_id, row.requires)])
    ready_queue.refresh(connection, [tenant_id])
    return actions.get(connection, action_id, tenant_id)
