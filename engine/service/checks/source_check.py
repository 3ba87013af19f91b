"""Check of a script's source when it is stored: the runtime parses it in a sandboxed worker."""

import json
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.store.stored_modules import ENTRIES, MAP, STRIPPED, entry_of, is_authored, is_library, runnable
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, Job, ScriptError
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.regex_literals import misread
from lodger.sandbox.source_faults import explained, faults, idle, no_function

if TYPE_CHECKING:
    from lodger.engine.service.checks.trial_budget import TrialBudget
    from lodger.engine.store.scripts.content import Content
    from lodger.sandbox.pool import Pool
    from lodger.sandbox.syntax_check import SyntaxChecker

#: A module name that no source can have. A module that imports it is parsed with all its imports, and never runs.
NOWHERE = "lodger:nowhere"
#: A module beside the author's that throws at once.
STOP = "lodger:stop"
#: Limits of a check, whatever the tenant's limits are. An ordinary source takes a quarter of the CPU time for its
#: length.
MIN_CPU_MS, BYTES_A_MS, MAX_WALL_MS, MAX_MEMORY_BYTES = 500, 1024, 30_000, 256 * MIB
#: Maximum number of characters of the author's line in an error.
MAX_CHARACTERS = 200
_UNEXPECTED = re.compile(r"^unexpected .*'(.+)'$", re.DOTALL)
_CONTEXT = '{"action":{},"now_us":0,"grants":[],"datasets":{},"offsets":[]}'


