"""The verbs on records of attempts."""

from lodger.engine.core.access.roles import Role
from lodger.engine.features.replays import attempt_record, recorded
from lodger.engine.features.replays.attempt_record import AttemptRecord
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store import short_ids
from lodger.engine.store.actions import actions
from lodger.engine.store.records import ScriptVersion
from lodger.engine.store.scripts import scripts
from lodger.engine.store.stored_modules import runnable


class ActionVerbs(Noun[M]):
    """Verbs on actions."""

    __slots__ = ()

    @operation("GET", "/tenants/{tenant_id}/actions/{action_id}/record", Role.EDITOR, everywhere=True)
    def record(
        self, tenant_id: str | None, action_id: str, attempt: int | None = None, *, version: int | None = None
    ) -> AttemptRecord:
        """Return what an attempt was told and how it ended, with its source: all that a replay needs, without secrets.

        Attempts that failed in the sandbox are recorded, others on request (``scripts.record``).

        Args:
            attempt: number of the attempt, from 1; the last recorded one by default.
            version: give the source of this version of the script, none if there is no such version; by default of the
                one that ran.

        Raises:
            NotFound: action_unknown, record_missing.
        """
        with self.context.database.read() as connection:
            found = actions.get(connection, short_ids.action_id(connection, tenant_id, action_id), tenant_id)
            stored = recorded.body(connection, found.tenant_id, found.id, attempt)
            made = attempt_record.read(attempt_record.unpack(stored))
            source = recorded.source(
                connection, found.tenant_id, made.script, made.version if version is None else version
            )
        if source is None:
            return made
        return attempt_record.with_source(made, runnable(source.modules), source.wasm)


class ScriptVerbs(Noun[M]):
    """Verbs on scripts."""

    __slots__ = ()

    @operation("PUT", "/tenants/{tenant_id}/scripts/{name}/record", Role.EDITOR, tagged=True)
    def record(self, tenant_id: str, name: str, which: str) -> ScriptVersion:
        """Set which attempts of a script are recorded for replays. Records count as storage, and go with the action's history.

        Args:
            which: failed (the default), all or none. Nodes notice a change within two seconds.

        Raises:
            NotFound: script_unknown.
            InputError: record_unknown.
        """
        with self._changing(ScriptVerbs.record, tenant_id, name, name) as change:
            found = scripts.get(change.connection, tenant_id, name)
            change.before({"record": recorded.choice(change.connection, found)}, of=found)
            return change.made(recorded.keep(change.connection, found, which), {"record": which})
