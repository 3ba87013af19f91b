"""What is said to whoever stores a script that cannot be read: the runtime parses it when it is handed in, in a locked worker."""

import json
import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.store.scripts.content import ENTRY
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.job import Bundle, Job, ScriptError
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.regex_literals import FLAG_V, line_with_flag_v

if TYPE_CHECKING:
    from lodger.engine.service.checks.trial_budget import TrialBudget
    from lodger.sandbox.pool import Pool
    from lodger.sandbox.syntax_check import SyntaxChecker

#: A module that no source can have. What imports it is parsed whole, with all that it imports, and never begins to run.
NOWHERE = "lodger:nowhere"
#: A module of ours beside the author's, which throws at once.
STOP = "lodger:stop"
#: What reading takes at most, whatever the tenant's runs may. An honest source takes a quarter of the CPU time that its length is given.
MIN_CPU_MS, BYTES_A_MS, MAX_WALL_MS, MAX_MEMORY_BYTES = 500, 1024, 30_000, 256 * MIB
#: Letters of the author's line that an error shows.
MAX_CHARACTERS = 200
_DECLARATIONS = tuple(word + after for word in ("import", "export") for after in (" ", "{", "*", "'", '"'))
_UNEXPECTED = re.compile(r"^unexpected .*'(.+)'$", re.DOTALL)
_CONTEXT = '{"action":{},"now_us":0,"grants":[],"datasets":{},"offsets":[]}'


