"""Logs and usage of cancelled attempts, written after their worker was killed."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.store.bulk import insert_many
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle.claims import Lease, holds_lease
from lodger.engine.store.lifecycle.running_lines import encode_lines
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.schema.scheduling import actions, attempt_logs, attempts
from lodger.engine.store.usage import budget_reservations, storage_usage, usage

_t = attempts.c
#: The attempt was ended by another transaction; only its own node knows the rest, and only once.
_complete = (
    update(attempts)
    .where(
        _t.tenant_id == bindparam("k_tenant"),
        _t.action_id == bindparam("k_action"),
        _t.step == bindparam("k_step"),
        _t.n == bindparam("k_n"),
        _t.node_id == bindparam("k_node"),
        _t.lease_epoch == bindparam("k_epoch"),
        _t.outcome == "cancelled",
        _t.wall_us == 0,
    )
    .values(
        cpu_us=bindparam("cpu"),
        wall_us=bindparam("wall"),
        memory_peak_bytes=bindparam("memory"),
        host_calls=bindparam("calls"),
    )
)


def _find_handed_back(connection: Connection, claims: Sequence[Claim]) -> set[tuple[str, str]]:
    """Return the actions, by tenant and id, that were not cancelled but are to run again: their attempts are free."""
    mine = actions.c.id.in_({claim.action_id for claim in claims})
    open_ = (mine, actions.c.tenant_id.in_({claim.tenant_id for claim in claims}), actions.c.state != "cancelled")
    return {tuple(row) for row in connection.execute(select(actions.c.tenant_id, actions.c.id).where(*open_))}


def write(
    context: StoreContext,
    connection: Connection,
    lease: Lease,
    batch: Sequence[tuple[Claim, Finished]],
    now_us: int,
    warned: list[usage.Warned] | None = None,
) -> list[Claim]:
    """Complete the rows of cancelled attempts; return the claims with a row. Without the lease they ran under, nothing is written.

    Args:
        warned: receives the tenants that reached the warning level of a budget of the day.
    """
    if not holds_lease(connection, lease):
        return []
    ready_queue.lock(connection, {claim.tenant_id for claim, _finished in batch})
    handed_back = _find_handed_back(connection, [claim for claim, _finished in batch])
    found: list[Claim] = []
    logged = []
    stored: Counter[str] = Counter()
    charged: usage.Charges = defaultdict(Counter)
    for claim, finished in batch:
        ran = finished.usage
        key = {"k_tenant": claim.tenant_id, "k_action": claim.action_id, "k_step": claim.step, "k_n": claim.attempt,
               "k_node": lease.node_id, "k_epoch": claim.lease_epoch}  # fmt: skip
        used = {"cpu": int(ran.cpu_ms * 1000), "wall": max(1, int(ran.wall_ms * 1000)),
                "memory": ran.memory_peak_bytes, "calls": ran.host_calls}  # fmt: skip
        if claim.lease_epoch != lease.epoch or connection.execute(_complete, key | used).rowcount != 1:
            continue
        found.append(claim)
        if finished.logs:
            lines = encode_lines(finished.logs)
            logged.append({"tenant_id": claim.tenant_id, "action_id": claim.action_id, "step": claim.step,
                           "n": claim.attempt, "lines": lines})  # fmt: skip
            stored[claim.tenant_id] += storage_usage.size(lines)
        if (claim.tenant_id, claim.action_id) in handed_back:
            continue
        charged[claim.tenant_id, now_us // usage.DAY_US].update({"runs": 1, "cpu_us": used["cpu"]})
        charged[claim.tenant_id, claim.started_us // usage.DAY_US].update(
            usage.chargeable(finished.spent, applied=False)
        )
    insert_many(connection, attempt_logs, logged, absent=True)
    nearly = usage.charge(context, connection, charged)
    if warned is not None:
        warned += nearly
    budget_reservations.release(connection, [(claim.tenant_id, claim.action_id, claim.attempt) for claim in found])
    storage_usage.add_history(connection, stored)
    return found
