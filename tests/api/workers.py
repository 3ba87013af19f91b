"""A server whose node works."""

from tests.api.running_api import RunningApi
from tests.store.bench import node_id

from lodger.engine.effects import outcome_commit
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import claims, leases, tick
from lodger.engine.store.lifecycle.claims import Lease
from lodger.sandbox.job import LogLine, ScriptError
from lodger.sandbox.outcome import Outcome


def worked(
    lodge: RunningApi,
    *,
    fails: bool = False,
    logs: tuple[LogLine, ...] = (),
    error: ScriptError | None = None,
    finished: Finished | None = None,
) -> None:
    """Claim and end what is ready, as a node would."""
    context = lodge.engine.context
    with context.database.write() as connection:
        lease: Lease = leases.register(context, connection, node_id(f"n{lodge.clock.us}"), "n", lodge.clock.us)
    with context.database.write() as connection:
        tick.tick(context, connection, lodge.clock.us)
    with context.database.write() as connection:
        taken = claims.claim(context, connection, lease, 50, lodge.clock.us)()
    lodge.engine.changed()
    failed = Finished(Outcome.SCRIPT_ERROR, error=error or ScriptError("E", "no"), logs=logs)
    ended = finished or (failed if fails else Finished(Outcome.OK, "1", logs=logs))
    with context.database.write() as connection:
        outcome_commit.commit(context, connection, lease, [(claim, ended) for claim in taken], lodge.clock.us)
    lodge.engine.changed()
