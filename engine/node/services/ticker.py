"""Turns clocks into actions shortly before they come due, and reads ahead what comes due soon."""

import asyncio
import bisect
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import ClassVar, TypeVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import Backlog, ChangeReported, LedgerChanged
from lodger.engine.node.context import NodeContext, Write
from lodger.engine.node.node_events import Ticked
from lodger.engine.node.service import Service
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.revision_cache import KEPT

T = TypeVar("T")
#: How soon to look again for clocks that were passed by, seconds.
PASSED_BY_S = 0.01
#: How far the prefetcher looks ahead, and how often, seconds: what is made ready is ready for at least the difference.
PREFETCH_S, LOOK_S = 10.0, 2.5
#: Revisions that the prefetcher reads at once, and its rest after that, seconds: no other reader waits for long.
BATCH, REST_S = 50, 0.01


class Horizon:
    """The instants (µs) at which a clock comes due soon, in order.

    Args:
        lead_us: says when an instant is to be ticked ahead.

    Attributes:
        until: instants up to this one are known.
        ticked: instants up to this one were ticked ahead. A clock that is still there had an unfinished action or was locked; it is
            ticked when it is due.
    """

    def __init__(self, lead_us: Callable[[int], int]) -> None:
        self._lead_us = lead_us
        self._instants: list[int] = []
        self.until = self.ticked = 0

    def read(self, instants: list[int], until: int) -> None:
        """Replace what is known."""
        self._instants = sorted(instants)
        self.until = until

    def add(self, instant: int | None) -> None:
        """Remember one more instant, when it lies within the look-ahead."""
        if instant is not None and instant <= self.until:
            bisect.insort(self._instants, instant)

    def forget(self, now: int) -> None:
        """Forget the instants that have come."""
        del self._instants[: bisect.bisect_right(self._instants, now)]

    def drop(self, instant: int) -> None:
        """Forget one clock's instant, if it is still there."""
        place = bisect.bisect_left(self._instants, instant)
        if self._instants[place : place + 1] == [instant]:
            del self._instants[place]

    def comes(self, until: int) -> bool:
        """Whether an instant up to ``until`` has not been ticked ahead."""
        after = bisect.bisect_right(self._instants, self.ticked)
        return after < len(self._instants) and self._instants[after] <= until

    @property
    def next(self) -> int | None:
        """When to tick next: at the earliest instant, or so long before as one that was not ticked ahead may be."""
        first = self._instants[0] if self._instants else None
        after = bisect.bisect_right(self._instants, self.ticked)
        if after == len(self._instants):
            return first
        ahead = self._lead_us(self._instants[after])
        return ahead if after == 0 or first is None else min(first, ahead)


