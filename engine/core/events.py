"""The event bus, events for people (:class:`Event`), and events by which the services of a node work together."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NotRequired, TypedDict, TypeVar

from lodger.engine.core.execution import Claim

E = TypeVar("E")
EventKind = Literal[
    "ticked", "skipped", "started", "sealed", "finished", "feed_held", "clock_wrong", "lost", "rescued", "handed_back", "expired", "paused",
    "node_lost", "lease_lost", "ledger_replaced", "retimed", "forgotten", "killed", "slow", "slowed", "shadow", "overdue", "blocked",
    "delivered", "undelivered", "alert", "budget", "spent", "fault",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, for people: listeners, hooks, pages.

    Attributes:
        kind: ``ticked``, ``skipped`` (a slot or a gap), ``started``, ``sealed`` (its effects are on
            their way into a platform's own database), ``finished``, ``feed_held`` (changes of a database cannot be
            read, because a transaction has been under way for long), ``clock_wrong``
            (of a node: ``held``, ``reason``), ``lost`` (a commit that came too late),
            ``rescued``, ``handed_back`` (its node stopped), ``expired``, ``paused`` (a schedule that failed too often), ``node_lost``,
            ``lease_lost``, ``ledger_replaced`` (a standby
            took over, or a backup was restored: ``before``, ``identity``, ``lost`` committed attempts of this node are missing),
            ``retimed`` (new
            zone data moved a next slot), ``forgotten`` (history that
            retention let go), ``killed`` (logs and usage of a cancelled attempt were written), ``slow`` (a run takes longer than is
            usual for its schedule), ``slowed`` (runs of a schedule have become slower: ``onset`` jump or drift, ``from_ms``, ``to_ms``,
            once per onset), ``shadow`` (a script's shadow was compared in all wanted runs: ``script``, ``version``,
            ``live_version``, ``state`` finished or promoted, ``agreed``, ``differed``, ``undecided``, ``missed``), ``overdue``,
            ``blocked`` (sessions of the database wait for each other), ``delivered`` and
            ``undelivered`` (a mail or webhook; the latter is not tried again), ``alert`` (an alert
            was raised: ``rule``, ``alert``), ``budget`` (four fifths of it are used: ``budget``, ``per``,
            ``limit``, ``used``), ``spent`` (a tenant has used up what it may use in a day), ``fault``.
        at_us: the engine's clock, microseconds since 1970.
        details: values of the kind: ``state``, ``outcome``, ``slot_us``, ``slot_to_us``, ``reason``, ``lateness_ms``,
            ``next_us``, ``attempt``, and for ``finished`` the executor's ``finished`` itself.
    """

    kind: EventKind
    at_us: int
    tenant_id: str | None = None
    schedule_id: str | None = None
    action_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __new__(cls, kind: str = "", *_args: object, **_named: object) -> "Event":  # noqa: PYI034 - of another class
        """Return an event of its kind's class, so that hooks and listeners know the types of its details."""
        return object.__new__(TYPED.get(kind, cls))


class StartedDetails(TypedDict):
    """An attempt has started; instants in microseconds since 1970."""

    script: str
    attempt: int
    slot_us: int | None
    due_us: int
    lateness_ms: float
    origin: str
    node: str


class FinishedDetails(TypedDict):
    """An attempt has ended; the action has too, unless its state is waiting_retry or ready."""

    script: str
    state: str
    outcome: str
    attempt: int
    step: int
    slot_us: int | None
    retry_at_us: int | None
    next_us: int | None
    finished: Any


class OverdueDetails(TypedDict):
    """Actions wait longer than ``missed_after_s``."""

    number: int
    oldest_ms: float


class SlowedDetails(TypedDict):
    """Runs of a schedule have become slower, at once (jump) or little by little (drift)."""

    script: str
    step: int
    onset: Literal["jump", "drift"]
    from_ms: float
    to_ms: float


