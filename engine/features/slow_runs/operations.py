"""The verb that compares durations."""

from lodger.engine.core.access.roles import Role
from lodger.engine.features.slow_runs import durations
from lodger.engine.features.slow_runs.durations import ScheduleDurations
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation

#: Maximum number of schedules whose durations one call compares.
MAX_COMPARED = 500
DurationList = list[ScheduleDurations]


class ScheduleVerbs(Noun[M]):
    """Verbs on schedules."""

    @operation("GET", "/tenants/{tenant_id}/durations", Role.VIEWER, everywhere=True)
    def durations(self, tenant_id: str | None = None, *, limit: int = 100) -> DurationList:
        """Compare the latest successful runs of each schedule with its earlier ones, the most changed first.

        A tenant's schedules by name, or those of all tenants that ended runs last; a schedule with several steps once a step.

        Args:
            limit: how many schedules are compared, at most 500.

        Raises:
            NotFound: tenant_unknown.
        """
        with self._reading(tenant_id) as connection:
            return durations.read(self.context, connection, tenant_id, max(1, min(limit, MAX_COMPARED)))