class Ticker(Service):
    """Reads the clocks of the next ``peek_s``; again after a commit, or ``poll_s`` later where commits are not seen.

    Args:
        write: does a tick in a write transaction, and calls with its result.

    Attributes:
        behind_s: since when more is due than one tick takes, on the clock of durations; None while it keeps up.
    """

    name: ClassVar[str] = "ticker"

    def __init__(self, context: NodeContext, write: Write) -> None:
        super().__init__(context)
        self._write = write
        self.wake_on(LedgerChanged, ChangeReported)
        self._horizon = Horizon(context.lead_us)
        #: Held while the horizon is read or a commit ticks: a read that began before would replace what the tick has added.
        self._horizon_lock = asyncio.Lock()
        #: What was read stands from one instant to another.
        self._read_us = self._again_us = 0
        self._version: object | None = None
        self._woken = self._passed_by = False
        self.behind_s: float | None = None

    def wake(self) -> None:
        """Look at once: something may have changed."""
        self._woken = True
        super().wake()

    async def round(self) -> float:
        """Look ahead when it is time, tick when the horizon says so."""
        await self._look()
        upcoming = self._horizon.next
        if upcoming is None or upcoming > self.clock.now_us():
            self._keeps_up(full=False)  # the last full tick took all there was, or other nodes took the rest
        else:
            async with self.context.claim_lock:
                upcoming = self._horizon.next
                # What was written meanwhile may have ticked it along.
                wait = await self._tick_due() if upcoming is not None and upcoming <= self.clock.now_us() else None
            if wait is not None:
                return wait
        upcoming, now = self._horizon.next, self.clock.now_us()
        until = self._again_us if upcoming is None else min(upcoming, self._again_us)
        return min(self.context.idle_s, (until - now) / 1_000_000)

    async def _tick_due(self) -> float | None:
        """Tick what is due or comes due soon; return the seconds after which more is to be ticked, None if the horizon says when."""
        horizon, now = self._horizon, self.clock.now_us()
        horizon.forget(now)
        # Whatever becomes of it, look again: at once if it fails, after the commit if it does not.
        self._version, again_us, self._again_us = None, self._again_us, 0
        ticked = await self.tick(now, self.context.ahead_us(now) if self.behind_s is None else now)
        self._again_us = again_us
        if len(ticked) >= self.context.settings.tick_batch:
            horizon.add(min(now, horizon.until))
            return 0.0
        if self._passed_by:
            self._again_us = 0
            return PASSED_BY_S
        return None

    def _ticked(self, ticked: list[tick.Ticked], until_us: int) -> None:
        self._keeps_up(full=len(ticked) >= self.context.settings.tick_batch)
        horizon = self._horizon
        horizon.ticked = until_us
        for each in ticked:
            horizon.drop(each.due_us)
            horizon.add(each.next_us)
        self.context.bus.publish(Ticked(tuple(ticked)))

    async def tick(self, now_us: int, until_us: int = 0) -> list[tick.Ticked]:
        """Turn one batch of clocks that are due now, or come due until then, into actions, and publish what was written."""
        written: list[tick.Ticked] = []
        row_locks = self.context.store.database.driver.has_row_locks

        def work(connection: Connection) -> tuple[list[tick.Ticked], bool]:
            ticked = tick.tick(self.context.store, connection, now_us, ahead_us=until_us)
            self._passed_by = row_locks and tick.any_due(connection, now_us)
            return ticked, any(each.runs for each in ticked)

        def then(ticked: list[tick.Ticked]) -> None:
            written.extend(ticked)
            self._ticked(ticked, max(now_us, until_us))

        await self._write(work, then, lambda ticked: bool(ticked) and _is_plain(ticked))
        return written

    async def write_and_tick(
        self,
        work: Callable[[Connection], tuple[T, bool | None]],
        then: Callable[[T], None],
        is_plain: Callable[[T], bool],
    ) -> None:
        """Do some work as :class:`lodger.engine.node.context.Write` says, and tick in the same transaction what comes due soon.

        If the tick fails, the work is done again without it.
        """
        now_us = self.clock.now_us()
        until_us = self.context.ahead_us(now_us)
        # Nothing is ticked after its last round: a node that stops claims nothing.
        can_tick = self._task is not None and self.behind_s is None and not self._horizon_lock.locked()
        if not (can_tick and self._horizon.comes(until_us)):
            await self._write(work, then, is_plain)
            return
        ticking = False

        def both(connection: Connection) -> tuple[tuple[T, list[tick.Ticked]], bool | None]:
            nonlocal ticking
            ticking = False
            done, ready = work(connection)
            ticking = True
            ticked = tick.tick(self.context.store, connection, now_us, ahead_us=until_us)
            ticking = False
            return (done, ticked), any(each.runs for each in ticked) or ready

        def then_both(written: tuple[T, list[tick.Ticked]]) -> None:
            then(written[0])
            self._ticked(written[1], until_us)

        try:
            async with self._horizon_lock:
                await self._write(both, then_both, lambda written: is_plain(written[0]) and _is_plain(written[1]))
        except Exception as error:
            if not ticking or isinstance(error, Unavailable):
                raise
            await self._write(work, then, is_plain)

    def _keeps_up(self, *, full: bool) -> None:
        if full is (self.behind_s is not None):
            return
        self.behind_s = self.clock.elapsed_s() if full else None
        self.context.bus.publish(Backlog(self.behind_s))

    async def _look(self) -> None:
        """Read what comes due, unless what was read still stands."""
        context, horizon, now = self.context, self._horizon, self.clock.now_us()
        woken, self._woken = self._woken, False
        version = context.db.version()
        changed = woken and (version is None or version != self._version)
        if not changed and self._read_us <= now < self._again_us:
            return
        settings = context.settings
        poll_us, until = int(settings.poll_s * 1_000_000), now + int(settings.peek_s * 1_000_000)
        async with self._horizon_lock:
            instants, until = await context.db.read(
                partial(tick.lookahead, until_us=until, search_further=version is not None)
            )
            horizon.read(instants, until)
        self._read_us, self._version = now, version
        # Where commits are not seen there may have been one.
        self._again_us = now + poll_us if version is None else max(now + poll_us, until - 2 * poll_us)


def _is_plain(ticked: list[tick.Ticked]) -> bool:
    return all(each.is_plain for each in ticked)


class Prefetcher(Service):
    """Reads the revisions of schedules that come due soon, and works out their slots: at its instant a slot only has to be named.

    Nothing depends on it: a tick reads by itself what it finds unread. What is changed is read when it is due, so commits do not
    wake it.
    """

    name: ClassVar[str] = "prefetcher"

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._ready_us = 0
        self._look_s = float("-inf")
        self._unread: deque[tuple[str, str, int, int]] = deque()

    async def round(self) -> float:
        """Look ahead, or read a few."""
        db, revisions = self.context.db, self.context.store.revision_cache
        if self._unread:
            wanted = [self._unread.popleft() for _ in range(min(BATCH, len(self._unread)))]
            await db.read(partial(revisions.preload, wanted=wanted))
            return REST_S
        now_s = self.clock.elapsed_s()
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_S
            now_us = self.clock.now_us()
            until_us = now_us + int(PREFETCH_S * 1_000_000)
            # A clock that was set back shows what it has shown before.
            after_us = self._ready_us if now_us <= self._ready_us <= until_us else now_us
            ahead = partial(tick.due_soon, after_us=after_us, until_us=until_us, maximum=KEPT // 2)
            self._unread.extend(revisions.uncached(await db.read(ahead)))
            self._ready_us = until_us
            if self._unread:
                return 0.0
        return max(0.0, self._look_s - now_s)
