"""The verbs on plans."""

from collections.abc import Mapping
from typing import Any

from lodger.engine.core.access.roles import Role
from lodger.engine.features.plans import plans
from lodger.engine.features.plans.plans import Plan
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation

# Inside the class ``list`` is a verb.
PlanList = list[Plan]


class Plans(Noun[M]):
    """Named sets of limits that tenants refer to; a tenant's own limits come before those of its plan."""

    @operation("PUT", "/plans/{name}", Role.ADMIN, tagged=True, in_all=True)
    def put(self, name: str, limits: Mapping[str, Any]) -> Plan:
        """Create a plan, or replace all of its limits; attempts of its tenants that start later get them.

        Args:
            limits: as of a tenant, such as {"runs_per_day": 1000}.

        Raises:
            InputError: plan_name_invalid, limit_unknown, limit_out_of_range.
        """
        with self._changing(Plans.put, None, name, name) as change:
            change.before(plans.find(change.connection, name))
            return change.made(plans.put(self.context, change.connection, name, limits, self._now_us))

    @operation("GET", "/plans/{name}", Role.AUDITOR, home=True)
    def get(self, name: str) -> Plan:
        """Return one plan; its tenants are those of ``tenants.list(filter="plan:NAME")``.

        Raises:
            NotFound: plan_unknown.
        """
        return self._read(plans.get, name)

    @operation("GET", "/plans", Role.AUDITOR, home=True)
    def list(self) -> PlanList:
        """List the plans by name."""
        return self._read(plans.list_all)

    @operation(
        "DELETE", "/plans/{name}", Role.ADMIN, status=204, tagged=True, confirm="delete plan {name}", in_all=True
    )
    def delete(self, name: str) -> None:
        """Delete a plan that no tenant refers to.

        Raises:
            NotFound: plan_unknown.
            Conflict: plan_in_use.
        """
        with self._changing(Plans.delete, None, name, name) as change:
            change.before(plans.erase(change.connection, name))
            change.made(None, after=None)
