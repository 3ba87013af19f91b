"""Adopts revisions of schedules that a platform's own SQL has inserted without reporting them: a trigger has queued them."""

from functools import partial
from typing import Any, ClassVar

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import ChangeReported, LedgerChanged
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.schedules import adoption


class Adoption(Service):
    """Looks after each commit; each schedule is adopted, or refused, in a transaction of its own."""

    name: ClassVar[str] = "adoption"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self.wake_on(LedgerChanged, ChangeReported)

    async def round(self) -> float:
        """Adopt what waits."""
        context = self.context
        found = await context.db.cached_read("adoptions", adoption.list_unreported)
        for tenant_id, schedule_id in found:
            schedule: dict[str, Any] = {
                "tenant_id": tenant_id,
                "schedule_id": schedule_id,
                "now_us": self.clock.now_us(),
            }
            try:
                prepared = await context.db.read(partial(adoption.prepare, context.store, **schedule))
                refused = await context.db.write(
                    partial(adoption.adopt_candidate, context.store, prepared=prepared, **schedule)
                )
            except Unavailable:
                raise  # the ledger is away: for all of them
            except Exception as fault:  # noqa: BLE001 - of this one alone: no other waits behind it, and it is tried again
                self.fault(fault)
                continue
            if refused is not None:
                error = Unavailable(
                    "revision_refused",
                    f"schedule {schedule_id} of tenant {tenant_id!r} keeps its revision; one inserted by SQL was refused: {refused}",
                    why=refused.why,
                    fix=refused.fix or "insert a changed copy of the current revision with the next number",
                )
                self.fault(error)
        return 0.0 if len(found) >= adoption.MAX_ROWS else context.idle_s