class ShadowDetails(TypedDict):
    """A script's shadow was compared in all wanted runs."""

    script: str
    version: int
    live_version: int
    state: str
    agreed: int
    differed: int
    undecided: int
    missed: int


class BudgetDetails(TypedDict):
    """Four fifths of a budget are used; ``attempt`` if it is an attempt's."""

    budget: str
    per: Literal["attempt", "day"]
    limit: int
    used: int
    attempt: NotRequired[int]


class SpentDetails(TypedDict):
    """A tenant has used up what it may use in a day."""

    reason: str


class StartedEvent(Event):
    """Of hooks ``started`` and ``late``."""

    __slots__ = ()
    details: StartedDetails


class FinishedEvent(Event):
    """Of hooks ``finished`` and ``failed``."""

    __slots__ = ()
    details: FinishedDetails


class OverdueEvent(Event):
    """Of hook ``late``, without an action."""

    __slots__ = ()
    details: OverdueDetails


class SlowedEvent(Event):
    """Of hook ``slowed``."""

    __slots__ = ()
    details: SlowedDetails


class ShadowEvent(Event):
    """Of hook ``shadow``."""

    __slots__ = ()
    details: ShadowDetails


class BudgetEvent(Event):
    """Of hook ``budget``."""

    __slots__ = ()
    details: BudgetDetails


class SpentEvent(Event):
    """Of hook ``budget``, when nothing is left."""

    __slots__ = ()
    details: SpentDetails


#: The classes of kinds whose details have types; other events are of class :class:`Event`.
TYPED: Final[dict[str, type[Event]]] = {
    "started": StartedEvent, "finished": FinishedEvent, "overdue": OverdueEvent, "slowed": SlowedEvent, "shadow": ShadowEvent,
    "budget": BudgetEvent, "spent": SpentEvent,
}  # fmt: skip


class EventBus:
    """Publish and subscribe by event type, inside one process.

    Synchronous: :meth:`publish` returns when every handler has run, in the order of subscription and in the publisher's thread.
    Handlers must be quick.
    """

    def __init__(self) -> None:
        self._handlers: dict[type[Any], tuple[Callable[[Any], None], ...]] = {}
        self._lock = threading.Lock()

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call a handler with each event of exactly this type; the returned function unsubscribes."""

        call = partial(handler)  # an object of its own, by which it is found again

        with self._lock:
            self._handlers[kind] = (*self._handlers.get(kind, ()), call)

        def unsubscribe() -> None:
            with self._lock:
                self._handlers[kind] = tuple(each for each in self._handlers[kind] if each is not call)

        return unsubscribe

    def has_subscribers(self, kind: type[Any]) -> bool:
        """Whether an event of this type has a handler: describing thousands of events to none costs throughput."""
        return bool(self._handlers.get(kind))

    def publish(self, event: object) -> None:
        """Call every handler of the event's type."""
        for handler in self._handlers.get(Event if isinstance(event, Event) else type(event), ()):
            handler(event)


# ---- by which the services of one node work together


@dataclass(frozen=True, slots=True)
class LedgerWritten:
    """A verb of this process has committed. Published in the caller's thread."""


@dataclass(frozen=True, slots=True)
class ChangeReported:
    """A write of this process, or a notification of the database, says that there may be work: look now."""


@dataclass(frozen=True, slots=True)
class LedgerChanged:
    """A transaction of any process was committed, or the clock was set: look again."""


@dataclass(frozen=True, slots=True)
class ActionsReady:
    """There may be an action to claim."""


@dataclass(frozen=True, slots=True)
class AttemptsStarted:
    """These attempts begin now: they are due."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class SlotFreed:
    """A slot is free though its attempt has not ended: the attempt waits for an answer."""


@dataclass(frozen=True, slots=True)
class AttemptReleased:
    """A node forgets an attempt: it was committed, or dropped."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The node's lease was renewed, so long after the renewal before."""

    after_s: float


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The node has no lease until it registers anew: actions claimed under the lost one are dropped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A round of a service failed; it is tried again."""

    service: str
    error: Exception