class SourceCheck:
    """Parses scripts. No worker is started before the first one; workers end when they have been idle for a while.

    Args:
        settings: of the engine.
        budget: charged with the CPU time of each check; None charges nothing.
    """

    def __init__(self, settings: Settings, budget: "TrialBudget | None" = None) -> None:
        self._settings = settings
        self._budget = budget
        self._making = threading.Lock()
        self._made: SyntaxChecker | None = None

    @property
    def reader(self) -> "SyntaxChecker":
        """The syntax checker of this engine, created on first use."""
        from lodger.sandbox.syntax_check import SyntaxChecker

        with self._making:
            if self._made is None:
                self._made = SyntaxChecker(self._pool)
            return self._made

    def uncharged(self) -> "SourceCheck":
        """Return a check with the same workers that charges no tenant: for what administrators store."""
        free = SourceCheck(self._settings)
        free._made = self.reader
        return free

    def close(self) -> None:
        """Stop the workers; safe to call twice."""
        if self._made is not None:
            self._made.close()

    def _pool(self) -> "Pool":
        """Return a pool of one worker that compiles sources."""
        from lodger.sandbox.pool import Pool

        settings = self._settings
        return Pool(
            runtime=settings.runtime,
            size=1,
            cores=1,
            cache=settings.cache_dir,
            profile=settings.profile,
            minimum=settings.walls_minimum,
        )

    def strip(self, tenant_id: str, content: "Content") -> "tuple[Content, ScriptError | None]":
        """Return content with the JavaScript of its TypeScript files beside them, or the first error in them. Blocks.

        Raises:
            Conflict: budget_used_up.
            Unavailable: package_missing (extra ``node``), no_worker.
        """
        from lodger.sandbox.nodejs import type_stripping

        files = {file: text for file, text in content.modules.items() if is_authored(file)}
        if not any(map(type_stripping.is_typescript, files)):
            return content, None
        if self._budget is not None:
            self._budget.require(tenant_id)
        try:
            stripped = type_stripping.strip(tenant_id, files)
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        if self._budget is not None:
            self._budget.charge(tenant_id, stripped.cpu_ms)
        modules = content.modules | {STRIPPED + file: text for file, text in stripped.files.items()}
        return replace(content, modules=modules), stripped.error

    def require_stripped(self, tenant_id: str, name: str, content: "Content", *, force: bool = False) -> "Content":
        """Return content as :meth:`strip`; refuse a regular expression that the runtime would read as another, unless forced.

        Raises:
            InputError: source_refused, source_too_costly.
            Conflict, Unavailable: as :meth:`strip`.
        """
        content, problem = self.strip(tenant_id, content)
        if problem is None and not force and self._settings.runtime == "quickjs":
            problem = misread(runnable(content.modules))
        if problem is not None:
            raise refused(name, content.modules, problem)
        return content

    def checked(
        self, tenant_id: str, name: str, content: "Content", limits: Limits, *, force: bool
    ) -> "tuple[Content, str | None]":
        """Check content that was read and linked; return it with the reason if it was not checked. Takes long.

        Raises:
            InputError: source_refused, source_too_costly.
            Conflict, Unavailable: as :meth:`strip`.
        """
        content = self.require_stripped(tenant_id, name, content, force=force)
        if force:
            return content, "the check was skipped with force"
        return content, self.require(tenant_id, name, content.modules, limits)

    def require(self, tenant_id: str, name: str, modules: dict[str, str], limits: Limits) -> str | None:
        """Refuse a source that cannot be parsed; return the reason if it was not checked although it should be. Blocks meanwhile.

        Raises:
            InputError: source_refused, source_too_costly.
        """
        if not self._settings.check_scripts:
            return None  # checks are switched off
        if self._budget is not None and (used_up := self._budget.used_up(tenant_id)):
            return used_up
        try:
            problem = self.problem(tenant_id, modules, limits)
        except Unavailable as unable:
            return f"{unable.what}: {unable.why}" if unable.why else unable.what
        if problem is not None:
            raise refused(name, modules, problem)
        return None

    def problem(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        """Return why a source cannot run, None if it can.

        Args:
            modules: the files of the source, as they are stored.

        Raises:
            Unavailable: no worker can be started, or not with the walls that this host requires.
        """
        modules = {name: text for name, text in runnable(modules).items() if name != MAP}
        if self._settings.runtime == "quickjs":
            problem = misread(modules)
            if problem is not None:
                return problem
        problem = next(faults(modules), None) or self._linked(tenant_id, modules, limits)
        return explained(problem, modules) or idle(modules) or no_function(modules)

    def _linked(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        """Return the error that the runtime finds when it links the modules in a worker; none of them is evaluated.

        The module that the runtime evaluates before the author's throws; it also imports the files that the entry may not import.
        """
        entry = entry_of(modules)
        if is_library(modules):
            entry, modules = ENTRIES[0], {ENTRIES[0]: "export default 0"} | modules
        others = [
            file for file in modules if file != entry and is_authored(file) and file.endswith((".js", ".ts", ".mjs"))
        ]
        # Of these modules the first one is evaluated first; runtime quickjs-native has one module only.
        stop = f'throw new Error("{NOWHERE}");'
        apart = bool(others) and self._settings.runtime == "quickjs"
        imports = "".join(f"import {json.dumps('/' + file)};" for file in ((STOP, *others) if apart else others))
        bundle = Bundle(modules | {STOP: stop}, _CONTEXT, begin=imports if apart else imports + stop)
        cpu_ms = MIN_CPU_MS + sum(map(len, modules.values())) // BYTES_A_MS
        held = replace(limits, cpu_ms=cpu_ms, wall_ms=MAX_WALL_MS, memory_bytes=MAX_MEMORY_BYTES)
        try:
            ended = self.reader.read(Job(bundle, held, tag="check", tenant=tenant_id))
        except SandboxError as problem:
            raise Unavailable.of(problem) from problem
        except OSError as problem:  # no process, descriptor or memory is left
            raise Unavailable("no_worker", reason=str(problem)) from problem
        if self._budget is not None:
            self._budget.charge(tenant_id, ended.usage.cpu_ms)
        if ended.error is None or NOWHERE in ended.error.message:
            return None
        if ended.outcome is Outcome.COMPILE_ERROR or ended.outcome.blames == "tenant":
            return ended.error
        raise Unavailable("check_failed", outcome=ended.outcome.value, reason=ended.error.message)


def _column(problem: ScriptError, line: str) -> int | None:
    """Return the column of a syntax error: the parser's, else that of the unexpected token that it names, if it occurs once in the
    line."""
    token = _UNEXPECTED.search(problem.message)
    if problem.column is not None or token is None or line.count(token[1]) != 1:
        return problem.column
    return line.index(token[1]) + 1


def refused(name: str, modules: dict[str, str], problem: ScriptError) -> InputError:
    """Return the error that shows an author the line."""
    if problem.name == "LimitExceeded":
        return InputError("source_too_costly", name=name, reason=problem.message)
    lines = modules.get(problem.file or "", "").split("\n")
    line = problem.line if problem.line and problem.line <= len(lines) else None
    text = "" if line is None else lines[line - 1]
    column = _column(problem, text)
    place = problem.file or ""
    place += f", line {line}" if line else ""
    place += f", column {column}" if line and column else ""
    start = 0 if column is None else max(0, column - MAX_CHARACTERS // 2)
    shown = text[start : start + MAX_CHARACTERS]
    error, reason = problem.name, problem.message[:MAX_CHARACTERS]
    details = {"file": problem.file, "line": line, "column": column, "source_line": shown}
    if not place:
        return InputError("source_refused.nowhere", name=name, error=error, reason=reason, details=details)
    return InputError(
        "source_refused", name=name, place=place, error=error, reason=reason, line=shown.strip(), details=details
    )
