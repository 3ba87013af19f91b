"""The event bus, events for people (:class:`Event`), and events by which the services of a node work together."""
# ruff: noqa: UP013 - one line says what a kind carries

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Literal, NotRequired, get_args

from typing_extensions import TypedDict, TypeVar

from lodger.engine.core.execution import Claim

E = TypeVar("E")
EventKind = Literal[
    "ticked", "skipped", "started", "sealed", "finished", "feed_held", "clock_wrong", "lost", "rescued", "handed_back", "expired", "paused",
    "node_lost", "lease_lost", "ledger_replaced", "retimed", "killed", "slowed", "shadow", "overdue",
    "delivered", "undelivered", "alert", "budget", "spent", "fault",
]  # fmt: skip
K = TypeVar("K", bound=str, default=str, covariant=True)
D = TypeVar("D", bound=Mapping[str, Any], default=Mapping[str, Any], covariant=True)
#: The class of each kind.
CLASSES: Final[dict[str, "type[Event]"]] = {}


@dataclass(frozen=True, slots=True)
class Event(Generic[K, D]):
    """One thing that happened, for people: listeners, hooks, pages. Each kind has a class, of which its events are.

    Attributes:
        at_us: the engine's clock, microseconds since 1970.
        details: values of the kind; instants end in ``_us``.
    """

    kind: K
    at_us: int
    tenant_id: str | None = None
    schedule_id: str | None = None
    action_id: str | None = None
    details: D = field(default_factory=dict)  # type: ignore[assignment]  # a class of its own narrows it

    def __new__(cls, kind: str = "", *_args: object, **_named: object) -> "Event[Any, Any]":
        """Return an event of its kind's class."""
        return object.__new__(CLASSES.get(kind, cls))

    def __init_subclass__(cls) -> None:
        """Make this the class of the kinds that it names."""
        kinds, _details = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # of a generic class
        CLASSES.update(dict.fromkeys(get_args(kinds), cls))


_Ticked = TypedDict("_Ticked", {"slot_us": int, "next_us": int | None})
_Skipped = TypedDict("_Skipped", {
    "reason": str | None, "slot_us": NotRequired[int], "slot_to_us": NotRequired[int | None], "next_us": NotRequired[int | None],
    "node": NotRequired[str],
})  # fmt: skip
_Started = TypedDict("_Started", {
    "script": str, "attempt": int, "slot_us": int | None, "due_us": int, "lateness_ms": float, "origin": str, "node": str,
})  # fmt: skip
_Sealed = TypedDict("_Sealed", {"script": str, "attempt": int, "step": int})
_Finished = TypedDict("_Finished", {
    "script": str, "state": str, "outcome": str, "attempt": int, "step": int, "slot_us": int | None, "retry_at_us": int | None,
    "next_us": int | None, "finished": Any,
})  # fmt: skip
_FeedHeld = TypedDict("_FeedHeld", {"place": str, "waiting": int, "held_s": float, "holder": str | None})
_ClockWrong = TypedDict("_ClockWrong", {"held": bool, "reason": str | None})
_Lost = TypedDict("_Lost", {"attempt": int, "finished": Any})
_Rescued = TypedDict("_Rescued", {"state": str})
_Because = TypedDict("_Because", {"reason": str})
_NodeLost = TypedDict("_NodeLost", {"node": str})
_LedgerReplaced = TypedDict("_LedgerReplaced", {"before": str, "identity": str, "lost": int, "actions": str})
_Retimed = TypedDict("_Retimed", {"from_us": int | None, "next_us": int | None})
_Killed = TypedDict("_Killed", {"attempt": int, "step": int, "finished": Any})
_Slowed = TypedDict(
    "_Slowed", {"script": str, "step": int, "onset": Literal["jump", "drift"], "from_ms": float, "to_ms": float}
)
_Shadow = TypedDict("_Shadow", {
    "script": str, "version": int, "live_version": int, "state": str, "agreed": int, "differed": int, "undecided": int,
    "missed": int,
})  # fmt: skip
_Overdue = TypedDict("_Overdue", {"number": int, "oldest_ms": float})
_Delivered = TypedDict("_Delivered", {"what": str, "to": str, "error": str | None, "tries": int})
_Alert = TypedDict("_Alert", {"rule": str, "alert": str})
_Budget = TypedDict(
    "_Budget", {"budget": str, "per": Literal["attempt", "day"], "limit": int, "used": int, "attempt": NotRequired[int]}
)
_Fault = TypedDict("_Fault", {"service": str, "error": Exception})


