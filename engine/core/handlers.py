"""Python functions of the platform's that the engine calls like scripts: ``@engine.handler("rebuild-index")``."""

import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from lodger.engine.core.access.labels import HOST, parse_labels
from lodger.engine.core.errors import Conflict, InputError
from lodger.engine.core.params import Field, read_fields

#: Longest time that a handler may ask for, seconds.
MAX_DEADLINE_S = 86_400.0
DEADLINE_S = 300.0


class Cancelled(Exception):
    """Raised by :meth:`Call.check` once the run is not wanted any more; let it pass."""


@dataclass(frozen=True, slots=True)
class Call:
    """Argument of a handler: one run.

    Attributes:
        params: as they were bound, with the defaults of the handler's fields.
        slot: None for a request.
        attempt: which try this is, from 1.
        action_id: the same for every try: use it as an idempotency key, because a handler is called at least once.
        node: name of the node that runs it.
        cancelled: set once the run is cancelled or its deadline has passed; the engine no longer waits for the handler then.
        log: writes a line to the action's log.
    """

    tenant_id: str
    action_id: str
    schedule_id: str | None
    slot: datetime | None
    due_at: datetime
    attempt: int
    params: Any
    node: str
    log: Callable[[str], None]
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise :class:`Cancelled` when the run is not wanted any more; a long synchronous handler asks now and then."""
        if self.cancelled.is_set():
            raise Cancelled


Function = Callable[[Call], Any] | Callable[[Call], Awaitable[Any]]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered function. ``offered``: every tenant may bind it; else the platform alone."""

    name: str
    function: Function
    fields: tuple[Field, ...] | None
    offered: bool
    deadline_s: float

    @property
    def asynchronous(self) -> bool:
        """Whether it is awaited on the node's event loop, instead of called in a thread."""
        return inspect.iscoroutinefunction(self.function)


class Handlers:
    """The handlers of this process, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Handler] = {}

    def make(
        self, name: str, function: Function, params: Mapping[str, Any] | None, deadline_s: float, *, offered: bool
    ) -> Handler:
        """Check a registration; nothing is registered yet.

        Raises:
            InputError: handler_invalid, fields_invalid.
            Conflict: handler_taken.
        """
        parse_labels([name])
        if name.startswith("node:") or len(HOST + name) > 63:
            raise InputError("handler_invalid", name=name)
        if not callable(function):
            raise InputError("handler_invalid.function", function=function)
        if isinstance(deadline_s, bool) or not 0 < deadline_s <= MAX_DEADLINE_S:
            raise InputError("handler_invalid.deadline", deadline_s=deadline_s, maximum=MAX_DEADLINE_S)
        known = self._known.get(name)
        if known is not None and known.function is not function:
            raise Conflict("handler_taken", name=name)
        return Handler(name, function, read_fields(params), offered, float(deadline_s))

    def add(self, handler: Handler) -> None:
        """Register a handler."""
        self._known = {**self._known, handler.name: handler}

    def get(self, name: str) -> Handler | None:
        """Return the registered handler of this name, None if there is none."""
        return self._known.get(name)

    @property
    def labels(self) -> frozenset[str]:
        """Labels that these handlers give to a node of this process."""
        return frozenset(HOST + name for name in self._known)
