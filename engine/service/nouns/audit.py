"""The verbs on the audit log: who changed what, when, by which way and why. It is only read; changes write it themselves."""

from collections.abc import Generator
from datetime import datetime

from lodger.engine.service.nouns.noun import Verbs, aware
from lodger.engine.store import audit, pages, signing_keys
from lodger.engine.store.records import AuditEntry, Page

# Inside the noun the word ``list`` is a verb.
EntryPage = Page[AuditEntry]


class Audit(Verbs):
    """Every change, append-only."""

    __slots__ = ()

    def list(
        self,
        tenant_id: str | None = None,
        *,
        verb: str | None = None,
        target: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 100,
        cursor: str | None = None,
    ) -> EntryPage:
        """Give changes, newest first: a page (see :meth:`Tenants.list`), or all with ``limit`` None.

        Args:
            tenant_id: whose; None for every tenant's and the platform's own.
            verb: such as ``schedules.edit``; with a point at its end, such as ``schedules.``, every verb of the noun.
            target: id of what was changed.
            since, until: [since, until).

        Raises:
            InputError: cursor_invalid, limit_invalid.
        """
        sought = audit.Sought(tenant_id, verb, target, actor, aware(since), aware(until))
        with self.books.database.read() as connection:
            of = f"audit:{sought}"
            before = signing_keys.place(connection, of, cursor) if cursor else None
            found = audit.some(connection, sought, limit=limit, before=before)
            return pages.page(connection, of, found, lambda each: each.id)

    def export(
        self, tenant_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> Generator[AuditEntry]:
        """Give every change, oldest first, as they are read from one snapshot; for an archive or another system."""
        sought = audit.Sought(tenant_id, since=aware(since), until=aware(until))
        with self.books.database.read() as connection:
            yield from audit.every(connection, sought)
