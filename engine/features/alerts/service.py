"""Evaluates alert rules on one node at a time."""

from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.features.alerts import evaluation, rules
from lodger.engine.features.alerts.conditions import MAX_ROWS
from lodger.engine.features.alerts.messages import Alert
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.platform import locks

#: How often rules are evaluated, and how often old alerts are deleted, seconds.
ROUND_S = 5.0
PURGE_S = 3600.0
#: The named lock of the node that evaluates, and its lease, microseconds.
LOCK = "lodger.alerts"
LEASE_US = 30_000_000


class AlertEvaluation(Service):
    """Evaluates alert rules while it holds the lock; without rules it only reads whether there are any."""

    name: ClassVar[str] = "alerts"

    def __init__(self, context: NodeContext, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._meters = process_metrics
        self._purge_s = float("-inf")

    async def round(self) -> float:
        """Evaluate once; write only if something follows."""
        context, db = self.context, self.context.db
        if not await db.cached_read("alert rules", rules.ask_any) or not await db.write(self._lead, quiet=True):
            return ROUND_S
        now_us, now_s = self.clock.now_us(), self.clock.elapsed_s()
        if now_s >= self._purge_s + PURGE_S:
            self._purge_s = now_s
            await db.write(partial(evaluation.purge, now_us=now_us))
        changes = await db.read(partial(evaluation.find, context.store, now_us=now_us))
        if not changes:
            return ROUND_S
        self._publish(await db.write(partial(evaluation.apply, context.store, now_us=now_us)))
        return 0.0 if len(changes.consumed) >= MAX_ROWS else ROUND_S

    def _lead(self, connection: Connection) -> bool:
        """Take or renew the lock of the node that evaluates."""
        context, holder = self.context, self.context.identity.id
        held = locks.take(context.store, connection, LOCK, holder, LEASE_US, None, self.clock.now_us())
        return held is not None

    def _publish(self, raised: list[Alert]) -> None:
        """Publish raised alerts."""
        for each in raised:
            self._meters.count("lodger_alerts_total", each.kind)
            event = self.context.event(
                "alert",
                (each.tenant_id, each.schedule_id, each.action_id),
                rule=each.rule,
                alert=each.kind,
                **each.details,
            )
            self.context.bus.publish(event)
