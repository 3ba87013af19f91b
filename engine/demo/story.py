"""The items that the demo has shown so far. Fed by the engine's events; drawn by a screen or as lines."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from lodger.engine.demo.mailbox import Mail

#: Runs and mails that a screen can still show; the ledger keeps all.
KEPT = 60


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that ended.

    Attributes:
        at: when it started.
        name: of the schedule, or of the script for a request.
        slot: None for a request without one.
        late_s: start minus due; for a slot missed by policy this is as long as the engine was off.
        missed: the slot belongs to the time when the engine was off.
        outcome: the stable string.
        said: the result, or the error's name and message, in one line.
        place: the script's own line with a caret, when the error has one.
        stopped_by: the limit in words, when one ended it.
    """

    at: datetime
    tenant: str
    name: str
    slot: datetime | None
    late_s: float
    missed: bool
    outcome: str
    said: str
    place: tuple[str, ...] = ()
    stopped_by: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the script returned."""
        return self.outcome == "ok"


@dataclass(frozen=True, slots=True)
class Missed:
    """A stretch of slots that were not run, and why: one gap row of the ledger."""

    tenant: str
    name: str
    first: datetime
    last: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A schedule and its next slot; ``text`` is its sentence."""

    tenant: str
    name: str
    text: str
    next_at: datetime | None
    state: str


Item = Run | Missed | Mail | str


@dataclass(slots=True)
class Story:
    """The items in order of arrival, bounded; ``on_item`` sees each as it comes."""

    begun: datetime
    ends: datetime | None = None
    dashboard: str | None = None
    runs: deque[Run | Missed] = field(default_factory=lambda: deque(maxlen=KEPT))
    mails: deque[Mail] = field(default_factory=lambda: deque(maxlen=KEPT))
    upcoming: tuple[Upcoming, ...] = ()
    fault: Run | None = None
    stopped: Run | None = None
    note: str | None = None
    ran: int = 0
    failed: int = 0
    mailed: int = 0
    on_item: Callable[[Item], None] = lambda _item: None

    def tell(self, item: Item) -> None:
        """Add an item: a run, a gap of missed slots, a mail, or a plain sentence."""
        if isinstance(item, Mail):
            self.mails.append(item)
            self.mailed += 1
        elif isinstance(item, Run):
            self.runs.append(item)
            self.ran += item.ok
            self.failed += not item.ok
            if item.stopped_by:
                self.stopped = item
            elif not item.ok:
                self.fault = item
        elif isinstance(item, Missed):
            self.runs.append(item)
        else:
            self.note = item
        self.on_item(item)
