"""Runs that leave nothing behind: a script once against the data of now, and a source only read by the runtime's own parser."""

import asyncio
import json
import threading
from typing import TYPE_CHECKING

from lodger.engine.effects.diff import lines
from lodger.engine.errors import InputError, Unavailable
from lodger.engine.ledger import scripts, tenants
from lodger.engine.ledger.records import Checked, DryRun, Json, ScriptVersion, Tenant
from lodger.engine.ledger.script_content import ENTRY, Content, Given, read
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import ScriptError
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.node.executor import Finished
    from lodger.engine.sync import Engine

#: Rehearsals of one process at once: each starts walls of its own. Seconds that one waits for its turn.
AT_ONCE = 2
PATIENCE_S = 60.0
#: A module that no source can have. What imports it is parsed whole, with all that it imports, and never begins to run.
NOWHERE = "lodger:nowhere"
_DECLARATIONS = tuple(word + after for word in ("import", "export") for after in (" ", "{", "*", "'", '"'))


class Rehearsals:
    """Dry runs and checks of one engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._turn = threading.BoundedSemaphore(AT_ONCE)

    def dry_run(
        self,
        tenant_id: str,
        name: str,
        params: Json,
        version: int | None,
        source: Given | None,
        *,
        fetches: bool,
    ) -> DryRun:
        """Run a script once in real walls; see :meth:`lodger.engine.verbs.scripts.Scripts.dry_run`."""
        from lodger.engine.node.rehearsal import chosen

        with self._engine.books.database.read() as connection:
            tenant = tenants.get(connection, tenant_id)
            if source is not None:
                content, found = read(source, scripts.limits_of(self._engine.books, connection, tenant_id)), None
            else:
                found, content = chosen(connection, tenant_id, name, version)
        grants = None if found is None else found.grants
        ended = self._run(tenant, name, content, params, found, grants=grants, fetches=fetches)
        return DryRun(
            outcome=ended.outcome,
            result=None if ended.result is None else json.loads(ended.result),
            error=ended.error,
            logs=ended.logs,
            usage=ended.usage,
            effects=ended.effects,
            diff=tuple(lines(ended.effects)),
        )

    def check(self, tenant_id: str, source: Given) -> Checked:
        """Let the runtime parse a script, without running a line of it."""
        engine = self._engine
        with engine.books.database.read() as connection:
            tenant = tenants.get(connection, tenant_id)
            limits = scripts.limits_of(engine.books, connection, tenant_id)
        content = read(source, limits)
        if content.wasm is not None:
            try:
                engine.scripts.intake.demand(tenant_id, content.wasm, limits)
            except InputError as refused:
                return Checked(ok=False, problems=(ScriptError("CompileError", f"{refused.what}: {refused.why}"),))
            return Checked(ok=True, problems=())
        problem = self._misread(tenant, content.modules)
        return Checked(ok=problem is None, problems=() if problem is None else (problem,))

    def _misread(self, tenant: Tenant, modules: dict[str, str]) -> ScriptError | None:
        others = [file for file in modules if file != ENTRY]
        if others:
            imports = "".join(f"import {json.dumps('./' + file)};" for file in others)
            # The runtime believes no line of an error that is beyond the entry's last.
            imports += "\n" * max(modules[file].count("\n") for file in others)
            problem = self._parsed(tenant, modules | {ENTRY: f'{imports}import "{NOWHERE}"; export default 0'})
            if problem is not None:
                return problem
        text = modules[ENTRY]
        declares = any(line.lstrip().startswith(_DECLARATIONS) for line in text.split("\n"))
        if "export" in text or declares:
            problem = self._parsed(tenant, modules | {ENTRY: f'{text}\nimport "{NOWHERE}"'})
            if problem is None or declares:
                return problem
        # A snippet is a function's body: one that returns at once is parsed whole, and does nothing.
        head = "//" + text[2:] if text.startswith("#!") else "return;" + text
        return self._parsed(tenant, modules | {ENTRY: head})

    def _parsed(self, tenant: Tenant, modules: dict[str, str]) -> ScriptError | None:
        content = Content(modules, None, "")
        ended = self._run(tenant, "check", content)
        if ended.error is None or NOWHERE in ended.error.message:
            return None
        if ended.outcome is Outcome.COMPILE_ERROR:
            return ended.error
        if ended.outcome.blames == "tenant":
            return ended.error
        raise Unavailable(
            "check_failed",
            "the script could not be checked",
            why=f"{ended.outcome.value}: {ended.error.message}",
            fix="try again; lodger doctor says what this host lacks",
        )

    def _run(
        self,
        tenant: Tenant,
        name: str,
        content: Content,
        params: Json = None,
        found: ScriptVersion | None = None,
        *,
        grants: tuple[str, ...] | None = (),
        fetches: bool = False,
    ) -> "Finished":
        from lodger.engine.node.rehearsal import carry_out, claim

        version = 0 if found is None else found.version
        one = claim(self._engine.books, tenant, name, version, content, params, grants, fetches=fetches)
        if not self._turn.acquire(timeout=PATIENCE_S):
            raise Unavailable(
                "rehearsals_busy",
                "too many rehearsals wait here",
                why=f"{AT_ONCE} run at once",
                fix="try again in a moment",
            )
        try:
            return asyncio.run(carry_out(self._engine, one))
        except SandboxError as problem:
            raise Unavailable(problem.code, problem.what, why=problem.why, fix=problem.fix) from problem
        finally:
            self._turn.release()
