"""Compares the attempts of this node with those that the ledger says run here."""

from functools import partial
from typing import ClassVar

from lodger.engine.core.events import ActionsReady, ChangeReported, LedgerChanged
from lodger.engine.node.context import NodeContext
from lodger.engine.node.running_attempts import RunningAttempts
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import leases


class Reconciler(Service):
    """Kills the workers of attempts that were cancelled, suspended or taken over, within ``poll_s``.

    Attempts that the ledger says run here and do not, because the answer to their claim was lost on the way, are handed back.
    """

    name: ClassVar[str] = "reconciler"

    def __init__(self, context: NodeContext, attempts: RunningAttempts) -> None:
        super().__init__(context)
        self._attempts = attempts
        self.wake_on(LedgerChanged, ChangeReported)

    async def round(self) -> float:
        """Cancel attempts whose actions are no longer theirs in the ledger."""
        context, attempts = self.context, self._attempts
        # Taken before the snapshot: an attempt claimed meanwhile is in neither.
        here, claiming = attempts.keys, attempts.claiming
        lease = context.identity.lease
        if lease is None or not (here or attempts.in_doubt):
            return context.settings.poll_s if claiming else context.idle_s
        mine = await context.db.read(partial(leases.running_attempts, lease=lease))
        attempts.kill(here - mine - attempts.ended)
        absent = mine - attempts.keys
        # Rows that a claim has just written are absent until it is answered: then they are looked at again.
        attempts.in_doubt = bool(absent) and (claiming or attempts.claiming)
        if absent and not attempts.in_doubt:
            await context.db.write(partial(leases.return_unstarted, lease=lease, attempts=absent))
            context.bus.publish(ActionsReady())
        return context.settings.poll_s
