"""The verbs on tenants: customers of the platform."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import InputError
from lodger.engine.policy.budget_table import STORAGE, STORAGE_HELP
from lodger.engine.service.bulk import Matched
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import UNCHANGED, Joinable, M, operation
from lodger.engine.store import list_filter
from lodger.engine.store.connection.joined import joining
from lodger.engine.store.queue import ready_queue
from lodger.engine.store.records import Page, Tenant
from lodger.engine.store.tenants import tenant_activity, tenants
from lodger.engine.store.tenants.grants import encode, encode_people
from lodger.engine.store.tenants.tenant_activity import TenantActivity
from lodger.engine.store.usage import storage_usage, usage
from lodger.engine.store.usage.usage import Account

# Inside the class ``list`` is a verb.
TenantPage = Page[Tenant]
TenantActivityPage = Page[TenantActivity]


class Tenants(Noun[M]):
    """Customers of the platform."""

    @operation("POST", "/tenants", Role.ADMIN, status=201)
    def create(
        self,
        tenant_id: str,
        name: str | None = None,
        limits: Mapping[str, Any] | None = None,
        *,
        grants: Iterable[str] = (),
        people: Iterable[str] = (),
        labels: str | Iterable[str] | None = None,
        ledger: str | None = None,
        plan: str | None = None,
        tz: str | None = None,
        connection: Joinable = None,
    ) -> Tenant:
        """Create a tenant.

        Args:
            limits: process limits and ``concurrent_runs`` that the operator allows.
            grants: grants of its scripts in addition to the defaults (setting ``grants``), such as ``sets:write``.
            people: mail addresses of its own people, to which scripts may send mail; ``*@example.com`` for a domain.
            labels: labels that a node must have to run any action of this tenant; ``node:NAME`` is the node of that
                name.
            ledger: of several ledgers (``LODGER_LEDGERS``) the one that it lives in; None for the one with most room.
            plan: name of a plan; its own limits come before those of the plan.
            tz: IANA zone of its schedules that name none. Default: UTC.
            connection: the caller's connection to the ledger's database, with a transaction in which the tenant is created.

        Raises:
            InputError: tenant_id_invalid, limit_unknown, limit_out_of_range, grant_unknown, address_invalid,
                label_invalid, zone_unknown, connection_unknown, connection_no_transaction, connection_elsewhere,
                connection_async, ledgers_unset.
            NotFound: ledger_unknown, plan_unknown.
            Conflict: tenant_exists, ledgers_full.
        """
        if ledger is not None:
            raise InputError("ledgers_unset")
        more, own = tuple(grants), encode_people(people)
        held = encode([*self.context.content_cache.grants(None).shown(), *more]) if more else None
        with joining(connection), self._changing(Tenants.create, tenant_id) as change:
            made = tenants.create(
                self.context, change.connection, tenant_id, name, dict(limits or {}), self._now_us, grants=held, people=own, labels=labels,
                plan=plan, tz=tz,
            )  # fmt: skip
            return change.made(made)

    @operation("GET", "/tenants/{tenant_id}", Role.VIEWER)
    def get(self, tenant_id: str) -> Tenant:
        """Return one tenant.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(tenants.get, tenant_id)

    @operation("GET", "/tenants", Role.AUDITOR)
    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the word of the field
    ) -> TenantPage:
        """List tenants by id.

        Args:
            limit: maximum number of entries; the result's ``next`` is the cursor of the next page, None on the last.
            filter: such as ``state:suspended name:*shop* sort:-created``; words search ids and names.

        Raises:
            InputError: filter_invalid, cursor_invalid.
        """
        wanted = list_filter.read(tenants.language(), filter, self._now_us)
        with self.context.database.read() as connection:
            return tenants.list_page(connection, wanted, limit, cursor)

    @operation("GET", "/tenants-count", Role.AUDITOR)
    def count(self, *, filter: str | None = None) -> Matched:  # noqa: A002 - as above
        """Count the tenants that match a filter.

        Raises:
            InputError: filter_invalid.
        """
        wanted, statement = tenant_activity.find(self._now_us, filter)
        return self._count(wanted.apply(statement), None)

    @operation("GET", "/tenants-activity", Role.AUDITOR, items="tenants")
    def activity(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - as above
    ) -> TenantActivityPage:
        """List tenants with their runs, failures, use of budgets and latest action.

        Args:
            filter: as of the list of tenants, and sorted by ``runs``, ``failures``, ``budget``, ``latest`` or ``plan``, too.

        Raises:
            InputError: filter_invalid, cursor_invalid, limit_invalid.
        """
        with self.context.database.read() as connection:
            return tenant_activity.list_page(self.context, connection, self._now_us, filter, limit, cursor)

    @operation("PATCH", "/tenants/{tenant_id}", Role.OPERATOR, tagged=True)
    def edit(
        self,
        tenant_id: str,
        *,
        name: str = UNCHANGED,
        limits: Mapping[str, Any] | None = UNCHANGED,
        labels: str | Iterable[str] | None = UNCHANGED,
        plan: str | None = UNCHANGED,
        tz: str | None = UNCHANGED,
    ) -> Tenant:
        """Change a tenant's name, all of its limits or labels, its plan or zone; attempts that start later get the new ones.

        Args:
            plan: name of a plan, null for none.
            tz: zone of schedules that are created later and name none, null for UTC.

        Raises:
            InputError: limit_unknown, limit_out_of_range, label_invalid, zone_unknown.
            NotFound: plan_unknown.
        """
        with self._changing(Tenants.edit, tenant_id) as change:
            change.before(tenants.get(change.connection, tenant_id))
            given = {"name": name, "limits": limits, "labels": labels, "plan": plan, "tz": tz}
            wanted = {key: value for key, value in given.items() if value is not UNCHANGED}
            return change.made(tenants.edit(self.context, change.connection, tenant_id, wanted))

    @operation("POST", "/tenants/{tenant_id}/suspend", Role.OPERATOR, tagged=True)
    def suspend(self, tenant_id: str) -> Tenant:
        """Stop a tenant at once; none of its actions starts or commits until it is resumed."""
        with self._changing(Tenants.suspend, tenant_id) as change:
            change.before(tenants.get(change.connection, tenant_id))
            return change.made(tenants.suspend(self.context, change.connection, tenant_id, self._now_us))

    @operation("POST", "/tenants/{tenant_id}/resume", Role.OPERATOR, tagged=True)
    def resume(self, tenant_id: str) -> Tenant:
        """Resume a suspended tenant; slots of the suspension become gap rows."""
        with self._changing(Tenants.resume, tenant_id) as change:
            change.before(tenants.get(change.connection, tenant_id))
            return change.made(tenants.resume(self.context, change.connection, tenant_id, self._now_us))

    @operation("GET", "/tenants/{tenant_id}/usage", Role.VIEWER)
    def usage(self, tenant_id: str, since: date | str | None = None, until: date | str | None = None) -> Account:
        """Show what a tenant used per UTC day, and its remaining budgets; failures of Lodger itself are not counted.

        Args:
            since: first day, such as 2027-01-31; None for the oldest that is kept (400 days).
            until: last day; None for today.

        Raises:
            InputError: day_invalid, usage_range.
        """
        days = _day(since), _day(until)
        with self._reading(tenant_id) as connection:
            kept = storage_usage.of_tenant(connection, tenant_id)
            (now,) = usage.usages_of_day(self.context, connection, [tenant_id], self._now_us // usage.DAY_US).values()
            stored = usage.BudgetRow(STORAGE, "tenant", now.allowed.storage_bytes, kept.total, STORAGE_HELP)
            return Account(tuple(usage.of_tenant(connection, tenant_id, *days)), (*now.rows(), stored))

    @operation(
        "DELETE",
        "/tenants/{tenant_id}",
        Role.ADMIN,
        status=204,
        tagged=True,
        confirm="delete tenant {tenant_id} and all its data permanently",
    )
    def delete(self, tenant_id: str) -> None:
        """Delete a tenant and all its data permanently; the platform's audit log keeps a record of the deletion."""
        with self._changing(Tenants.delete, None, tenant_id) as change:
            ready_queue.lock(change.connection, [tenant_id])
            change.before(tenants.get(change.connection, tenant_id))
            tenants.erase(change.connection, tenant_id)
            change.made(None, after={})


def _day(given: date | str | None) -> date | None:
    """Return a date from a date or its text, None for None; raises InputError for an instant."""
    if isinstance(given, datetime):
        raise InputError("day_invalid.instant", given=given)
    if given is None or isinstance(given, date):
        return given
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise InputError("day_invalid", given=given) from None
