"""What happens in the engine, told as it happens to whoever listens: a terminal, a page, a test that waits."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: ``ticked``, ``skipped`` (a slot or a gap), ``started``, ``sealed`` (its effects are on
            their way into a platform's own database), ``finished``, ``feed_held`` (changes of a database cannot be
            read, because a transaction has been under way for long), ``lost`` (a commit that came too late),
            ``rescued``, ``expired``, ``paused`` (a schedule that failed too often), ``node_lost``, ``lease_lost``, ``retimed`` (new
            zone data moved a next slot), ``forgotten`` (history that
            retention let go), ``killed`` (logs and usage of a cancelled attempt were written), ``slow`` (a run takes longer than is
            usual for its schedule), ``overdue``, ``blocked`` (sessions of the database wait for each other), ``delivered`` and
            ``undelivered`` (a mail or webhook; the latter is not tried again), ``budget`` (four fifths of it are used: ``budget``, ``per``,
            ``limit``, ``used``), ``spent`` (a tenant has used up what it may use in a day), ``fault``.
        at_us: the engine's clock, microseconds since 1970.
        details: what belongs to the kind: ``state``, ``outcome``, ``slot_us``, ``slot_to_us``, ``reason``, ``lateness_ms``,
            ``next_us``, ``attempt``, and for ``finished`` the executor's ``finished`` itself.
    """

    kind: str
    at_us: int
    tenant_id: str | None = None
    schedule_id: str | None = None
    action_id: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


class Events:
    """Tells listeners, in the thread where it happened and after the transaction is stored. Listeners must be quick."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; call what is returned to take it off."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def forget() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)

        return forget

    @property
    def heard(self) -> bool:
        """Whether anybody listens: describing thousands of events to nobody costs throughput."""
        return bool(self._listeners)

    def tell(self, event: Event) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            listener(event)
