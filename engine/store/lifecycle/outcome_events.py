"""The engine's own events for webhooks: how an action ended, put into the outbox in the transaction that ends it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from lodger.engine.store.tenants import webhooks
from lodger.engine.store.schema.data import webhooks as rows
from lodger.sandbox.job import ScriptError

if TYPE_CHECKING:
    from lodger.engine.store.lifecycle.endings import Settled

_OVER = {"done", "failed", "cancelled"}


def ended(connection: Connection, ends: Sequence[tuple[Settled, ScriptError | None]], now_us: int) -> None:
    """Tell webhooks that want it how these actions ended; each end is a Settled and its error."""
    over = [(settled, error) for settled, error in ends if settled.state in _OVER]
    if not over:
        return
    whose = sorted({settled.tenant_id for settled, _ in over})
    wanted = select(rows.c.tenant_id, rows.c.events).where(rows.c.tenant_id.in_(whose), rows.c.state == "on")
    told: dict[str, list[list[str]]] = {}
    for row in connection.execute(wanted):
        told.setdefault(row.tenant_id, []).append(json.loads(row.events))
    for settled, error in over:
        event = f"{webhooks.OWN}action.{settled.state}"
        if any(webhooks.wants(patterns, event) for patterns in told.get(settled.tenant_id, ())):
            # Below nought are the numbers of attempts: no effect of a script has such a place.
            place = (settled.action_id, settled.step, -settled.attempt)
            webhooks.send(connection, settled.tenant_id, event, _data(settled, error), place, now_us)


def _data(settled: Settled, error: ScriptError | None) -> dict[str, Any]:
    shown = None
    if error is not None:
        shown = {"name": error.name, "message": error.message, "file": error.file, "line": error.line}
    return {
        "tenant": settled.tenant_id,
        "action": settled.action_id,
        "schedule": settled.schedule_id,
        "state": settled.state,
        "outcome": settled.outcome.value,
        "step": settled.step,
        "attempt": settled.attempt,
        "error": shown,
    }
