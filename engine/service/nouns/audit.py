"""The verbs on the audit log, which is read-only; changes write it themselves."""

from collections.abc import Generator
from datetime import datetime

from lodger.engine.core.access.roles import Role
from lodger.engine.service.bulk import Matched, counted
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import M, operation, stream
from lodger.engine.store import audit
from lodger.engine.store.records import AuditEntry, Page

# Inside the class ``list`` is a verb.
EntryPage = Page[AuditEntry]


class Audit(Noun[M]):
    """Every change, append-only."""

    @operation("GET", "/tenants/{tenant_id}/audit", Role.VIEWER, everywhere=True, items="entries")
    def list(
        self,
        tenant_id: str | None = None,
        *,
        verb: str | None = None,
        target: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest: bool = False,
        limit: int | None = 100,
        cursor: str | None = None,
    ) -> EntryPage:
        """List changes, newest first.

        Args:
            tenant_id: only changes of this tenant; None for those of all tenants and of the platform.
            verb: operation, such as ``schedules.edit``, or all operations of a noun with a dot at the end, such as ``schedules.``.
            target: id or name of the changed object.
            since: only changes at this instant or later.
            until: only changes before this instant.
            oldest: list the oldest first.

        Raises:
            InputError: cursor_invalid, limit_invalid.
        """
        sought = audit.AuditFilter(tenant_id, verb, target, actor, aware(since), aware(until))
        with self.context.database.read() as connection:
            return audit.list_page(connection, sought, limit, cursor, oldest=oldest)

    @operation("GET", "/tenants/{tenant_id}/audit-count", Role.VIEWER, everywhere=True)
    def count(
        self,
        tenant_id: str | None = None,
        *,
        verb: str | None = None,
        target: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Matched:
        """Count changes. Arguments as for :meth:`list`."""
        sought = audit.AuditFilter(tenant_id, verb, target, actor, aware(since), aware(until))
        with self.context.database.read() as connection:
            return counted(connection, audit.matching(sought))

    @stream("the result is a stream of lines: GET /audit/export and /tenants/{tenant_id}/audit/export")
    def export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> Generator[AuditEntry]:
        """Yield every change, oldest first, read from one snapshot; for an archive or another system."""
        sought = audit.AuditFilter(tenant_id, since=aware(since), until=aware(until))
        with self.context.database.read() as connection:
            yield from audit.iterate(connection, sought)
