"""Reads the revisions of schedules that come due soon, and works out their slots."""

import gc
from collections import deque
from functools import partial
from typing import ClassVar

from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.revision_cache import KEPT

#: How far the prefetcher looks ahead, and how often, seconds: revisions are read at least the difference before they are needed.
PREFETCH_S, LOOK_S = 10.0, 2.5
#: Number of revisions that are read at once, and the rest after that, seconds: no other reader waits for long.
BATCH, REST_S = 50, 0.01
#: After so many revisions all objects are taken out of what Python's collector looks through: 20 000 of them held up every run for 200 ms.
#: Until the cache is full only, because garbage that waits for the collector then stays.
FREEZE_EACH = 1000


class Prefetcher(Service):
    """Leaves a tick nothing to read: at its instant a slot only has to be written.

    Nothing depends on it: a tick reads by itself the revisions that it finds unread. Changed revisions are read when they are due,
    so commits do not wake it.
    """

    name: ClassVar[str] = "prefetcher"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._ready_us = 0
        self._look_s = float("-inf")
        self._number = 0
        self._unread: deque[tuple[str, str, int]] = deque()

    async def round(self) -> float:
        """Read the versions of scripts that run soon, a few at a time."""
        db, revisions = self.context.db, self.context.store.revision_cache
        if self._unread:
            wanted = [self._unread.popleft() for _ in range(min(BATCH, len(self._unread)))]
            await db.read(partial(revisions.revisions, wanted=wanted))
            self._number += len(wanted)
            if self._number % FREEZE_EACH < len(wanted) and self._number <= KEPT:
                gc.freeze()
            return REST_S
        now_s = self.clock.elapsed_s()
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_S
            now_us = self.clock.now_us()
            until_us = now_us + int(PREFETCH_S * 1_000_000)
            # A clock that was set back repeats instants.
            after_us = self._ready_us if now_us <= self._ready_us <= until_us else now_us
            ahead = partial(tick.due_soon, after_us=after_us, until_us=until_us, maximum=KEPT // 2)
            self._unread.extend(revisions.uncached(await db.read(ahead)))
            self._ready_us = until_us
            if self._unread:
                return 0.0
        return max(0.0, self._look_s - now_s)
