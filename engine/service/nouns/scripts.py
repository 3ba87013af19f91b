"""The verbs on scripts and their versions."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from lodger.engine.core.access import names
from lodger.engine.core.access.audit_context import AuditContext
from lodger.engine.core.access.roles import Role
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import Conflict, InputError, Unavailable
from lodger.engine.core.handlers import Handler
from lodger.engine.core.ids import PLATFORM
from lodger.engine.core.params import read_fields
from lodger.engine.data.reading import collections
from lodger.engine.data.sets.typescript import signature
from lodger.engine.service.bulk import Matched
from lodger.engine.service.checks.module_check import ModuleCheck
from lodger.engine.service.checks.source_check import SourceCheck
from lodger.engine.service.checks.trial_budget import TrialBudget
from lodger.engine.service.effect_diff import lines
from lodger.engine.service.nouns.base import Noun, aware
from lodger.engine.service.operations.declaration import UNCHANGED, Endpoint, M, local, operation
from lodger.engine.store import list_filter
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.context import StoreContext
from lodger.engine.store.records import Checked, DryRun, Json, Page, Script, ScriptDiff, ScriptVersion
from lodger.engine.store.scripts import differences, scripts
from lodger.engine.store.scripts.content import Content, ScriptInput, read
from lodger.engine.store.scripts.linking import link
from lodger.engine.store.stored_modules import runnable
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import encode
from lodger.engine.store.usage import usage
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import LAST_YEAR, ScriptError
from lodger.sandbox.source_names import unknown_names

if TYPE_CHECKING:
    from lodger.engine.core.execution import Claim
    from lodger.engine.effects.finished import Finished
    from lodger.engine.service.engine import Engine

#: Maximum number of concurrent trials in a process, and how long another one waits, seconds.
AT_ONCE = 2
PATIENCE_S = 60.0
#: Maximum number of hints of a check.
MAX_HINTS = 20


def _compared(version: ScriptVersion) -> dict[str, str]:
    """Return the text of each part by which two versions are compared: files, and the versions of imported scripts."""
    imports = "\n".join(f"{root} version {number}" for root, number in sorted(version.uses.items()))
    return version.modules | ({"imports:": imports} if imports else {})


# Inside the class ``list`` is a verb.
ScriptList = list[Script]
ScriptPage = Page[Script]
VersionPage = Page[ScriptVersion]


@dataclass(frozen=True, slots=True)
class ReadableSet:
    """An exposed table, or a collection, of which any document may have any fields.

    Attributes:
        kind: table or collection.
        columns: kind of value by column name.
    """

    name: str
    kind: str
    key: str
    columns: dict[str, str]


SetList = list[ReadableSet]


@dataclass(frozen=True, slots=True)
class CallableFunction:
    """A function of the platform. ``signature`` is that of its method, in TypeScript."""

    name: str
    signature: str
    help: str


FunctionList = list[CallableFunction]


#: Begins to run a version beside the live one (number of runs, time, who, whether it is promoted by itself); appended to by a wing.
BESIDE: list[
    Callable[[StoreContext, Connection, ScriptVersion, Content, int, int, AuditContext, bool], ScriptVersion]
] = []


class Scripts(Noun[M]):
    """Scripts and their versions."""

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self._engine = engine
        self._budget = TrialBudget(engine.context)
        self.module_check = ModuleCheck(engine.context.settings, self._budget)
        self.source_check = SourceCheck(engine.context.settings, self._budget)
        self._trials = threading.BoundedSemaphore(AT_ONCE)

    @operation(
        "PUT", "/tenants/{tenant_id}/scripts/{name}", Role.EDITOR, slow=True, tagged=True, stores=True,
        also=Endpoint("PUT", "/tenants/{tenant_id}/scripts/{name}/module", Role.EDITOR, raw="source", media="application/wasm"),
    )  # fmt: skip
    def put(
        self,
        tenant_id: str,
        name: str,
        source: ScriptInput,
        *,
        grants: Iterable[str] | None = UNCHANGED,
        params: Mapping[str, Any] | None = None,
        offered: bool = False,
        why: str | None = None,
        after_version: int | None = None,
        force: bool = False,
        shadow: int | None = None,
        promote_when_agreed: bool = False,
    ) -> ScriptVersion:
        """Store a version of a script; an unchanged source with unchanged grants creates no new version.

        With ``shadow`` the live version stays: for so many runs the new one runs dry beside it, after each run, on the
        same input and answers of host calls, without any effect (``scripts.shadow`` shows how they compare). It is live
        once it is promoted (``scripts.promote``). A script has one shadow; a further one replaces it.

        The runtime parses a source first, in the sandbox; one that cannot run is refused with its line. If no worker
        can be started it is stored unchecked, and the result's ``unchecked`` gives the reason.

        Args:
            source: the text of ``main.js``, source by file name including ``main.js``, ``main.ts`` or ``NAME.js`` of the
                script's name, which is run (a library: ``index.js`` or ``index.ts``), or the bytes of a WebAssembly
                module, which is compiled first, in the sandbox.
            grants: grants of the tenant that this script may use; None for all of them. Default: those of the
                previous version.
            params: declaration of its typed params, see :mod:`lodger.engine.core.params`; None for any JSON value.
            offered: whether every tenant may bind it, as ``@NAME``; only for scripts of the tenant ``@platform``.
            why: the reason, kept with the version and in the audit log.
            after_version: refuse if a version after this one exists; 0 if the script must not exist.
            force: store a source without checking it; a module is compiled all the same.
            shadow: number of runs of the live version to compare with, at most 500; None: the version is live at once.
            promote_when_agreed: promote a shadow by itself when all these runs agree.

        Raises:
            InputError: script_name_invalid, script_empty, entry_missing, entry_ambiguous, file_name_invalid,
                files_too_many, json_invalid, import_unknown, library_not_closed, import_cycle,
                source_not_text, source_too_large,
                source_refused, source_too_costly, not_webassembly, module_refused, module_too_costly, grant_unknown,
                why_invalid, fields_invalid, not_offerable, shadow_invalid.
            Conflict: scripts_full, versions_full, changed_meanwhile.
            Unavailable: a module cannot be compiled on this host, or package_missing: TypeScript cannot be stripped on it.
        """
        if shadow is None and promote_when_agreed:
            raise InputError("shadow_invalid.no_runs")
        if shadow is not None and (grants is not UNCHANGED or params is not None or offered):
            raise InputError("shadow_invalid.terms")
        if shadow is not None and not BESIDE:
            raise InputError("shadow_invalid.absent")
        fields = read_fields(params)
        with self._budget.collecting(tenant_id) as charges:
            content, unchecked = self._read_checked(tenant_id, name, source, force=force)
            needs = encode if grants is UNCHANGED else lambda _before: encode(grants)
            with self._changing(Scripts.put, tenant_id, name, name) as change:
                latest = scripts.find_latest(change.connection, tenant_id, name)
                if latest is not None:
                    change.before(latest)
                if after_version is not None and after_version != (latest.version if latest else 0):
                    raise Conflict(
                        "changed_meanwhile.script",
                        name=name,
                        current=latest.version if latest else 0,
                        expected=after_version,
                    )
                audit_context = change.with_reason(why)
                usage.add_trial(self.context, change.connection, tenant_id, sum(charges))
                if shadow is not None:
                    live = latest or scripts.get(change.connection, tenant_id, name)
                    begun = BESIDE[-1](
                        self.context,
                        change.connection,
                        live,
                        content,
                        shadow,
                        self._now_us,
                        audit_context,
                        promote_when_agreed,
                    )
                    return change.made(replace(begun, unchecked=unchecked))
                made = scripts.put(
                    self.context,
                    change.connection,
                    tenant_id,
                    name,
                    content,
                    self._now_us,
                    audit_context,
                    needs=needs,
                    fields=fields,
                    offered=offered,
                )
                return change.made(replace(made, unchecked=unchecked) if unchecked else made)

    @local("a Python function cannot be sent")
    def put_handler(self, handler: Handler) -> ScriptVersion:
        """Store a handler as a platform script; see :meth:`lodger.engine.sync.Engine.handler`."""
        with self._changing(Scripts.put_handler, PLATFORM, handler.name, handler.name) as change:
            latest = scripts.find_latest(change.connection, PLATFORM, handler.name)
            if latest is not None:
                change.before(latest)
            return change.made(
                scripts.put_handler(self.context, change.connection, handler, self._now_us, change.audit_context)
            )

    def _read_checked(
        self, tenant_id: str, name: str, source: ScriptInput, *, force: bool
    ) -> tuple[Content, str | None]:
        """Read and check a source; return it with the reason if it was not checked. Takes long: not to be called in a transaction."""
        with self.context.database.read() as connection:
            asked = tenants.ask(connection, tenant_id)
            names.check_path_part(name, "script_name_invalid")
            known = scripts.find_latest(connection, tenant_id, name)
            limits = self.context.content_cache.limits(json.dumps(asked().limits_in_effect, sort_keys=True), None)
            content = read(bytes(source) if isinstance(source, bytearray | memoryview) else source, limits, name)
            content = link(connection, tenant_id, name, content, limits)
            if known is not None and known.digest == content.digest:
                return scripts.content(connection, known), None
        if content.wasm is not None:
            self.module_check.require(tenant_id, content.wasm, limits)
            return content, None
        return self.source_check.checked(tenant_id, name, content, limits, force=force)

    @operation("POST", "/tenants/{tenant_id}/check-script", Role.EDITOR, reads=True, slow=True)
    def check(self, tenant_id: str, source: ScriptInput) -> Checked:
        """Check whether a source can run, before it is stored: the runtime parses all files in the sandbox and runs none.

        Raises:
            InputError: script_empty, entry_missing, source_not_text, source_too_large, not_webassembly.
            Unavailable: this host cannot set up the sandbox.
        """
        with self.context.database.read() as connection:
            limits = scripts.limits_of(self.context, connection, tenant_id)
            content = link(connection, tenant_id, "", read(source, limits), limits)
        self._budget.require(tenant_id)
        if content.wasm is not None:
            try:
                self.module_check.require(tenant_id, content.wasm, limits)
            except InputError as refused:
                return Checked(ok=False, problems=(ScriptError("CompileError", f"{refused.what}: {refused.why}"),))
            return Checked(ok=True, problems=())
        content, problem = self.source_check.strip(tenant_id, content)
        if problem is None:
            problem = self.source_check.problem(tenant_id, content.modules, limits)
        spaces = {name.partition(".")[0] for name in self._engine.datasets.function_names}
        hints = tuple(islice(unknown_names(runnable(content.modules), spaces), MAX_HINTS))
        return Checked(ok=problem is None, problems=() if problem is None else (problem,), hints=hints)

    @operation("POST", "/tenants/{tenant_id}/scripts/{name}/dry-run", Role.EDITOR, reads=True, slow=True)
    def dry_run(
        self,
        tenant_id: str,
        name: str,
        params: Json = None,
        *,
        version: int | None = None,
        source: ScriptInput | None = None,
        fetches: bool = False,
        offline: bool = False,
        now: datetime | None = None,
    ) -> DryRun:
        """Run a script once in the sandbox against the present data; show its outcome and the effects it would have had.

        Nothing is stored: no action, no effect, no mail. Requests (``fetch``) with GET and HEAD are sent; others are
        shown.

        Args:
            version: the latest by default.
            source: run this source instead of the stored one, such as an unsaved edit.
            fetches: send all requests.
            offline: send no request at all, and refuse to read secrets.
            now: what the script sees as now and as its slot; by default the present time, and no slot.

        Raises:
            NotFound: a missing tenant, script or version.
            InputError: not_rehearsable, instant_out_of_range, offline_fetches, and errors of the source.
            Unavailable: this host cannot set up the sandbox.
        """
        from lodger.engine.trials import claims

        pretended = aware(now)
        pretended_us = None if pretended is None else to_us(pretended)
        if pretended_us is not None and not 0 <= pretended_us < to_us(datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)):
            raise InputError("instant_out_of_range.script", last=LAST_YEAR)
        if fetches and offline:
            raise InputError("offline_fetches")
        context = self.context
        with context.database.read() as connection:
            terms_of = partial(claims.read_terms, context, connection, tenant_id)
            if source is None:
                stored = partial(claims.read_version, connection, tenant_id, name, version)
                terms, (found, content) = read_together(terms_of, stored, connection=connection)
            else:
                terms, limits, found = read_together(
                    terms_of,
                    partial(scripts.limits_of, context, connection, tenant_id),
                    partial(scripts.find_latest, connection, tenant_id, name),
                    connection=connection,
                )
                content = link(connection, tenant_id, name, read(source, limits, name), limits)
        self._budget.require(tenant_id)
        if source is not None:
            content = self.source_check.require_stripped(tenant_id, name, content)
        ended = self._run_trial(
            claims.claim_in_ledger(
                context, terms, name, found, content, params,
                fetches=fetches, offline=offline, pretended_us=pretended_us, edited=source is not None,
            )
        )  # fmt: skip
        self._budget.charge(tenant_id, ended.usage.cpu_ms)
        return DryRun(
            outcome=ended.outcome,
            result=None if ended.result is None else json.loads(ended.result),
            error=ended.error,
            logs=ended.logs,
            usage=ended.usage,
            effects=ended.effects,
            diff=tuple(lines(ended.effects)),
        )

    def _run_trial(self, claim: "Claim") -> "Finished":
        """Run the claim of a trial on the ledger's data."""
        from lodger.engine.trials.trial import on_ledger, run

        async def run_trial() -> "Finished":
            """Run the claim once on the ledger's data, without effects."""
            async with on_ledger(self._engine.host) as executor:
                return (await run(executor, claim)).finished

        if not self._trials.acquire(timeout=PATIENCE_S):
            raise Unavailable("rehearsals_busy", at_once=AT_ONCE)
        try:
            return asyncio.run(run_trial())
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        finally:
            self._trials.release()

    @operation("GET", "/tenants/{tenant_id}/sets", Role.VIEWER)
    def sets(self, tenant_id: str) -> SetList:
        """List the exposed tables and the collections that scripts of a tenant may read as ``db.NAME``, by name."""
        with self.context.database.read() as connection:
            tenant = tenants.get(connection, tenant_id)
            documents = collections.list_all(connection, tenant_id)
        granted = self.context.content_cache.grants(encode(tenant.grants), None)
        tables = self._engine.datasets.described()
        found = [
            ReadableSet(each, "table", about["key"], dict(about["columns"]))
            for each, about in tables.items()
            if granted.of_rows(each, exposed=True, write=False)
        ]
        found += [
            ReadableSet(each.name, "collection", "id", {})
            for each in documents
            if each.name not in tables and granted.of_rows(each.name, exposed=False, write=False)
        ]
        return sorted(found, key=lambda each: each.name)

    @operation("GET", "/tenants/{tenant_id}/functions", Role.VIEWER)
    def functions(self, tenant_id: str) -> FunctionList:
        """List the functions of the platform that scripts of a tenant may call, by name: those that this process knows."""
        granted = self.context.content_cache.grants(encode(self._read(tenants.get, tenant_id).grants), None)
        known = sorted(self._engine.datasets.functions, key=lambda each: each.name)
        return [
            CallableFunction(each.name, signature(each), each.help) for each in known if granted.of_function(each.name)
        ]

    @operation("GET", "/tenants/{tenant_id}/scripts/{name}", Role.VIEWER)
    def get(self, tenant_id: str, name: str, version: int | None = None) -> ScriptVersion:
        """Return a version of a script, the latest by default.

        Raises:
            NotFound: script_unknown.
        """
        return self._read(scripts.get, tenant_id, name, version)

    @operation("GET", "/tenants/{tenant_id}/scripts/{name}/module", Role.VIEWER, media="application/wasm")
    def module(self, tenant_id: str, name: str, version: int | None = None) -> bytes:
        """Return the bytes of a version that is a WebAssembly module, the latest by default.

        Raises:
            NotFound: script_unknown.
            InputError: no_module.
        """
        return self._read(scripts.module, tenant_id, name, version)

    @operation("GET", "/tenants/{tenant_id}/scripts/{name}/versions", Role.VIEWER, max_page=100)
    def versions(
        self, tenant_id: str, name: str, *, limit: int | None = None, cursor: str | None = None
    ) -> VersionPage:
        """List a script's versions, newest first."""
        with self.context.database.read() as connection:
            return scripts.versions(connection, tenant_id, name, limit, cursor)

    @operation("GET", "/tenants/{tenant_id}/scripts/{name}/diff", Role.VIEWER)
    def diff(self, tenant_id: str, name: str, older: int, newer: int | None = None) -> ScriptDiff:
        """Compare two versions of a script; ``newer`` is the latest if left out."""
        with self.context.database.read() as connection:
            before = scripts.get(connection, tenant_id, name, older)
            after = scripts.get(connection, tenant_id, name, newer)
        files = differences.of_files(_compared(before), _compared(after))
        return ScriptDiff(name, before.version, after.version, files)

    @operation("POST", "/tenants/{tenant_id}/scripts/{name}/rollback", Role.EDITOR, tagged=True, stores=True)
    def rollback(self, tenant_id: str, name: str, version: int, *, why: str | None = None) -> ScriptVersion:
        """Store an earlier version's source again, as a new version; the versions in between stay readable."""
        with self._changing(Scripts.rollback, tenant_id, name, name) as change:
            get = partial(scripts.get, change.connection, tenant_id, name)
            latest, found = read_together(get, partial(get, version), connection=change.connection)
            change.before(latest)
            old, offered = read_together(
                partial(scripts.content, change.connection, found),
                partial(scripts.is_offered, change.connection, found.script_id),
                connection=change.connection,
            )
            audit_context = change.with_reason(why or change.audit_context.why or f"rollback to version {version}")
            return change.made(
                scripts.put(
                    self.context, change.connection, tenant_id, name, old, self._now_us, audit_context,
                    needs=lambda _before: encode(found.grants), fields=read_fields(found.fields),
                    offered=offered,
                )
            )  # fmt: skip

    @operation("POST", "/tenants/{tenant_id}/scripts/{name}/suspend", Role.EDITOR, tagged=True)
    def suspend(self, tenant_id: str, name: str) -> ScriptVersion:
        """Stop a script at once; none of its actions starts or commits until it is resumed.

        Its schedules stay armed: their slots become actions, which wait. A suspended script of the platform's stops for
        every tenant that has bound it.

        Raises:
            NotFound: script_unknown.
        """
        with self._changing(Scripts.suspend, tenant_id, name, name) as change:
            change.before(scripts.get(change.connection, tenant_id, name))
            return change.made(scripts.suspend(change.connection, tenant_id, name, self._now_us))

    @operation("POST", "/tenants/{tenant_id}/scripts/{name}/resume", Role.EDITOR, tagged=True)
    def resume(self, tenant_id: str, name: str) -> ScriptVersion:
        """Resume a suspended script; its waiting actions may start.

        Raises:
            NotFound: script_unknown.
        """
        with self._changing(Scripts.resume, tenant_id, name, name) as change:
            change.before(scripts.get(change.connection, tenant_id, name))
            return change.made(scripts.resume(change.connection, tenant_id, name))

    @operation("GET", "/scripts/offered", Role.VIEWER, items="scripts", home=True)
    def offered(self) -> ScriptList:
        """List the platform's scripts that every tenant may bind, by name, with their typed params (``fields``)."""
        return self._read(scripts.list_offered)

    @operation("GET", "/tenants/{tenant_id}/scripts", Role.VIEWER, everywhere=True)
    def list(
        self,
        tenant_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the word of the field
    ) -> ScriptPage:
        """List a tenant's scripts by name, or those of all tenants by tenant and name.

        Args:
            filter: such as ``state:suspended name:night* sort:-created``.

        Raises:
            InputError: filter_invalid, cursor_invalid.
        """
        wanted = list_filter.read(scripts.language(), filter, self._now_us)
        with self._reading(tenant_id) as connection:
            return scripts.list_page(connection, tenant_id, wanted, limit, cursor)

    @operation("GET", "/tenants/{tenant_id}/scripts-count", Role.VIEWER, everywhere=True)
    def count(self, tenant_id: str | None = None, *, filter: str | None = None) -> Matched:  # noqa: A002 - as above
        """Count the scripts that match a filter.

        Raises:
            InputError: filter_invalid.
        """
        wanted = list_filter.read(scripts.language(), filter, self._now_us)
        return self._count(wanted.apply(scripts.own(tenant_id)), tenant_id)
