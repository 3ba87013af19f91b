"""The base of the parts of the ledger loop, the transaction that they share, and the outlook between transactions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy import Connection

from lodger.engine.core.execution import Claim
from lodger.engine.effects.finished import Finished
from lodger.engine.effects.outcome_commit import Committed
from lodger.engine.node.context import NodeContext
from lodger.engine.policy.placement import Room
from lodger.engine.store.lifecycle import tick
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.queue import ready_queue


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on both clocks of a node: microseconds since 1970, and seconds on the clock of durations."""

    us: int
    s: float


@dataclass(slots=True)
class Outlook:
    """Facts that the loop keeps between its transactions; each is set by one part and read by all.

    Attributes:
        behind_s: since when more clocks are due than one tick takes, on the clock of durations; None without a backlog. Set by
            the due clocks.
        startable_us: when the next action may start; None if no action waits. Set by the free slots.
        claimed_s: when the last transaction that could claim began, on the clock of durations. Set by the free slots.
    """

    behind_s: float | None = None
    startable_us: int | None = None
    claimed_s: float = float("-inf")


@dataclass(slots=True)
class Turn:
    """One transaction of the loop, and the results of its parts in it.

    Attributes:
        until_us: clocks and actions that come due up to this instant are ticked and claimed.
        lease: the lease that everything is written under; None while the node has none.
        parts: the parts that take part, in the order in which they write.
        writing: the part whose statements are being executed, the first one during the commit; None before the first.
        batch: ended attempts to be written.
        committed: the result for ``batch``.
        ticked: the clocks that were ticked.
        passed_by: whether clocks were left, because another transaction has locked their tenant.
        room: limits of a claim; None if nothing may be claimed.
        over: limits of a claim beyond the slots, for tenants that are ticked and have no attempt on this node; None for none.
        busy: the tenants that have one.
        touched: tenants whose actions were changed, and whose rows of the ready queue are to be derived: once, before the claim.
        claims: the claimed attempts.
        spent: tenants that were passed over, because a budget of their day is used up, and which.
        asked: answers to the questions that were asked before any part has written, by part.
        answers: called after the commit, with which the last answers came.
        has_claimed: whether a claim was executed, with or without result.
        has_looked: whether ``startable_us`` is known: when the next action may start after this transaction.
    """

    now: Instant
    until_us: int
    lease: Lease | None
    parts: list["Part"] = field(default_factory=list)
    writing: "Part | None" = None
    batch: list[tuple[Claim, Finished]] = field(default_factory=list)
    committed: Committed | None = None
    ticked: list[tick.Ticked] = field(default_factory=list)
    passed_by: bool = False
    room: Room | None = None
    over: Room | None = None
    busy: frozenset[str] = frozenset()
    touched: set[str] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)
    spent: dict[str, str] = field(default_factory=dict)
    asked: dict["Part", Any] = field(default_factory=dict)
    answers: list[Callable[[], None]] = field(default_factory=list)
    has_claimed: bool = False
    has_looked: bool = False
    startable_us: int | None = None
    is_alone: bool = False

    def derive_queues(self, connection: Connection) -> None:
        """Derive the rows of the ready queue of the touched tenants."""
        ready_queue.refresh(connection, self.touched)
        self.touched.clear()

    @property
    def is_plain(self) -> bool:
        """Whether no service has anything to look at after this transaction, the free slots included."""
        if not self.has_looked or self.startable_us is not None or not (self.committed or self.ticked):
            return False
        return (self.committed is None or self.committed.is_plain) and all(each.is_plain for each in self.ticked)


class Part:
    """One kind of rows that the loop writes. A part calls no other part; they share the outlook and the turn.

    All methods but :meth:`write` are called in the loop's thread.

    Attributes:
        is_looking: whether a :meth:`look` is under way; set by the loop.
    """

    name: ClassVar[str]

    def __init__(self, context: NodeContext, outlook: Outlook) -> None:
        self.context = context
        self.clock = context.clock
        self.outlook = outlook
        self.is_looking = False

    def is_outdated(self, now: Instant) -> bool:
        """Whether the facts that this part has read are outdated, so that :meth:`look` is to be called."""
        return False

    async def look(self) -> None:
        """Read from the ledger the facts that :meth:`wait_s` and :meth:`wants` depend on."""

    def wait_s(self, now: Instant) -> float:
        """Return the seconds until a transaction is to be written for this part alone; 0 or less: now."""
        raise NotImplementedError

    def wants_alone(self, now: Instant) -> bool:
        """Whether a transaction is to be this part's alone, because it has to wait for locks of others."""
        return False

    def wants(self, turn: Turn) -> bool:
        """Whether this part takes part in a transaction of now; note in the turn the rows to write."""
        raise NotImplementedError

    def ask(self, connection: Connection, turn: Turn) -> None:
        """Ask the questions of :meth:`write` before any part writes: a server answers all parts in one round trip."""

    def write(self, connection: Connection, turn: Turn) -> None:
        """Execute the statements, in the writer's thread, and note the results in the turn."""
        raise NotImplementedError

    def written(self, turn: Turn) -> None:
        """Publish and remember the results of a transaction that was committed."""

    def failed(self, turn: Turn, error: Exception) -> bool:
        """Note that a transaction failed; return whether this part caused the failure and has removed the cause."""
        return False
