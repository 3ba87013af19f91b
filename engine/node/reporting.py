"""Turns published events of a node's services into events for people, metrics and log lines."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.events import AttemptStarted, Event, EventBus, EventKind, Fault, LeaseLost, LeaseRenewed
from lodger.engine.core.execution import Claim
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.effects.sealed_commits import Finish
from lodger.engine.node.context import NodeContext
from lodger.engine.node.node_events import (
    BatchCommitted,
    CancelledWritten,
    Claimed,
    SealedSettled,
    Ticked,
)
from lodger.engine.store.lifecycle.endings import Settled
from lodger.engine.store.usage.usage import DAY_US
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.node.tracing import Tracer

#: Seconds between two lines about one outage.
EVERY_S = 30.0
#: An outage is over after so long without a failure: longer than a service waits before it tries again, seconds.
QUIET_S = 10.0


@dataclass(slots=True)
class _Outage:
    begun_s: float
    said_s: float
    last_s: float
    number: int = 1


class Outages:
    """The outages of one process, by the code of their error.

    Args:
        log: receives the lines.
        elapsed_s: a clock that never steps.
    """

    def __init__(self, log: logging.Logger, elapsed_s: Callable[[], float]) -> None:
        self._log = log
        self._elapsed_s = elapsed_s
        self._present: dict[str, _Outage] = {}

    def failed(self, service: str, error: Unavailable) -> None:
        """Count a failure; write a log line for the first one and then now and then."""
        now_s = self._elapsed_s()
        present = self._present.get(error.code)
        if present is None:
            self._present[error.code] = _Outage(now_s, now_s, now_s)
            self._log.error("%s: %s: %s", service, error.code, error)
            return
        present.number, present.last_s = present.number + 1, now_s
        if now_s - present.said_s >= EVERY_S:
            present.said_s, lasted_s = now_s, now_s - present.begun_s
            self._log.error("%s: %s for %.0f s, %d failures: %s", service, error.code, lasted_s, present.number, error)

    def works(self) -> None:
        """End the outages of errors that have not come again lately, with a log line."""
        now_s = self._elapsed_s()
        for code, each in list(self._present.items()):
            if now_s - each.last_s >= QUIET_S:
                del self._present[code]
                self._log.warning("%s is over: %.0f s, %d failures", code, each.last_s - each.begun_s, each.number)


_log = logging.getLogger("lodger.node")
#: Metrics that count the events of a kind.
_COUNTED = {"rescued": "lodger_rescued_total", "expired": "lodger_expired_total"}


class Reporter:
    """Subscribes to a node's bus, and publishes events for people on the engine's.

    Args:
        events: the engine's bus, which listeners and hooks subscribe to.
        process_metrics: metrics of this process.
        tracer: gives lateness exemplars that lead to traces; None while tracing is off.
    """

    def __init__(
        self, context: NodeContext, events: EventBus, process_metrics: ProcessMetrics, tracer: "Tracer | None" = None
    ) -> None:
        self._context = context
        self._events = events
        self._meters = process_metrics
        self._tracer = tracer
        #: Used-up budgets that were reported: tenant, reason, day. Once a day is enough.
        self._spent: set[tuple[str, str, int]] = set()
        process_metrics.begin("lodger_attempts_total", Outcome)
        process_metrics.begin("lodger_slots_total", ("run", "skipped"))
        self._outages = Outages(_log, context.clock.elapsed_s)
        bus = context.bus
        bus.subscribe(LeaseRenewed, lambda _event: self._outages.works())
        bus.subscribe(Event, self._publish)
        bus.subscribe(Fault, self._fault)
        bus.subscribe(LeaseLost, self._lease_lost)
        bus.subscribe(Ticked, self._ticked)
        bus.subscribe(Claimed, self._claimed)
        bus.subscribe(AttemptStarted, self._started)
        bus.subscribe(BatchCommitted, self._committed)
        bus.subscribe(SealedSettled, self._sealed_settled)
        bus.subscribe(CancelledWritten, self._cancelled)

    def _publish(self, event: Event) -> None:
        """Publish an event of a service for people, and count it if it is one that is counted."""
        if event.kind in _COUNTED:
            self._meters.count(_COUNTED[event.kind])
        self._events.publish(event)

    def _report(
        self, kind: EventKind, action: tuple[str, str | None, str | None] | None = None, **details: object
    ) -> None:
        """Publish an event for people about an action (tenant, schedule, action), or about this node for None."""
        self._events.publish(self._context.event(kind, action, **details))

    @property
    def _has_subscribers(self) -> bool:
        """Whether anyone subscribes to events for people."""
        return self._events.has_subscribers(Event)

    def _fault(self, event: Fault) -> None:
        """Count and log a failed round of a service."""
        error = event.error
        self._meters.count("lodger_faults_total", event.service)
        if isinstance(error, Unavailable):  # explains itself; only a fault of ours needs its traceback
            self._outages.failed(event.service, error)
        else:
            _log.error("%s: %s: %s", event.service, type(error).__name__, error, exc_info=error)
        self._report("fault", service=event.service, error=error)

    def _lease_lost(self, event: LeaseLost) -> None:
        """Count and publish that this node has lost its lease."""
        self._meters.count("lodger_leases_lost_total")
        self._report("lease_lost", reason=event.reason)

    def _ticked(self, event: Ticked) -> None:
        """Count the slots of a tick and publish those that were skipped."""
        ticked, count = event.schedules, self._meters.count
        for kind, number in (
            ("run", sum([len(each.runs) for each in ticked])),
            ("skipped", sum([len(each.skipped) for each in ticked])),
        ):
            if number:
                count("lodger_slots_total", kind, by=number)
        if not self._has_subscribers:
            return
        for each in ticked:
            for action_id, slot in each.runs:
                self._report(
                    "ticked", (each.tenant_id, each.schedule_id, action_id), slot_us=slot, next_us=each.next_us
                )
            for slot, slot_to, reason in each.skipped:
                if reason is not None and reason.startswith("budget_"):
                    self._day_spent(each.tenant_id, reason)
                self._report("skipped", (each.tenant_id, each.schedule_id, None), slot_us=slot, slot_to_us=slot_to,
                             reason=reason, next_us=each.next_us)  # fmt: skip

    def _claimed(self, event: Claimed) -> None:
        """Publish tenants that have used up a budget of their day."""
        for tenant_id, reason in event.spent.items():
            self._day_spent(tenant_id, reason)

    def _started(self, event: AttemptStarted) -> None:
        """Observe the lateness of a starting attempt and publish it."""
        claim = event.claim
        late_us = max(0, self._context.clock.now_us() - claim.due_us)
        if claim.origin == "slot":
            exemplar = None if self._tracer is None else self._tracer.exemplar(claim)
            self._meters.observe("lodger_lateness_seconds", [late_us / 1_000_000], exemplar=exemplar)
        if self._has_subscribers:
            self._report(
                "started",
                _action(claim),
                script=claim.script_name,
                attempt=claim.attempt,
                slot_us=claim.slot_us,
                due_us=claim.due_us,
                lateness_ms=late_us / 1000,
                origin=claim.origin,
                node=self._context.identity.name,
            )

    def _day_spent(self, tenant_id: str, reason: str) -> None:
        """Report that a tenant has used up a budget of the day, once a day on this node."""
        day = self._context.clock.now_us() // DAY_US
        self._spent = {key for key in self._spent if key[2] == day}
        if (tenant_id, reason, day) not in self._spent:
            self._spent.add((tenant_id, reason, day))
            self._report("spent", (tenant_id, None, None), reason=reason)

    def _committed(self, event: BatchCommitted) -> None:
        """Observe committed attempts and publish their ends."""
        batch, committed, process_metrics = event.batch, event.committed, self._meters
        process_metrics.observe("lodger_attempt_seconds", [finished.usage.wall_ms / 1000 for _claim, finished in batch])
        for each in committed.settled:
            process_metrics.count("lodger_attempts_total", each.outcome.value)
        if committed.lost:
            process_metrics.count("lodger_lost_commits_total", by=len(committed.lost))
        for budget in committed.warned:
            budget.report(self._events, self._context.clock.now_us())
        if not self._has_subscribers:
            return
        for claim, finished in batch:
            for name, limit, used in finished.nearly:
                self._report("budget", _action(claim), attempt=claim.attempt, budget=name, per="attempt", limit=limit,
                             used=used)  # fmt: skip
        became = {(each.action_id, each.attempt): each for each in committed.settled}
        sealed = {(each.action_id, each.attempt) for each in committed.sealed}
        for claim, finished in batch:
            action, key = _action(claim), (claim.action_id, claim.attempt)
            settled = became.get(key)
            if key in sealed:
                self._report("sealed", action, script=claim.script_name, attempt=claim.attempt, step=claim.step)
            elif settled is None:
                self._report("lost", action, attempt=claim.attempt, finished=finished)
            else:
                upcoming = claim.upcoming_us[0] if claim.upcoming_us else None
                self._settled(Finish(settled, finished, claim.script_name, claim.slot_us, upcoming), action, claim.step)

    def _sealed_settled(self, event: SealedSettled) -> None:
        """Publish the end of an attempt whose sealed commit has ended."""
        each = event.finish.settled
        self._settled(event.finish, (each.tenant_id, each.schedule_id, each.action_id), each.step)

    def _settled(self, finish: Finish, action: tuple[str, str | None, str | None], step: int) -> None:
        """Publish the end of an attempt of an action (tenant, schedule, action)."""
        settled: Settled = finish.settled
        self._report("finished", action, script=finish.script, state=settled.state, outcome=settled.outcome,
                     attempt=settled.attempt, step=step, slot_us=finish.slot_us, retry_at_us=settled.retry_at_us,
                     finished=finish.finished, next_us=finish.next_us)  # fmt: skip
        if settled.paused:
            self._report("paused", action, reason="failures")

    def _cancelled(self, event: CancelledWritten) -> None:
        """Publish the logs and usage of cancelled attempts."""
        for claim, finished in event.attempts:
            self._report("killed", _action(claim), attempt=claim.attempt, step=claim.step, finished=finished)


def _action(claim: Claim) -> tuple[str, str | None, str | None]:
    """Return the keys of a claim's event: tenant, schedule, action."""
    return claim.tenant_id, claim.schedule_id, claim.action_id
