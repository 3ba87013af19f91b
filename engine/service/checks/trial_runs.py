"""Dry runs of scripts against the present data, and checks of sources by the runtime's parser. Neither changes anything."""

import asyncio
import json
import threading
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.service.checks.trial_budget import TrialBudget
from lodger.engine.service.effect_diff import lines
from lodger.engine.store.connection.database import read_together
from lodger.engine.store.records import Checked, DryRun, Json, ScriptVersion
from lodger.engine.store.scripts import scripts
from lodger.engine.store.scripts.content import ScriptInput, read
from lodger.engine.store.scripts.linking import link
from lodger.engine.store.stored_modules import runnable
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import ScriptError
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


class TrialRuns:
    """Dry runs and checks of one engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._budget = TrialBudget(engine.context)
        self._turn = threading.BoundedSemaphore(AT_ONCE)

    def dry_run(
        self,
        tenant_id: str,
        name: str,
        params: Json,
        version: int | None,
        source: ScriptInput | None,
        *,
        fetches: bool,
        offline: bool = False,
        pretended_us: int | None = None,
    ) -> DryRun:
        """Run a script once in the sandbox; see :meth:`lodger.engine.service.nouns.scripts.Scripts.dry_run`."""
        from lodger.engine.trials.claims import claim_in_ledger, read_terms, read_version

        context = self._engine.context
        found: ScriptVersion | None
        with context.database.read() as connection:
            terms_of = partial(read_terms, context, connection, tenant_id)
            if source is None:
                stored = partial(read_version, connection, tenant_id, name, version)
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
            content = self._engine.scripts.source_check.require_stripped(tenant_id, name, content)
        ended = self._run(
            claim_in_ledger(
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

    def check(self, tenant_id: str, source: ScriptInput) -> Checked:
        """Parse a script by the runtime, without running it."""
        engine = self._engine
        with engine.context.database.read() as connection:
            limits = scripts.limits_of(engine.context, connection, tenant_id)
            content = link(connection, tenant_id, "", read(source, limits), limits)
        self._budget.require(tenant_id)
        if content.wasm is not None:
            try:
                engine.scripts.module_check.require(tenant_id, content.wasm, limits)
            except InputError as refused:
                return Checked(ok=False, problems=(ScriptError("CompileError", f"{refused.what}: {refused.why}"),))
            return Checked(ok=True, problems=())
        content, problem = engine.scripts.source_check.strip(tenant_id, content)
        if problem is None:
            problem = engine.scripts.source_check.problem(tenant_id, content.modules, limits)
        spaces = {name.partition(".")[0] for name in engine.datasets.function_names}
        hints = tuple(islice(unknown_names(runnable(content.modules), spaces), MAX_HINTS))
        return Checked(ok=problem is None, problems=() if problem is None else (problem,), hints=hints)

    def _run(self, claim: "Claim") -> "Finished":
        """Run the claim of a trial on the ledger's data."""
        from lodger.engine.trials.trial import on_ledger, run

        async def run_trial() -> "Finished":
            """Run the claim once on the ledger's data, without effects."""
            async with on_ledger(self._engine.host) as executor:
                return (await run(executor, claim)).finished

        if not self._turn.acquire(timeout=PATIENCE_S):
            raise Unavailable("rehearsals_busy", at_once=AT_ONCE)
        try:
            return asyncio.run(run_trial())
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        finally:
            self._turn.release()
