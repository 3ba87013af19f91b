"""Finds out whether commits succeeded after their answer was lost on the way."""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select

from lodger.engine.core.execution import Claim, Finished
from lodger.engine.store.lifecycle.endings import Settled
from lodger.engine.store.records import AnyRow
from lodger.engine.store.schema.scheduling import actions, attempts
from lodger.sandbox.outcome import Outcome

#: Written by another transaction that took the attempt from its node, under the node's name and epoch.
_BY_OTHERS = frozenset({Outcome.WORKER_LOST, Outcome.CANCELLED})

_t, _a = attempts.c, actions.c
_written = (
    select(_t.outcome, _a.state, _a.step, _a.attempt, _a.due_at)
    .join(actions, (_a.tenant_id == _t.tenant_id) & (_a.id == _t.action_id))
    .where(_t.tenant_id == bindparam("tenant"), _t.action_id == bindparam("id"), _t.step == bindparam("of_step"),
           _t.n == bindparam("number"), _t.node_id == bindparam("node"), _t.lease_epoch == bindparam("epoch"))
)  # fmt: skip


def find_committed(
    connection: Connection, node_id: str, unconfirmed: Iterable[tuple[Claim, Finished]]
) -> list[Settled]:
    """Return those of these attempts with an end written by this node's commit, in their present state."""
    settled = []
    for claim, finished in unconfirmed:
        keys = {"tenant": claim.tenant_id, "id": claim.action_id, "of_step": claim.step, "number": claim.attempt,
                 "node": node_id, "epoch": claim.lease_epoch}  # fmt: skip
        row = connection.execute(_written, keys).first()
        if row is not None and (row.outcome == finished.outcome.value or Outcome(row.outcome) not in _BY_OTHERS):
            settled.append(_settled(claim, row))
    return settled


def _settled(claim: Claim, row: AnyRow) -> Settled:
    state = row.state
    if row.attempt != claim.attempt:  # a later attempt has started already
        state = "ready" if row.step > claim.step else "waiting_retry"
    retry_at = row.due_at if state == row.state == "waiting_retry" else None
    return Settled(
        claim.tenant_id, claim.action_id, claim.schedule_id, claim.attempt, state, Outcome(row.outcome),
        retry_at_us=retry_at, step=claim.step,
    )  # fmt: skip
