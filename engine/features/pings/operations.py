"""The verb that stores a ping."""

from collections.abc import Mapping

from lodger.engine.core.access.roles import Role
from lodger.engine.features.pings import ping
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.records import Json, ScriptVersion
from lodger.engine.store.scripts import scripts


class ScriptVerbs(Noun[M]):
    """Verbs on scripts."""

    @operation("PUT", "/tenants/{tenant_id}/scripts/{name}/ping", Role.EDITOR, tagged=True, command="ping")
    def put_ping(
        self,
        tenant_id: str,
        name: str,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: Json = None,
        expect: str = "2xx",
        why: str | None = None,
    ) -> ScriptVersion:
        """Store a script that is one HTTP request; schedules run it like any other script, but without a worker.

        It is sent like a script's request: to hosts that the tenant was granted (``fetch:HOST``), with its secrets in
        headers (``Bearer {{secret:NAME}}``), within its budgets. All attempts of an action have the same
        Idempotency-Key.

        Args:
            url: URL of the request.
            method: method of the request: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
            body: text, or a JSON value. Default for POST, PUT and PATCH: an object with tenant, action, schedule, slot
                and params.
            expect: statuses of success, such as ``2xx 404``; with any other status the attempt fails, and is retried
                under the retry policy.
            why: the reason, kept with the version and in the audit log.

        Raises:
            InputError: ping_invalid, source_too_large, script_name_invalid, kind_fixed, why_invalid.
            Conflict: scripts_full, versions_full.
        """
        with self._changing(ScriptVerbs.put_ping, tenant_id, name, name) as change:
            content = ping.read(
                url, method, headers, body, expect, scripts.limits_of(self.context, change.connection, tenant_id)
            )
            latest = scripts.find_latest(change.connection, tenant_id, name)
            if latest is not None:
                change.before(latest)
            audit_context = change.with_reason(why)
            return change.made(
                scripts.put(self.context, change.connection, tenant_id, name, content, self._now_us, audit_context)
            )
