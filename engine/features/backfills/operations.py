"""The verbs that backfill a range of slots."""

from datetime import datetime

from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import to_us
from lodger.engine.features.backfills import backfills
from lodger.engine.features.backfills.backfills import Backfill, BackfillPreview
from lodger.engine.service.nouns.base import Noun, instant
from lodger.engine.service.operations.declaration import M, operation


class ActionVerbs(Noun[M]):
    """Verbs on actions."""

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/backfill", Role.RUNNER, status=201)
    def backfill(self, tenant_id: str, schedule: str, *, start: datetime, end: datetime) -> Backfill:
        """Run the slots in [start, end) that did not run: skipped, in a gap, expired, cancelled, or before the schedule's creation.

        They run in slot order, with low priority, behind every slot that comes due meanwhile. Failed actions did run:
        replay them.

        Args:
            start: begin of the range (inclusive).
            end: end of the range (exclusive), now at the latest.

        Raises:
            InputError: backfill_range, backfill_forgotten, backfill_too_large.
        """
        between = to_us(instant(start)), to_us(instant(end))
        with self._changing(ActionVerbs.backfill, tenant_id, schedule) as change:
            made = backfills.backfill(self.context, change.connection, tenant_id, schedule, between, self._now_us)
            log = {"schedule_id": made.schedule_id, "start": start, "end": end, "actions": len(made.actions)}
            return change.made(made, after=log)

    @operation("POST", "/tenants/{tenant_id}/schedules/{schedule}/backfill-preview", Role.VIEWER, reads=True)
    def backfill_preview(self, tenant_id: str, schedule: str, *, start: datetime, end: datetime) -> BackfillPreview:
        """Count the slots in [start, end) that a backfill would run now. Nothing is stored.

        Raises:
            InputError: backfill_range, backfill_forgotten, backfill_too_large, backfill_every_node.
        """
        between = to_us(instant(start)), to_us(instant(end))
        with self.context.database.read() as connection:
            return backfills.plan(self.context, connection, tenant_id, schedule, between, self._now_us).preview()