class SourceCheck:
    """Parses scripts beforehand. Costs nothing until the first one; its workers go when no script has come for a while.

    Args:
        settings: of the engine.
        budget: is charged with the CPU time of each check; None charges nothing.
    """

    def __init__(self, settings: Settings, budget: "TrialBudget | None" = None) -> None:
        self._settings = settings
        self._budget = budget
        self._making = threading.Lock()
        self._made: SyntaxChecker | None = None

    @property
    def reader(self) -> "SyntaxChecker":
        """What reads for this engine."""
        from lodger.sandbox.syntax_check import SyntaxChecker

        with self._making:
            if self._made is None:
                self._made = SyntaxChecker(self._pool)
            return self._made

    def close(self) -> None:
        """Let go of what it has started; safe to call twice."""
        if self._made is not None:
            self._made.close()

    def _pool(self) -> "Pool":
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

    def require(self, tenant_id: str, name: str, modules: dict[str, str], limits: Limits) -> str | None:
        """Let a source pass that can be read; give why nobody looked at it, where somebody should have. Blocks while it is read.

        Raises:
            InputError: source_refused, source_too_costly.
        """
        if not self._settings.check_scripts:
            return None  # nobody wants it looked at
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
        """Say why a source could not run; None when it could.

        Raises:
            Unavailable: no worker can be had here, or not behind the walls that this host must have.
        """
        held = replace(
            limits,
            cpu_ms=MIN_CPU_MS + sum(map(len, modules.values())) // BYTES_A_MS,
            wall_ms=MAX_WALL_MS,
            memory_bytes=MAX_MEMORY_BYTES,
        )
        if self._settings.runtime == "quickjs":
            for file, source in modules.items():
                if (line := line_with_flag_v(source)) is not None:
                    return ScriptError("SyntaxError", FLAG_V, file=file, line=line)
        others = [file for file in modules if file != ENTRY]
        if others:
            imports = "".join(f"import {json.dumps('./' + file)};" for file in others)
            # The runtime believes no line of an error that is beyond the entry's last.
            imports += "\n" * max(modules[file].count("\n") for file in others)
            found = self._parsed(tenant_id, modules | {ENTRY: f'{imports}import "{NOWHERE}"; export default 0'}, held)
            if found is not None:
                return found
        text = modules[ENTRY]
        declares = any(line.lstrip().startswith(_DECLARATIONS) for line in text.split("\n"))
        # The runtime's own ways, in its order: what one of them can read, runs.
        if "export" in text:
            module = self._module(tenant_id, modules, held)
            if module is None:
                return self._called(tenant_id, modules, held)
            if _settled(module):
                return module
            body = self._body(tenant_id, modules, held)
            return None if body is None else module if declares else body
        body = self._body(tenant_id, modules, held)
        return self._module(tenant_id, modules, held) if declares and body is not None and not _settled(body) else body

    def _module(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        text = modules[ENTRY]
        return _ahead(self._parsed(tenant_id, modules | {ENTRY: f'{text}\nimport "{NOWHERE}"'}, limits), text)

    def _called(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        # Read in the runtime's own ways, which find out what there is to call, and stopped before its first line: what it imports
        # would begin before that, so an import of ours comes first.
        text = modules[ENTRY]
        stop = f"throw new Error({json.dumps(NOWHERE)});"
        others = len(modules) > 1
        head = f'import "./{STOP}";' if others else stop
        changed = {ENTRY: head + ("//" + text[2:] if text.startswith("#!") else text.removeprefix("\ufeff"))}
        return self._parsed(tenant_id, modules | changed | ({STOP: stop} if others else {}), limits)

    def _body(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        # A snippet is a function's body: one that returns at once is parsed whole, and does nothing.
        text = modules[ENTRY]
        head = "return;" + ("//" + text[2:] if text.startswith("#!") else text)
        return self._parsed(tenant_id, modules | {ENTRY: head}, limits)

    def _parsed(self, tenant_id: str, modules: dict[str, str], limits: Limits) -> ScriptError | None:
        job = Job(Bundle(modules, _CONTEXT), limits, tag="check", tenant=tenant_id)
        try:
            ended = self.reader.read(job)
        except SandboxError as problem:
            raise Unavailable(problem.code, problem.what, why=problem.why, fix=problem.fix) from problem
        except OSError as problem:  # no process, no descriptor, no memory is left
            raise Unavailable("no_worker", "no worker can be had now", why=str(problem), fix="try again") from problem
        if self._budget is not None:
            self._budget.charge(tenant_id, ended.usage.cpu_ms)
        if ended.error is None or NOWHERE in ended.error.message:
            return None
        if ended.outcome is Outcome.COMPILE_ERROR or ended.outcome.blames == "tenant":
            return ended.error
        raise Unavailable(
            "check_failed",
            "the script could not be checked",
            why=f"{ended.outcome.value}: {ended.error.message}",
            fix="try again; lodger doctor says what this host lacks",
        )


def _settled(problem: ScriptError) -> bool:
    """Whether no other way of reading the entry could help."""
    return problem.name != "SyntaxError" or problem.file not in {None, ENTRY}


def _ahead(problem: ScriptError | None, text: str) -> ScriptError | None:
    """Say of what is missed at the end that it is missed on the author's last line, not on the one that was put behind it."""
    last = text.count("\n") + 1
    if problem is None or problem.file != ENTRY or problem.line is None or problem.line <= last:
        return problem
    return replace(problem, line=last, column=len(text.split("\n")[-1]) + 1)


def _column(problem: ScriptError, line: str) -> int | None:
    """Give the column: the parser's are wrong, but it names the token that it did not expect, and where that stands once it is there."""
    token = _UNEXPECTED.search(problem.message)
    if problem.column is not None or token is None or line.count(token[1]) != 1:
        return problem.column
    return line.index(token[1]) + 1


def refused(name: str, modules: dict[str, str], problem: ScriptError) -> InputError:
    """Give the error that shows an author the line."""
    if problem.name == "LimitExceeded":
        return InputError(
            "source_too_costly",
            f"script {name!r} takes too much to read",
            why=problem.message,
            fix="make it smaller and nest it less; force stores it all the same",
        )
    lines = modules.get(problem.file or "", "").split("\n")
    line = problem.line if problem.line and problem.line <= len(lines) else None
    text = "" if line is None else lines[line - 1]
    column = _column(problem, text)
    place = problem.file or ""
    place += f", line {line}" if line else ""
    place += f", column {column}" if line and column else ""
    start = 0 if column is None else max(0, column - MAX_CHARACTERS // 2)
    shown = text[start : start + MAX_CHARACTERS]
    return InputError(
        "source_refused",
        f"script {name!r} cannot run: {place}{': ' if place else ''}{problem.name}: {problem.message[:MAX_CHARACTERS]}",
        why=f"that line is {shown.strip()!r}" if shown.strip() else "the runtime cannot read it",
        fix="mend it and store it again; force stores it all the same",
        file=problem.file,
        line=line,
        column=column,
        source_line=shown,
    )
