"""What is due: peeks ahead, and turns clocks into actions at their instant."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.ledger import clocks
from lodger.engine.node.horizon import Horizon
from lodger.engine.node.service import Service

if TYPE_CHECKING:
    from lodger.engine.node.node import Node


#: How soon to look again for what was passed by, seconds.
PASSED_BY_S = 0.01


class Ticker(Service):
    """Reads the clocks of the next ``peek_s`` into a heap, looks again every ``poll_s`` for what others changed."""

    name: ClassVar[str] = "ticker"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._horizon = Horizon()
        self._looked_us = 0
        self._version: int | None = None
        #: Since when more is due than one tick takes, elapsed seconds; None while it keeps up.
        self.behind_s: float | None = None

    def nudge(self) -> None:
        """Look at once: a schedule has changed."""
        self._looked_us = 0
        super().nudge()

    def _known(self, until_us: int) -> bool:
        """Whether nobody has committed anything since it was looked so far ahead."""
        return (
            self._horizon.until >= until_us and self._version is not None and self._version == self._node.pen.version()
        )

    async def round(self) -> float:
        """Look ahead when it is time, tick when something is due."""
        node, horizon, now = self._node, self._horizon, self.clock.now_us()
        poll_us = int(node.settings.poll_s * 1_000_000)
        if not self._looked_us <= now < self._looked_us + poll_us:
            self._looked_us = now
            if not self._known(now + 2 * poll_us):
                until, self._version = now + int(node.settings.peek_s * 1_000_000), node.pen.version()
                horizon.read(await node.pen.read(partial(clocks.upcoming, until_us=until)), until)
                now = self.clock.now_us()
        if horizon.due(now):
            self._version = None  # whatever becomes of it: look again
            ticked = await node.pen.write(partial(clocks.tick, node.books, now_us=now))
            full = len(ticked) >= node.settings.tick_batch
            if not full:
                self.behind_s = None
            elif self.behind_s is None:
                self.behind_s = self.clock.elapsed_s()
            node.told_ticks(ticked)
            for each in ticked:
                horizon.add(each.next_us)
            if full:
                horizon.more(now)
                return 0.0
            if node.books.database.dialect != "sqlite":
                # Clocks whose tenant another transaction holds were passed by: see soon whether any is left.
                self._looked_us = 0
                return PASSED_BY_S
        upcoming = horizon.next
        now = self.clock.now_us()
        wait_us = self._looked_us + poll_us - now
        return min(wait_us, wait_us if upcoming is None else upcoming - now) / 1_000_000
