"""The verbs on grants and on the addresses of a tenant's own people."""

from collections.abc import Callable, Iterable
from typing import Any

from lodger.engine.core.access.roles import Role
from lodger.engine.service.nouns.base import Change, Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.records import Tenant
from lodger.engine.store.tenants import grants, tenants

# Inside the class ``list`` is a verb.
Held = tuple[str, ...]


class Grants(Noun[M]):
    """Grants of tenants. A change affects attempts that start later."""

    @operation("GET", "/tenants/{tenant_id}/grants", Role.VIEWER)
    def list(self, tenant_id: str) -> Held:
        """List a tenant's grants, as they are written.

        Raises:
            NotFound: tenant_unknown.
        """
        with self.context.database.read() as connection:
            return grants.list_grants(self.context, connection, tenant_id)

    @operation("POST", "/tenants/{tenant_id}/grants/give", Role.OPERATOR, tagged=True)
    def give(self, tenant_id: str, *given: str) -> Held:
        """Grant more to a tenant.

        Args:
            given: grants, such as ``fetch:api.example.com``.

        Raises:
            InputError: grant_unknown, host_invalid, grants_too_many.
            NotFound: tenant_unknown.
        """
        return self._changed(Grants.give, tenant_id, give=given)

    @operation("POST", "/tenants/{tenant_id}/grants/take", Role.OPERATOR, tagged=True)
    def take(self, tenant_id: str, *taken: str) -> Held:
        """Revoke grants of a tenant, in the form of ``list``; missing ones are ignored."""
        return self._changed(Grants.take, tenant_id, take=taken)

    @operation("PUT", "/tenants/{tenant_id}/grants", Role.OPERATOR, tagged=True, command=None)
    def keep(self, tenant_id: str, held: Iterable[str] | None) -> Held:
        """Set a tenant's grants to exactly these; None for those of the setting ``grants``, even if it changes."""
        with self._changing(Grants.keep, tenant_id, tenant_id) as change:
            self._seen(change, tenant_id)
            grants.store_grants(change.connection, tenant_id, held)
            return self._held(change, tenant_id)

    @operation("PUT", "/tenants/{tenant_id}/people", Role.OPERATOR, tagged=True)
    def people(self, tenant_id: str, addresses: Iterable[str]) -> Tenant:
        """Replace the addresses of the tenant's own people: addresses, and ``*@example.com`` for whole domains.

        Raises:
            InputError: address_invalid, people_too_many.
            NotFound: tenant_unknown.
        """
        with self._changing(Grants.people, tenant_id, tenant_id) as change:
            change.before(tenants.get(change.connection, tenant_id))
            grants.store_people(change.connection, tenant_id, addresses)
            return change.made(tenants.get(change.connection, tenant_id))

    def _changed(
        self, verb: Callable[..., Any], tenant_id: str, give: Iterable[str] = (), take: Iterable[str] = ()
    ) -> Held:
        """Add and remove grants of a tenant in one audited transaction; return those that it then holds."""
        with self._changing(verb, tenant_id, tenant_id) as change:
            self._seen(change, tenant_id)
            grants.change_grants(self.context, change.connection, tenant_id, give, take)
            return self._held(change, tenant_id)

    def _seen(self, change: Change, tenant_id: str) -> None:
        """Record the grants before a change for the audit log."""
        held = grants.list_grants(self.context, change.connection, tenant_id)
        change.before({"grants": held}, of=tenants.get(change.connection, tenant_id))

    def _held(self, change: Change, tenant_id: str) -> Held:
        """Record the grants after a change for the audit log, and return them."""
        now = grants.list_grants(self.context, change.connection, tenant_id)
        return change.made(now, after={"grants": now})
