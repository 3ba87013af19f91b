"""The verbs that export a tenant and restore it elsewhere."""

from lodger.engine.core.access.roles import Role
from lodger.engine.features.archive.export import export as export_tenant
from lodger.engine.features.archive.restore import bring_in
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.records import Tenant


class TenantVerbs(Noun[M]):
    """Verbs on tenants."""

    @operation("GET", "/tenants/{tenant_id}/archive", Role.ADMIN, media="application/gzip")
    def export(self, tenant_id: str) -> bytes:
        """Export a suspended tenant as one archive, which another ledger on SQLite or PostgreSQL can restore.

        It contains the tenant's scripts, schedules, history, documents, keyed values, waiting messages, audit log, and
        secrets, which stay encrypted under their key. It does not contain tokens, URLs and shadows of scripts, and
        unread changes of feeds. Rows of the platform's own tables must be moved by the platform.

        Raises:
            NotFound: tenant_unknown.
            Conflict: tenant_active, tenant_unfinished, tenant_too_large, platform_stays.
        """
        # A snapshot needs no lock, so writers do not wait until the last row is packed.
        return self._read(export_tenant, tenant_id, self._now_us)

    @operation("PUT", "/tenants/{tenant_id}/archive", Role.ADMIN, status=201, raw="archive", media="application/gzip")
    def restore(self, tenant_id: str, archive: bytes, *, of: str | None = None) -> Tenant:
        """Restore a tenant from an archive, as suspended. When it is resumed, slots of the time between become gap rows.

        Args:
            archive: result of :meth:`export` for a tenant with this id. It contains limits and grants, so only
                administrators may restore it.
            of: the tenant's id in the archive, to restore it under another one: all rows get new ids, and secrets are
                encrypted for the new id, which needs the key that they were encrypted with.

        Raises:
            InputError: archive_invalid, archive_of_other, archive_of_other_version, limit_unknown, limit_out_of_range,
                grant_unknown.
            NotFound: plan_unknown.
            Conflict: tenant_exists, script_not_offered.
            Unavailable: key_unknown, secret_tampered and other errors of the keys, under another id.
        """
        with self._changing(TenantVerbs.restore, None, tenant_id) as change:
            made = bring_in(
                self.context, change.connection, tenant_id, bytes(archive), self._now_us, of=of, vault=self.vault
            )
            return change.made(made)
