"""The verbs on tenants: customers of the platform."""

from collections.abc import Iterable, Mapping
from typing import Any

from lodger.engine.ledger import tenants
from lodger.engine.ledger.records import Tenant
from lodger.engine.verbs.noun import UNCHANGED, Verbs

# Inside the noun the word ``list`` is a verb.
TenantList = list[Tenant]


class Tenants(Verbs):
    """Customers of the platform."""

    __slots__ = ()

    def create(
        self,
        tenant_id: str,
        name: str | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        labels: str | Iterable[str] | None = None,
    ) -> Tenant:
        """Make a tenant. ``limits``: process limits and ``concurrent_runs`` as the operator allows them.

        Args:
            labels: only nodes that carry all of them run anything of this tenant; ``node:NAME`` is the node of that name.

        Raises:
            InputError: tenant_id_invalid, limit_unknown, limit_out_of_range, label_invalid.
            Conflict: tenant_exists.
        """
        with self.books.database.write() as connection:
            made = tenants.create(self.books, connection, tenant_id, name, dict(limits or {}), self._now_us, labels)
        return self._done(made)

    def edit(
        self,
        tenant_id: str,
        *,
        name: str = UNCHANGED,
        limits: Mapping[str, Any] | None = UNCHANGED,
        labels: str | Iterable[str] | None = UNCHANGED,
    ) -> Tenant:
        """Change what is given; ``limits`` are given all anew. What waits goes by it at once.

        Raises:
            InputError: limit_unknown, limit_out_of_range, label_invalid.
        """
        given = {"name": name, "limits": limits, "labels": labels}
        change = {key: value for key, value in given.items() if value is not UNCHANGED}
        with self.books.database.write() as connection:
            edited = tenants.edit(self.books, connection, tenant_id, change)
        return self._done(edited)

    def get(self, tenant_id: str) -> Tenant:
        """Give one tenant; raises NotFound."""
        with self.books.database.read() as connection:
            return tenants.get(connection, tenant_id)

    def list(self) -> TenantList:
        """Give every tenant, by id."""
        with self.books.database.read() as connection:
            return tenants.list_all(connection)

    def suspend(self, tenant_id: str) -> Tenant:
        """Stop everything of a tenant at once; nothing of it starts or commits until it is resumed."""
        with self.books.database.write() as connection:
            suspended = tenants.suspend(self.books, connection, tenant_id, self._now_us)
        return self._done(suspended)

    def resume(self, tenant_id: str) -> Tenant:
        """Go on; slots of the suspension are gap rows."""
        with self.books.database.write() as connection:
            resumed = tenants.resume(self.books, connection, tenant_id, self._now_us)
        return self._done(resumed)

    def delete(self, tenant_id: str) -> None:
        """Delete a tenant with everything that is its own, for ever."""
        with self.books.database.write() as connection:
            tenants.erase(connection, tenant_id)
        self.changed()
