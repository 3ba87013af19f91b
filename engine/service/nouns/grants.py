"""The verbs on grants: what a tenant's scripts may do, and who its own people are."""

from collections.abc import Iterable

from lodger.engine.service.nouns.noun import Change, Verbs
from lodger.engine.store.records import Tenant
from lodger.engine.store.tenants import grants, tenants

# Inside the noun the word ``list`` is a verb.
Held = tuple[str, ...]


class Grants(Verbs):
    """What tenants hold. A change takes effect with the next run that starts; what runs goes on with what it was given."""

    __slots__ = ()

    def list(self, tenant_id: str) -> Held:
        """Give what a tenant holds, as it is written; raises NotFound."""
        with self.books.database.read() as connection:
            return grants.held(self.books, connection, tenant_id)

    def give(self, tenant_id: str, *given: str) -> Held:
        """Give a tenant more.

        Raises:
            InputError: grant_unknown, host_invalid, grants_too_many.
            NotFound: tenant_unknown.
        """
        return self._changed("grants.give", tenant_id, give=given)

    def take(self, tenant_id: str, *taken: str) -> Held:
        """Take something away, named as ``list`` shows it; what was not held stays so."""
        return self._changed("grants.take", tenant_id, take=taken)

    def keep(self, tenant_id: str, held: Iterable[str] | None) -> Held:
        """Let a tenant hold exactly these; None for what the setting ``grants`` says, now and later."""
        with self._changing("grants.keep", tenant_id, tenant_id) as change:
            self._seen(change, tenant_id)
            grants.keep(change.connection, tenant_id, held)
            return self._told(change, tenant_id)

    def people(self, tenant_id: str, addresses: Iterable[str]) -> Tenant:
        """Say who the tenant's own people are, all of them: addresses, and ``*@example.com`` for whole domains.

        Raises:
            InputError: address_invalid, people_too_many.
            NotFound: tenant_unknown.
        """
        with self._changing("grants.people", tenant_id, tenant_id) as change:
            change.before(tenants.get(change.connection, tenant_id))
            grants.people(change.connection, tenant_id, addresses)
            return change.made(tenants.get(change.connection, tenant_id))

    def _changed(self, verb: str, tenant_id: str, give: Iterable[str] = (), take: Iterable[str] = ()) -> Held:
        with self._changing(verb, tenant_id, tenant_id) as change:
            self._seen(change, tenant_id)
            grants.change(self.books, change.connection, tenant_id, give, take)
            return self._told(change, tenant_id)

    def _seen(self, change: Change, tenant_id: str) -> None:
        held = grants.held(self.books, change.connection, tenant_id)
        change.before({"grants": held}, of=tenants.get(change.connection, tenant_id))

    def _told(self, change: Change, tenant_id: str) -> Held:
        now = grants.held(self.books, change.connection, tenant_id)
        return change.made(now, after={"grants": now})
