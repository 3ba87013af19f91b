"""The context of every service of a node: store, clock, settings, database threads, bus, and the node's identity."""

import re
from collections import deque
from dataclasses import dataclass

from lodger.engine.core.clock import Clock, SteadyClock
from lodger.engine.core.errors import InputError
from lodger.engine.core.events import Event, EventBus, EventKind, LeaseLost
from lodger.engine.core.settings import Settings
from lodger.engine.node.db_executor import DbExecutor
from lodger.engine.store.context import StoreContext
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.usage.usage import DAY_US

#: Characters of a node's name.
MAX_NAME = 200
#: A clock that is further off than this is broken: scripts would be told a wrong time, so the node claims nothing.
MAX_OFFSET_US = 2_000_000
#: Round trips for which a node ticks and claims ahead: those of both, and of one transaction that is under way, three times over, since
#: a third of the time is left to others. No longer than this, in microseconds.
TRIPS_AHEAD, MAX_AHEAD_US = 18, 500_000
#: How long a service that is woken by commits may sleep by itself, seconds.
FAR_S = 60.0


class ServerClock:
    """The injected clock plus the offset that was measured last; durations are the injected clock's own.

    So an action is due at the same moment on every node. A step of the server's clock is not followed, nor one of a
    :class:`lodger.engine.core.clock.SteadyClock`.

    Args:
        tolerance_us: change of the offset that is followed.

    Attributes:
        hold: why the node plans and starts nothing, because time is wrong; empty if it is right.
    """

    def __init__(self, clock: Clock, tolerance_us: int) -> None:
        self._clock = clock
        self.elapsed_s, self.sleep, self.call_later = clock.elapsed_s, clock.sleep, clock.call_later
        self._steady = clock if isinstance(clock, SteadyClock) else None
        self._tolerance_us = tolerance_us
        self._is_compared = False
        self._server_stepped_us = 0
        self.offset_us = 0
        self._trips_us: deque[int] = deque(maxlen=5)
        self.hold = ""

    @property
    def stepped_us(self) -> int:
        """How far this machine's or the server's clock was set while the node ran, microseconds; 0 if it was not, or was set back to
        the right time."""
        return self._server_stepped_us or (self._steady.stepped_us if self._steady else 0)

    @property
    def stepped(self) -> str:
        """Return which clock was set while the node ran, in words: the database server's or this machine's."""
        return "the database server's clock" if self._server_stepped_us else "this machine's clock"

    @property
    def trip_us(self) -> int:
        """How long the server took to tell its time, the quickest of the last times, microseconds."""
        return min(self._trips_us, default=0)

    @property
    def skewed(self) -> bool:
        """Whether this machine's clock is too far off to work by."""
        return abs(self.offset_us) > MAX_OFFSET_US

    def set_offset(self, server_us: int, asked_us: int, answered_us: int) -> None:
        """Set the offset from the server's time, read between two times of the injected clock; 0 if below half of their difference."""
        self._trips_us.append(max(0, answered_us - asked_us))
        doubt = (answered_us - asked_us) // 2
        offset = server_us - (asked_us + doubt)
        offset = offset if abs(offset) > max(0, doubt) else 0
        step_us = offset - self.offset_us if self._is_compared else 0
        self._is_compared = True
        self._server_stepped_us = step_us if abs(step_us) > self._tolerance_us else 0
        if not self._server_stepped_us:
            self.offset_us = offset

    def own_us(self) -> int:
        """Return the injected clock's time, microseconds since 1970."""
        return self._clock.now_us()

    def now_us(self) -> int:
        """Microseconds since 1970, UTC, as the server counts them."""
        return self._clock.now_us() + self.offset_us


class NodeIdentity:
    """The id, name and lease that this node writes under.

    Attributes:
        lease: None while it has none: before it is registered, and after it was lost.
        epoch: epoch of its last lease, 0 before the first.
        renewed_s: when the lease was taken or renewed last, on the clock of durations.

    Raises:
        InputError: node_name_invalid.
    """

    def __init__(self, node_id: str, name: str) -> None:
        if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or re.search(r"[\s,]", name):
            raise InputError("node_name_invalid", name=name, max_name=MAX_NAME)
        self.id = node_id
        self.name = name
        self.lease: Lease | None = None
        self.epoch = 0
        self.renewed_s = 0.0


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The parts that all services of one node share; it holds no service."""

    store: StoreContext
    clock: ServerClock
    settings: Settings
    db: DbExecutor
    bus: EventBus
    identity: NodeIdentity

    @property
    def idle_s(self) -> float:
        """Maximum sleep of a service that waits for a commit: long if commits wake it, else the poll interval."""
        return FAR_S if self.db.sees_commits else self.settings.poll_s

    @property
    def max_ahead_us(self) -> int:
        """How long before a slot to tick and claim, microseconds: longer if the server is so far away that both would be late."""
        own_us = int(self.settings.ahead_s * 1_000_000)
        return max(own_us, min(TRIPS_AHEAD * self.clock.trip_us, MAX_AHEAD_US)) if own_us else 0

    def ahead_us(self, now_us: int) -> int:
        """Return the instant up to which a transaction of now ticks and claims: at most the end of the UTC day, because each day has
        its own budgets."""
        return min(now_us + self.max_ahead_us, (now_us // DAY_US + 1) * DAY_US - 1)

    def lead_us(self, instant: int) -> int:
        """Return the instant at which a slot's transaction begins, a little before the slot, unless an earlier transaction has
        included it."""
        lead_us = self.max_ahead_us // 3
        return instant - lead_us if instant % DAY_US >= lead_us else instant

    def event(
        self, kind: EventKind, action: tuple[str, str | None, str | None] | None = None, **details: object
    ) -> Event:
        """Return an event of now; ``action`` is (tenant, schedule, action)."""
        tenant_id, schedule_id, action_id = action or (None, None, None)
        return Event(kind, self.clock.now_us(), tenant_id, schedule_id, action_id, details)

    def surrender(self, reason: str) -> None:
        """Stop being a node until registered anew: its workers die, and their effects are dropped."""
        self.identity.lease = None
        self.bus.publish(LeaseLost(reason))
