"""Due clocks: turned into actions shortly before they come due."""

import bisect
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.events import ChangeReported, LedgerChanged
from lodger.engine.node.context import NodeContext
from lodger.engine.node.ledger_loop.part import Instant, Outlook, Part, Turn
from lodger.engine.node.node_events import Ticked
from lodger.engine.store.lifecycle import tick

#: How soon clocks of tenants that others had locked are looked for again, seconds.
PASSED_BY_S = 0.01
#: How far ahead due times are read.
PEEK_S = 1.0


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
        """Replace the known instants by those that were read up to ``until``."""
        self._instants = sorted(instants)
        self.until = until

    def add(self, instant: int | None) -> None:
        """Remember one more instant, when it lies within the look-ahead."""
        if instant is not None and instant <= self.until:
            bisect.insort(self._instants, instant)

    def forget(self, now: int) -> None:
        """Forget the instants at which clocks have come due by now."""
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
        """Return when to tick next: at the earliest instant, or before it by as much as it may be ticked ahead."""
        first = self._instants[0] if self._instants else None
        after = bisect.bisect_right(self._instants, self.ticked)
        if after == len(self._instants):
            return first
        ahead = self._lead_us(self._instants[after])
        return ahead if after == 0 or first is None else min(first, ahead)


class DueClocks(Part):
    """Reads the clocks of the next :data:`PEEK_S`; again after a commit, or ``poll_s`` later where commits are not seen."""

    name: ClassVar[str] = "due-clocks"

    def __init__(self, context: NodeContext, outlook: Outlook) -> None:
        super().__init__(context, outlook)
        context.bus.subscribe(LedgerChanged, self._changed)
        context.bus.subscribe(ChangeReported, self._changed)
        self._horizon = Horizon(context.lead_us)
        #: The horizon stands from one instant to another.
        self._read_us = self._again_us = 0
        self._version: object | None = None
        self._is_changed = False
        self._rests_until_s = 0.0
        #: Whether the next tick takes the tenants with the fewest due clocks first: in a backlog every second one does.
        self._fewest_first = False

    def _changed(self, _event: LedgerChanged | ChangeReported) -> None:
        """Look at the clocks again after a change, unless it is this loop's own."""
        version = self.context.db.version()
        if version is None or version != self._version:
            self._is_changed, self._rests_until_s = True, 0.0

    def is_outdated(self, now: Instant) -> bool:
        """Whether the horizon is to be read again."""
        is_old = now.s >= self._rests_until_s and not self._read_us <= now.us < self._again_us
        return self._is_changed or is_old

    async def look(self) -> None:
        """Read at which instants clocks come due soon."""
        context, settings, now_us = self.context, self.context.settings, self.clock.now_us()
        version = self._version = context.db.version()
        poll_us, until = int(settings.poll_s * 1_000_000), now_us + int(PEEK_S * 1_000_000)
        self._is_changed = False
        try:
            instants, until = await context.db.read(
                partial(tick.lookahead, until_us=until, search_further=version is not None)
            )
        except BaseException:
            self._is_changed = True
            raise
        self._horizon.read(instants, until)
        self._read_us = now_us
        # Where commits are not seen there may have been one.
        self._again_us = now_us + poll_us if version is None else max(now_us + poll_us, until - 2 * poll_us)
        if (upcoming := self._horizon.next) is None or upcoming > now_us:
            self.outlook.behind_s = None  # other nodes took the rest

    def wait_s(self, now: Instant) -> float:
        """Return the seconds until shortly before the next instant, or until the horizon is to be read again."""
        upcoming, idle_s = self._horizon.next, self.context.idle_s
        if self.is_looking:
            return idle_s
        until = self._again_us if upcoming is None else min(upcoming, self._again_us)
        return min(idle_s, max((until - now.us) / 1_000_000, self._rests_until_s - now.s))

    def wants(self, turn: Turn) -> bool:
        """Whether a clock is due, or comes due soon while there is no backlog."""
        if self.is_looking:  # a tick would add instants that the answer does not know of
            return False
        return self._is_due(turn.now) or (self.outlook.behind_s is None and self._horizon.comes(turn.until_us))

    def _is_due(self, now: Instant) -> bool:
        """Whether a clock has come due by now."""
        upcoming = self._horizon.next
        return upcoming is not None and upcoming <= now.us

    def ask(self, connection: Connection, turn: Turn) -> None:
        """Ask for the due clocks, unless ended attempts have effects, which may be about any schedule."""
        if not any(finished.journal for _claim, finished in turn.batch):
            ahead_us = self._ahead_us(turn)
            turn.asked[self] = tick.ask(connection, turn.now.us, ahead_us, fewest_first=self._fewest_first)

    def _ahead_us(self, turn: Turn) -> int:
        """Return up to which instant this transaction ticks: ahead of now, but not during a backlog."""
        return turn.until_us if self.outlook.behind_s is None else turn.now.us

    def write(self, connection: Connection, turn: Turn) -> None:
        """Tick; see whether clocks were passed by, because another transaction has locked their tenant."""
        context, now_us, asked = self.context, turn.now.us, turn.asked.get(self)
        without = () if asked is None else {claim.schedule_id for claim, _finished in turn.batch}
        turn.ticked = tick.tick(
            context.store, connection, now_us, ahead_us=self._ahead_us(turn), asked=asked, without=without,
            fewest_first=self._fewest_first, touched=turn.touched,
        )  # fmt: skip
        if self._is_due(turn.now) and context.store.database.driver.has_row_locks:
            any_due = tick.ask_any_due(connection, now_us)

            def note_passed_by() -> None:
                """Note whether clocks are due that this round has passed by."""
                turn.passed_by = any_due()

            turn.answers.append(note_passed_by)

    def written(self, turn: Turn) -> None:
        """Move the ticked clocks on the horizon; note a backlog."""
        horizon, now = self._horizon, turn.now
        is_full = len(turn.ticked) >= tick.TICK_BATCH
        self._fewest_first = is_full and not self._fewest_first
        horizon.ticked = turn.until_us if self.outlook.behind_s is None else now.us
        horizon.forget(now.us)
        for each in turn.ticked:
            horizon.drop(each.due_us)
            horizon.add(each.next_us)
        if not is_full:
            self.outlook.behind_s = None
        elif self.outlook.behind_s is None:
            self.outlook.behind_s = now.s
        if is_full:
            horizon.add(min(now.us, horizon.until))
        elif turn.passed_by:
            self._again_us, self._rests_until_s = 0, now.s + PASSED_BY_S
        self.context.bus.publish(Ticked(tuple(turn.ticked)))

    def failed(self, turn: Turn, error: Exception) -> bool:
        """Let the horizon be read again after a failed transaction; return False, because this part cannot remove the cause."""
        self._again_us = 0
        return False
