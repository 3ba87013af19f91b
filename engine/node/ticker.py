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

    def nudge(self) -> None:
        """Look at once: a schedule has changed."""
        self._looked_us = 0
        super().nudge()

    async def round(self) -> float:
        """Look ahead when it is time, tick when something is due."""
        node, horizon, now = self._node, self._horizon, self.clock.now_us()
        poll_us = int(node.settings.poll_s * 1_000_000)
        if not self._looked_us <= now < self._looked_us + poll_us:
            until = now + int(node.settings.peek_s * 1_000_000)
            self._looked_us = now
            horizon.read(await node.pen.read(partial(clocks.upcoming, until_us=until)), until)
            now = self.clock.now_us()
        if horizon.due(now):
            ticked = await node.pen.write(partial(clocks.tick, node.books, now_us=now))
            node.told_ticks(ticked)
            for each in ticked:
                horizon.add(each.next_us)
            if len(ticked) >= node.settings.tick_batch:
                self._looked_us = 0
                return 0.0
            if node.books.database.dialect != "sqlite":
                # Clocks whose tenant another transaction holds were passed by: see soon whether any is left.
                self._looked_us = 0
                return PASSED_BY_S
        upcoming = horizon.next
        now = self.clock.now_us()
        wait_us = self._looked_us + poll_us - now
        return min(wait_us, wait_us if upcoming is None else upcoming - now) / 1_000_000
