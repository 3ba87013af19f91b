"""Hooks: functions of the platform that are called on events, in their own thread.

A slow hook delays other hooks, never a slot; one that raises is logged and called again for the next event. Hooks
receive the events of nodes in their own process only; for delivery that survives a crash use webhooks, or read the
ledger.
"""

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from lodger.engine.core.errors import InputError
from lodger.engine.core.events import Event, EventBus
from lodger.engine.core.metrics import ProcessMetrics

_log = logging.getLogger("lodger.hooks")
#: Maximum number of events that wait for slow hooks; further ones are dropped and counted.
KEPT = 10_000
#: Maximum time to wait for hooks at the end, seconds.
CLOSE_S = 10.0
#: Takes the events of its name: :class:`Event` or those classes of it.
Hook = Callable[[Any], object]
H = TypeVar("H", bound=Hook)
HookName = Literal["started", "finished", "failed", "late", "slowed", "shadow", "budget"]


@dataclass(frozen=True, slots=True)
class HookSpec:
    """A name that hooks can be set on, and the events it stands for."""

    name: str
    help: str
    fits: Callable[[Event, float], bool]


def _over(event: Event, _late_ms: float) -> bool:
    """Whether an event is the end of an action, which is not tried again."""
    return event.kind == "finished" and event.details["state"] in {"done", "failed", "cancelled"}


HOOKS: Final = (
    HookSpec("started", "an attempt starts", lambda event, _late_ms: event.kind == "started"),
    HookSpec(
        "finished", "an action has ended with success or failure; an action that waits for a retry has not ended", _over
    ),
    HookSpec(
        "failed",
        "an action has ended with failure",
        lambda event, late_ms: _over(event, late_ms) and event.details["state"] == "failed",
    ),
    HookSpec(
        "late",
        "an attempt begins missed_after_s or more after it was due, or actions wait that long: then without an action, with "
        "their number and oldest_ms",
        lambda event, late_ms: (
            event.kind == "overdue" or (event.kind == "started" and event.details["lateness_ms"] >= late_ms)
        ),
    ),
    HookSpec(
        "slowed",
        "the runs of a schedule have become slower, at once or little by little (onset jump or drift, from_ms, to_ms); once per onset",
        lambda event, _late_ms: event.kind == "slowed",
    ),
    HookSpec(
        "shadow",
        "a script's shadow was compared in all wanted runs (script, version, live_version, state finished or promoted, agreed, differed, "
        "undecided, missed)",
        lambda event, _late_ms: event.kind == "shadow",
    ),
    HookSpec(
        "budget",
        "a tenant has used four fifths of what it may use in a day (budget, limit, used), or all of it (reason budget_runs, …); once a "
        "day, node and reason",
        lambda event, _late_ms: event.kind == "spent" or (event.kind == "budget" and event.details.get("per") == "day"),
    ),
)
_BY_NAME = {spec.name: spec for spec in HOOKS}


class Hooks:
    """Calls hooks; the thread lives from the first hook until :meth:`close`."""

    def __init__(self, events: EventBus, process_metrics: ProcessMetrics, late_s: float) -> None:
        self._events = events
        self._meters = process_metrics
        self._late_ms = late_s * 1000
        self._set: tuple[tuple[HookSpec, str | None, Hook], ...] = ()
        self._lock = threading.Lock()
        self._waiting: queue.Queue[tuple[Hook, Event] | None] = queue.Queue(KEPT)
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def add(self, name: str, hook: Hook, tenant_id: str | None = None) -> Callable[[], None]:
        """Set a hook, for all tenants or one; call the result to remove it.

        Raises:
            InputError: hook_unknown.
        """
        spec = _BY_NAME.get(name)
        if spec is None:
            raise InputError("hook_unknown", name=name, hooks=(each.name for each in HOOKS))
        made = (spec, tenant_id, hook)
        with self._lock:
            self._set = (*self._set, made)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lodger-hooks", daemon=True)
                self._thread.start()
                self._unsubscribe = self._events.subscribe(Event, self._on_event)

        def remove_hook() -> None:
            """Take the hook out again."""
            with self._lock:
                self._set = tuple(each for each in self._set if each is not made)

        return remove_hook

    def _on_event(self, event: Event) -> None:
        """Queue a call of each hook that an event fits; events that the full queue does not take are dropped and counted."""
        for spec, tenant_id, hook in self._set:
            if tenant_id in {None, event.tenant_id} and spec.fits(event, self._late_ms):
                try:
                    self._waiting.put_nowait((hook, event))
                except queue.Full:
                    self._meters.count("lodger_hooks_dropped_total", spec.name)

    def _work(self) -> None:
        """Call hooks with waiting events, until the engine is closed."""
        while (one := self._waiting.get()) is not None:
            hook, event = one
            try:
                hook(event)
            except Exception:  # noqa: BLE001 - code of the platform; the next hook must be called
                _log.exception("a hook for %s raised an error", event.kind)

    def close(self) -> None:
        """Call the waiting hooks, then end the thread; a hook that takes longer than ten seconds is abandoned. Safe to call twice."""
        with self._lock:
            thread, self._thread, self._set = self._thread, None, ()
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None
        if thread is not None:
            with suppress(queue.Full):
                self._waiting.put(None, timeout=CLOSE_S)
            if thread is not threading.current_thread():
                thread.join(CLOSE_S)
            if thread.is_alive() and thread is not threading.current_thread():
                _log.warning("a hook is still running; stopped waiting for it")
