"""Adopts revisions of schedules that a platform's own SQL has inserted and reported to nobody: a trigger has written them down."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.core.errors import Unavailable
from lodger.engine.node.service import Service
from lodger.engine.store.schedules import adoption

if TYPE_CHECKING:
    from lodger.engine.node.node import Node


class Adopter(Service):
    """Looks when somebody has committed; each schedule is adopted, or refused, in a transaction of its own."""

    name: ClassVar[str] = "adopter"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node

    async def round(self) -> float:
        """Adopt what waits."""
        node = self._node
        found = await node.pen.standing("adoptions", adoption.waiting)
        for tenant_id, schedule_id in found:
            take = partial(adoption.take, node.books, tenant_id=tenant_id, schedule_id=schedule_id)
            try:
                refused = await node.pen.write(partial(take, now_us=self.clock.now_us()))
            except Unavailable:
                raise  # the ledger is away: for all of them
            except Exception as fault:  # noqa: BLE001 - of this one alone: nobody waits behind it, and it is tried again
                node.failed(self.name, fault)
                continue
            if refused is not None:
                error = Unavailable(
                    "revision_refused",
                    f"schedule {schedule_id} of tenant {tenant_id!r} stays as it is: what SQL has inserted was refused, {refused}",
                    why=refused.why,
                    fix=refused.fix or "insert a copy of the present revision with what is to be different",
                )
                node.failed(self.name, error)
        return 0.0 if len(found) >= adoption.MOST else node.patience_s
