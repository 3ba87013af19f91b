"""What is due: peeks ahead, and turns clocks into actions at their instant."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.node.scheduling.horizon import Horizon
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import tick

if TYPE_CHECKING:
    from lodger.engine.node.node import Node


#: How soon to look again for what was passed by, seconds.
PASSED_BY_S = 0.01


class Ticker(Service):
    """Reads the clocks of the next ``peek_s`` into a heap; again when somebody has committed, or ``poll_s`` later where nobody can tell."""

    name: ClassVar[str] = "ticker"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._horizon = Horizon()
        #: What was read stands from one instant to another.
        self._read_us = self._again_us = 0
        self._version: object | None = None
        self._woken = False
        #: Since when more is due than one tick takes, elapsed seconds; None while it keeps up.
        self.behind_s: float | None = None

    def nudge(self) -> None:
        """Look at once: something may have changed."""
        self._woken = True
        super().nudge()

    async def round(self) -> float:
        """Look ahead when it is time, tick when something is due."""
        node, horizon = self._node, self._horizon
        await self._look()
        now = self.clock.now_us()
        if horizon.due(now):
            # Whatever becomes of it, look again: at once if it fails, after the commit if it does not.
            self._version, again_us, self._again_us = None, self._again_us, 0
            ticked = await node.pen.write(partial(tick.tick, node.books, now_us=now))
            self._again_us = again_us
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
            if node.books.database.driver.has_row_locks:
                # Clocks whose tenant another transaction holds were passed by: see soon whether any is left.
                self._again_us = 0
                return PASSED_BY_S
        upcoming, now = horizon.next, self.clock.now_us()
        until = self._again_us if upcoming is None else min(upcoming, self._again_us)
        return min(node.patience_s, (until - now) / 1_000_000)

    async def _look(self) -> None:
        """Read what comes due, unless what was read still stands."""
        node, horizon, now = self._node, self._horizon, self.clock.now_us()
        woken, self._woken = self._woken, False
        version = node.pen.version()
        changed = woken and (version is None or version != self._version)
        if not changed and self._read_us <= now < self._again_us:
            return
        poll_us, until = int(node.settings.poll_s * 1_000_000), now + int(node.settings.peek_s * 1_000_000)
        instants, until = await node.pen.read(partial(tick.ahead, until_us=until, far=version is not None))
        horizon.read(instants, until)
        self._read_us, self._version = now, version
        # Where nobody can tell of commits somebody may have made one.
        self._again_us = now + poll_us if version is None else max(now + poll_us, until - 2 * poll_us)
