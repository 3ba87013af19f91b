"""Reads and compiles the revisions of schedules that come due soon, so that the tick finds them ready."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.revision_cache import KEPT

if TYPE_CHECKING:
    from lodger.engine.node.node import Node

#: How far it looks ahead, and how often, seconds: what is made ready is ready for at least the difference.
AHEAD_S, LOOK_S = 10.0, 2.5
#: Revisions read at once, and the rest after it, seconds: whoever else reads does not wait for long.
FEW, REST_S = 50, 0.01


class Forerunner(Service):
    """Fills the rulebook; nothing depends on it, a tick reads by itself what it finds unread."""

    name: ClassVar[str] = "forerunner"

    def __init__(self, node: Node) -> None:
        super().__init__(node.clock, node.failed)
        self._node = node
        self._ready_us = 0
        self._look_s = float("-inf")
        self._unread: deque[tuple[str, str, int, int]] = deque()

    def nudge(self) -> None:
        """Changes are no reason to look: what is changed is read when it is due."""

    async def round(self) -> float:
        """Look ahead, or read a few."""
        node = self._node
        if self._unread:
            few = [self._unread.popleft() for _ in range(min(FEW, len(self._unread)))]
            await node.pen.read(partial(node.books.rulebook.warm, wanted=few))
            return REST_S
        now_s = self.clock.elapsed_s()
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_S
            now_us = self.clock.now_us()
            until_us = now_us + int(AHEAD_S * 1_000_000)
            # A clock that was set back shows what it has shown before.
            after_us = self._ready_us if now_us <= self._ready_us <= until_us else now_us
            ahead = partial(tick.approaching, after_us=after_us, until_us=until_us, most=KEPT // 2)
            self._unread.extend(node.books.rulebook.unread(await node.pen.read(ahead)))
            self._ready_us = until_us
            if self._unread:
                return 0.0
        return max(0.0, self._look_s - now_s)
