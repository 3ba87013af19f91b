"""The verbs on shadows of scripts; ``scripts.put`` begins one."""

from lodger.engine.core.access.roles import Role
from lodger.engine.features.shadows import shadows
from lodger.engine.features.shadows.shadows import Shadow
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.records import ScriptVersion
from lodger.engine.store.scripts import scripts


class ScriptVerbs(Noun[M]):
    """Verbs on scripts."""

    @operation("GET", "/tenants/{tenant_id}/scripts/{name}/shadow", Role.EDITOR)
    def shadow(self, tenant_id: str, name: str) -> Shadow:
        """Return the shadow of a script: the version that runs dry beside the live one, and how its runs compare.

        Raises:
            NotFound: script_unknown, shadow_unknown.
        """
        with self.context.database.read() as connection:
            return shadows.get(connection, scripts.get(connection, tenant_id, name))

    @operation("POST", "/tenants/{tenant_id}/scripts/{name}/promote", Role.EDITOR, tagged=True, stores=True)
    def promote(self, tenant_id: str, name: str, *, why: str | None = None) -> ScriptVersion:
        """Make a script's shadow its live version, whatever its runs were compared to so far.

        Args:
            why: the reason, kept with the version and in the audit log.

        Raises:
            NotFound: script_unknown, shadow_unknown.
            InputError: why_invalid.
            Conflict: shadow_outdated, versions_full.
        """
        with self._changing(ScriptVerbs.promote, tenant_id, name, name) as change:
            live = change.before(scripts.get(change.connection, tenant_id, name))
            audit_context = change.with_reason(why or change.audit_context.why or "promoted from the shadow")
            return change.made(shadows.promote(self.context, change.connection, live, self._now_us, audit_context))

    @operation("DELETE", "/tenants/{tenant_id}/scripts/{name}/shadow", Role.EDITOR, tagged=True)
    def drop(self, tenant_id: str, name: str) -> Shadow:
        """Drop a script's shadow, with its comparisons; the live version stays.

        Raises:
            NotFound: script_unknown, shadow_unknown.
        """
        with self._changing(ScriptVerbs.drop, tenant_id, name, name) as change:
            live = scripts.get(change.connection, tenant_id, name)
            return change.made(change.before(shadows.drop(change.connection, live), of=live), None)