class TickedEvent(Event[Literal["ticked"], _Ticked]):
    """A slot has its action."""


class SkippedEvent(Event[Literal["skipped"], _Skipped]):
    """A slot, a gap or an action of a node that is gone was skipped."""


class StartedEvent(Event[Literal["started"], _Started]):
    """An attempt has started. Of hooks ``started`` and ``late``."""


class SealedEvent(Event[Literal["sealed"], _Sealed]):
    """The effects of an attempt are on their way into a platform's own database."""


class FinishedEvent(Event[Literal["finished"], _Finished]):
    """An attempt has ended; the action has too, unless its state is waiting_retry or ready. Of hooks ``finished`` and ``failed``."""


class FeedHeldEvent(Event[Literal["feed_held"], _FeedHeld]):
    """Changes of a database cannot be read, because a transaction has been under way for long."""


class ClockWrongEvent(Event[Literal["clock_wrong"], _ClockWrong]):
    """The clock of a node is wrong, or right again."""


class LostEvent(Event[Literal["lost"], _Lost]):
    """A commit came too late."""


class RescuedEvent(Event[Literal["rescued"], _Rescued]):
    """An action was taken back from a lost node."""


class HandedBackEvent(Event[Literal["handed_back"], dict[str, Any]]):
    """The node of an action has stopped before its end."""


class ExpiredEvent(Event[Literal["expired"], dict[str, Any]]):
    """An action has waited for too long."""


class PausedEvent(Event[Literal["paused"], _Because]):
    """A schedule has failed too often."""


class NodeLostEvent(Event[Literal["node_lost"], _NodeLost]):
    """A node has lost its lease."""


class LeaseLostEvent(Event[Literal["lease_lost"], _Because]):
    """This node has lost its lease."""


class LedgerReplacedEvent(Event[Literal["ledger_replaced"], _LedgerReplaced]):
    """A standby took over, or a backup was restored; ``lost`` committed attempts of this node are missing."""


class RetimedEvent(Event[Literal["retimed"], _Retimed]):
    """New zone data moved a next slot."""


class KilledEvent(Event[Literal["killed"], _Killed]):
    """Logs and usage of a cancelled attempt were written."""


class SlowedEvent(Event[Literal["slowed"], _Slowed]):
    """Runs of a schedule have become slower, at once (jump) or little by little (drift). Of hook ``slowed``."""


class ShadowEvent(Event[Literal["shadow"], _Shadow]):
    """A script's shadow was compared in all wanted runs. Of hook ``shadow``."""


class OverdueEvent(Event[Literal["overdue"], _Overdue]):
    """Actions wait longer than ``missed_after_s``. Of hook ``late``, without an action."""


class DeliveredEvent(Event[Literal["delivered", "undelivered"], _Delivered]):
    """A message was delivered, or is not tried again."""


class AlertEvent(Event[Literal["alert"], _Alert]):
    """An alert was raised; the details have further values of its kind."""


class BudgetEvent(Event[Literal["budget"], _Budget]):
    """Four fifths of a budget are used; ``attempt`` if it is an attempt's. Of hook ``budget``."""


class SpentEvent(Event[Literal["spent"], _Because]):
    """A tenant has used up what it may use in a day. Of hook ``budget``."""


class FaultEvent(Event[Literal["fault"], _Fault]):
    """A round of a service failed; it is tried again."""


#: An event of any kind: ``event.kind``, ``isinstance`` or ``match`` tell them apart.
AnyEvent = (
    TickedEvent | SkippedEvent | StartedEvent | SealedEvent | FinishedEvent | FeedHeldEvent | ClockWrongEvent | LostEvent |
    RescuedEvent | HandedBackEvent | ExpiredEvent | PausedEvent | NodeLostEvent | LeaseLostEvent | LedgerReplacedEvent |
    RetimedEvent | KilledEvent | SlowedEvent | ShadowEvent | OverdueEvent |
    DeliveredEvent | AlertEvent | BudgetEvent | SpentEvent | FaultEvent
)  # fmt: skip


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
            """Take the handler out; events that come later no longer reach it."""
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
class AttemptStarted:
    """An attempt begins now: it is due."""

    claim: Claim


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
