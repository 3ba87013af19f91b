"""Evaluates alert rules on one node at a time, and sends the heartbeat of each node."""

import asyncio
import urllib.request
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from lodger.engine.core.errors import Unavailable
from lodger.engine.core.metrics import ProcessMetrics
from lodger.engine.node.context import NodeContext
from lodger.engine.node.service import Service
from lodger.engine.store.alerts import evaluation, rules
from lodger.engine.store.alerts.conditions import MAX_ROWS
from lodger.engine.store.alerts.messages import Alert
from lodger.engine.store.platform import locks

#: How often rules are evaluated, and how often old alerts are deleted, seconds.
ROUND_S = 5.0
PURGE_S = 3600.0
#: The named lock of the node that evaluates, and its lease, microseconds.
LOCK = "lodger.alerts"
LEASE_US = 30_000_000
#: How often the heartbeat is sent, and its time limit, seconds.
HEARTBEAT_S = 60.0
HEARTBEAT_LIMIT_S = 10.0


class Alerts(Service):
    """Evaluates alert rules while it holds the lock; without rules it only reads whether there are any."""

    name: ClassVar[str] = "alerts"

    def __init__(self, context: NodeContext, process_metrics: ProcessMetrics) -> None:
        super().__init__(context)
        self._meters = process_metrics
        self._purge_s = float("-inf")

    async def round(self) -> float:
        """Evaluate once; write only if something follows."""
        context, db = self.context, self.context.db
        if not await db.cached_read("alert rules", rules.any_exist) or not await db.write(self._lead, quiet=True):
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


class Heartbeat(Service):
    """Requests a URL every minute while this node holds its lease: the receiver reports when the requests stop."""

    name: ClassVar[str] = "heartbeat"

    async def round(self) -> float:
        """Send one request.

        Raises:
            Unavailable: heartbeat_failed.
        """
        if self.context.identity.lease is not None:
            try:
                await asyncio.to_thread(self._send)
            except OSError as error:
                raise Unavailable("heartbeat_failed", reason=str(error)) from None
        return HEARTBEAT_S

    def _send(self) -> None:
        url = str(self.context.settings.heartbeat_url)
        with urllib.request.urlopen(url, timeout=HEARTBEAT_LIMIT_S):  # noqa: S310 - the setting is http or https
            pass
