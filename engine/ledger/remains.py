"""What a cancelled attempt leaves: its logs and what it used, written after its worker has died."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, update

from lodger.engine.ledger.books import Books
from lodger.engine.ledger.claims import Lease, holds
from lodger.engine.ledger.endings import charge
from lodger.engine.ledger.insertion import insert_absent
from lodger.engine.ledger.schema.scheduling import attempt_logs, attempts
from lodger.engine.node.executor import Claim, Finished

_t = attempts.c
#: Whoever took the action away has ended the attempt; only its own node knows the rest, and only once.
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


def write(
    books: Books, connection: Connection, lease: Lease, batch: Sequence[tuple[Claim, Finished]], now_us: int
) -> list[Claim]:
    """Complete the rows of these attempts; give those that had one. None without the lease under which they ran."""
    if not holds(connection, lease):
        return []
    found: list[Claim] = []
    logged = []
    for claim, finished in batch:
        usage = finished.usage
        key = {"k_tenant": claim.tenant_id, "k_action": claim.action_id, "k_step": claim.step, "k_n": claim.attempt,
               "k_node": lease.node_id, "k_epoch": claim.lease_epoch}  # fmt: skip
        used = {"cpu": int(usage.cpu_ms * 1000), "wall": max(1, int(usage.wall_ms * 1000)),
                "memory": usage.memory_peak_bytes, "calls": usage.host_calls}  # fmt: skip
        if claim.lease_epoch != lease.epoch or connection.execute(_complete, key | used).rowcount != 1:
            continue
        found.append(claim)
        if finished.logs:
            lines = json.dumps([[line.level, line.text, line.us] for line in finished.logs])
            logged.append({"tenant_id": claim.tenant_id, "action_id": claim.action_id, "step": claim.step,
                           "n": claim.attempt, "lines": lines})  # fmt: skip
        charge(connection, claim.tenant_id, now_us, cpu_us=used["cpu"])
    insert_absent(connection, attempt_logs, logged)
    return found
