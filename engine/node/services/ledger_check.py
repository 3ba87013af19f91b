"""Detects that the ledger is not the one of before: a standby took over, or a backup was restored. Nothing is lost silently."""

from collections import Counter, deque
from functools import partial
from typing import ClassVar

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Fault
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import BatchCommitted
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import ledger_identity
from lodger.engine.store.lifecycle.ledger_identity import AttemptKey, LedgerIdentity

#: Committed attempts that are looked for in another ledger: those of the last seconds, and no more than this.
RECENT_S, MAX_RECENT = 60.0, 10_000


class LedgerCheck(Service):
    """Compares the ledger's identity after each database error and once per lease.

    If it has changed, the node looks for its last commits, reports missing ones, and begins anew under a new epoch: those
    actions run again. With a synchronous standby nothing is missing.
    """

    name: ClassVar[str] = "ledger-check"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._identity: LedgerIdentity | None = None
        self._recent: deque[tuple[float, AttemptKey]] = deque(maxlen=MAX_RECENT)
        context.bus.subscribe(BatchCommitted, self._committed)
        context.bus.subscribe(Fault, self._failed)

    def _committed(self, event: BatchCommitted) -> None:
        """Keep the recent commits of this node, to look for them in a ledger that was replaced."""
        now_s = self.clock.elapsed_s()
        while self._recent and self._recent[0][0] < now_s - RECENT_S:
            self._recent.popleft()
        self._recent.extend(
            (now_s, (each.tenant_id, each.action_id, each.step, each.attempt)) for each in event.committed.settled
        )

    def _failed(self, event: Fault) -> None:
        """Check the ledger at once after a database error of another service."""
        if isinstance(event.error, Unavailable) and event.service != self.name:
            self.wake()

    async def round(self) -> float:
        """Compare the ledger's identity with the known one."""
        context = self.context
        found = await context.db.read(partial(ledger_identity.read, context.store))
        before, self._identity = self._identity, found
        if before is not None and found.differs(before):
            recent = Counter(key for _at_s, key in self._recent)
            missing = set(await context.db.read(partial(ledger_identity.find_missing, keys=recent)))
            # Committed twice: the first one was lost, and the attempt has run again already.
            missing |= {key for key, times in recent.items() if times > 1}
            self._recent.clear()
            context.bus.publish(
                context.event(
                    "ledger_replaced",
                    before=str(before),
                    identity=str(found),
                    lost=len(missing),
                    actions=" ".join(sorted(action for _tenant, action, _step, _attempt in missing)[:20]),
                )
            )
            context.surrender("the database is not the one of before: a standby took over, or a backup was restored")
        return context.settings.lease_s if context.store.database.driver.is_remote else 3600.0
