"""Holds a node while time is wrong: while a clock is set far from where it was, or the ledger was written in the future."""

from datetime import timedelta
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.clock import from_us, zulu
from lodger.engine.core.events import ChangeReported
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import wrong_clock
from lodger.engine.store.platform import node_rows


class ClockWatch(Service):
    """Looks four times a lease. A held node plans and starts nothing, and deletes no history; running attempts end and are written."""

    name: ClassVar[str] = "clock-watch"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        #: Whether the ledger's past was found to lie before now: it is compared when the node starts, and while it is held.
        self._is_past_known = False
        #: Reason that the ledger has for this node.
        self._noted = ""

    async def round(self) -> float:
        """Compare this machine's clock, the server's and the ledger's past; note and publish differences."""
        context, clock, before = self.context, self.clock, self.clock.hold
        clock.hold = await self._hold()
        if clock.hold != before and not clock.hold:
            context.bus.publish(ChangeReported())
        reason = clock.hold or self._skew()
        if reason != self._noted and context.identity.lease is not None:
            await context.db.write(partial(node_rows.set_held, node_id=context.identity.id, held=reason or None))
            context.bus.publish(context.event("clock_wrong", held=bool(reason), reason=reason))
            self._noted = reason
        return context.settings.lease_s / 4

    def _skew(self) -> str:
        """Return why the node claims nothing because its clock differs too much from the server's; empty if it does not."""
        if not self.clock.skewed:
            return ""
        length = timedelta(seconds=round(abs(self.clock.offset_us) / 1e6))
        return f"this machine's clock differs from the database server's by {length}; set it right, for example by NTP"

    async def _hold(self) -> str:
        """Return why this node must not plan or start runs by its clock; "" if it may."""
        clock = self.clock
        clock.now_us()  # a step is noticed when the clock is read
        if clock.stepped_us:
            side = "ahead" if clock.stepped_us > 0 else "back"
            length = timedelta(seconds=round(abs(clock.stepped_us) / 1e6))
            return f"{clock.stepped} was set {length} {side} while this node ran; set it right, or start the node again if it is right now"
        if self._is_past_known:
            return ""
        last_us = await self.context.db.read(partial(_last_written, now_us=clock.now_us()))
        self._is_past_known = last_us is None
        if last_us is None:
            return ""
        written = zulu(from_us(last_us))
        mend = "see whether this machine's clock is right, then: lodger db repair-clock --yes"
        return f"the ledger was written until {written}, in the future; {mend}"


def _last_written(connection: Connection, *, now_us: int) -> int | None:
    """Return the latest instant at which the ledger says that it was written, if that lies in the future; None if not."""
    last_us = max(wrong_clock.last_written_us(connection), wrong_clock.last_accounted_us(connection, now_us))
    return last_us if last_us > now_us + wrong_clock.TOLERANCE_US else None
