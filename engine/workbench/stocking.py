"""Stores a folder's scripts and schedules in a ledger through the operations, and returns refusals as findings."""

import re
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.recurrence.rule import DstPolicy
from lodger.engine.service.checks.source_check import NOWHERE
from lodger.engine.store.scripts.content import check_json
from lodger.engine.workbench import schedules_file
from lodger.engine.workbench.findings import Finding, nearest, similar
from lodger.engine.workbench.schedules_file import script_names
from lodger.engine.workbench.script_folder import FolderScript, ScriptFolder
from lodger.sandbox.job import ScriptError
from lodger.sandbox.source_faults import Outline, faults
from lodger.sandbox.source_names import unknown_names

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

#: Key of the file that an error of a schedule is about, by the beginning of its code; else the schedule's table.
_KEYS = (("script", "script"), ("version", "version"), ("steps", "script"), ("rule", "rules"), ("params", "params"),
         ("fields", "params"), ("limit", "limits"), ("placement", "placement"))  # fmt: skip
#: The place in an error's message, which a finding has beside it.
_PLACE = re.compile(r"^[^:\n]{0,200}?, line \d+(, column \d+)?: ")
_MISSING = re.compile(r"cannot find module '\.{1,2}/(?:[^']*/)?([^'/]+)'")
#: File in which `lodger init` declares the platform's tables and functions.
TYPES_OF_PLATFORM = "lodger-types/sets.d.ts"
_DECLARED = re.compile(r"^declare const (\w+)", re.MULTILINE)


def store_script(engine: "Engine", tenant_id: str, folder: ScriptFolder, script: FolderScript) -> list[Finding]:
    """Store one script; return why it was refused."""
    settings = folder.file.scripts.get(script.name, {})
    try:
        engine.scripts.put(tenant_id, script.name, script.source, **settings)
    except InputError as error:
        details = error.details
        file = details.get("file")
        shown = script.shown(folder.path, file if isinstance(file, str) else None)
        message = _PLACE.sub("", error.what.removeprefix(f"script {script.name!r} cannot run: "))
        fix = _near_file(folder, message) or _fix(error) or error.why
        return [Finding("error", shown, error.code, message, fix, details.get("line"), details.get("column"))]
    return []


def _fix(error: InputError) -> str:
    """Return what to do about a refused script; nothing is stored unchecked here, which some errors propose."""
    own = {"source_refused": "source_refused.folder", "source_too_costly": "source_too_costly.folder"}
    return InputError(own[error.code]).fix if error.code in own else error.fix


def store_scripts(
    engine: "Engine", tenant_id: str, folder: ScriptFolder, wanted: Iterable[FolderScript] | None = None
) -> list[Finding]:
    """Store every script, or the wanted ones, in the folder's order; return why any were refused."""
    scripts = folder.scripts.values() if wanted is None else wanted
    return [each for script in scripts for each in store_script(engine, tenant_id, folder, script)]


def is_refused(folder: ScriptFolder, script: FolderScript, refused: Iterable[Finding]) -> bool:
    """Whether one of the findings is about a file of a script."""
    files = script.source if isinstance(script.source, dict) else [None]
    return bool({each.file for each in refused} & {script.shown(folder.path, file) for file in files})


def further_mistakes(
    engine: "Engine", tenant_id: str, folder: ScriptFolder, names: Iterable[str], refused: Iterable[Finding]
) -> list[Finding]:
    """Return further faults of refused scripts, each file by itself; a refusal tells one."""
    known = {(each.file, each.line) for each in refused}
    looked_at: set[str] = set()
    found = []
    for script in map(folder.scripts.__getitem__, sorted(names)):
        files = script.source if isinstance(script.source, dict) else {}
        problems = [*faults(files)]
        for file, text in files.items():
            shown = script.shown(folder.path, file)
            if shown not in looked_at and file.endswith((".js", ".ts", ".json")):
                looked_at.add(shown)
                problems += _problems(engine, tenant_id, file, text, entry=file == next(iter(files)))
        for each in problems:
            shown = script.shown(folder.path, each.file)
            if (shown, each.line) not in known:
                known.add((shown, each.line))
                message = f"{each.name}: {each.message}"
                fix = _near_file(folder, message)
                found.append(Finding("error", shown, "source_refused", message, fix, each.line, each.column))
    return found


def _near_file(folder: ScriptFolder, message: str) -> str:
    """Return the advice that names the file of the folder that a missing one is most like; empty without one."""
    wanted = _MISSING.search(message)
    files = [each for each in folder.path.rglob("*.*s*") if each.suffix in {".js", ".ts", ".json"}] if wanted else []
    near = similar(wanted[1], (each.name for each in files[:10_000] if each.name not in message)) if wanted else None
    return "" if near is None else f"did you mean {near}? Import a file by its path from the importing file"


def _problems(engine: "Engine", tenant_id: str, file: str, text: str, *, entry: bool) -> Iterable[ScriptError]:
    """Return the faults of one file, apart from the files that it imports."""
    try:
        if file.endswith(".json"):
            check_json(file, text)
            return ()
        outline = Outline(text)
        for wanted, at, _dynamic in reversed(outline.imports):
            text = text[:at] + NOWHERE + text[at + len(wanted) :]
        ends = "" if entry or outline.has_default else "\nexport default 0"
        problems = engine.scripts.check(tenant_id, {file: text + ends}).problems
        # A module may export any value.
        return problems if entry else [each for each in problems if each.name != "TypeError"]
    except InputError as error:
        return (ScriptError(error.code, error.what, file=file, line=error.details.get("line")),)


def store_stand_in(engine: "Engine", tenant_id: str, folder: ScriptFolder, name: str) -> bool:
    """Store a script that does nothing in place of a refused one, so that its schedules can be checked; return whether that worked."""
    try:
        engine.scripts.put(tenant_id, name, "export default () => 0", force=True, **folder.file.scripts.get(name, {}))
    except InputError:
        return False
    return True


def store_schedule(
    engine: "Engine", tenant_id: str, folder: ScriptFolder, name: str, fields: dict[str, Any]
) -> list[Finding]:
    """Create one schedule, or change it if it exists; return why it was refused."""
    try:
        try:
            before = engine.schedules.get(tenant_id, name)
        except NotFound:
            engine.schedules.create(tenant_id, name, **fields)
        else:
            engine.schedules.edit(tenant_id, name, **whole(fields), revision=before.revision)
    except InputError as error:
        return [finding_of(folder, name, error)]
    return []


def whole(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``schedules.edit`` that give a schedule the state of these keys; absent keys get their default."""
    known = schedules_file.keys("schedules.create")
    defaults = {name: each.default for name, each in known.items() if not each.needed and name != "version"}
    return defaults | fields | ({"dst": fields.get("dst") or DstPolicy()})


def finding_of(folder: ScriptFolder, name: str, error: InputError) -> Finding:
    """Return the error of a schedule as a finding at the key that it is about."""
    key = next((key for start, key in _KEYS if error.code.startswith(start)), "")
    message = f"schedule {name}: {error.what}"
    return folder.file.finding(("schedules", name, key), error.code, message, error.fix or error.why)


def store_schedules(
    engine: "Engine", tenant_id: str, folder: ScriptFolder, refused: Iterable[str] = ()
) -> list[Finding]:
    """Store every readable schedule if its scripts are in the folder and were not refused."""
    found, left_out = list[Finding](), set(refused)
    for name, fields, missing in schedules_of(folder):
        found += missing
        if fields is not None and not left_out.intersection(script_names(fields)):
            found += store_schedule(engine, tenant_id, folder, name, fields)
    return found


def schedules_of(
    folder: ScriptFolder, stored: Container[str] = ()
) -> Iterator[tuple[str, dict[str, Any] | None, list[Finding]]]:
    """Yield each schedule: its name; its keys, None if it lacks one or a script; and findings about scripts that are missing.

    Args:
        stored: names of scripts that the tenant has beside those of the folder and the platform's own.
    """
    needed = [name for name, each in schedules_file.keys("schedules.create").items() if each.needed]
    for name, fields in folder.file.schedules.items():
        own = (each for each in script_names(fields) if each not in stored and not each.startswith("@"))
        missing = [_absent_script(folder, name, each) for each in own if each not in folder.scripts]
        yield name, None if missing or any(each not in fields for each in needed) else fields, missing


def _absent_script(folder: ScriptFolder, schedule: str, script: str) -> Finding:
    """Return the finding about a schedule's script that the folder does not have."""
    what, fix = f"schedule {schedule}: the folder has no script {script!r}", nearest(script, folder.scripts)
    if module := next((each for each in folder.modules if each.rpartition(".")[0] == script), None):
        what = f"schedule {schedule}: {module} exports nothing by default, so it cannot be run"
        fix = f"write export default before the function of {module} to run"
    return folder.file.finding(("schedules", schedule, "script"), "script_unknown", what, fix)


def unknown(folder: ScriptFolder) -> list[Finding]:
    """Return a warning for each global name that a script uses and that neither Lodger nor the platform's types declare."""
    try:
        of_platform = set(_DECLARED.findall((folder.path / TYPES_OF_PLATFORM).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        of_platform = set()
    found: dict[tuple[str, int | None, str], Finding] = {}
    for script in folder.scripts.values():
        for each in unknown_names(script.source, of_platform) if isinstance(script.source, dict) else ():
            file = script.shown(folder.path, each.file)
            fix = "declare or import the name, or correct it; docs/reference/javascript.md names all that a script has"
            warning = Finding("warning", file, "name_unknown", each.message, fix, each.line, each.column)
            found[file, each.line, each.message] = warning
    return list(found.values())


def unused(folder: ScriptFolder) -> list[Finding]:
    """Return an error for each table of settings whose script is not in the folder."""
    return [
        folder.file.finding(("scripts", name), "script_unknown", f"the folder has no script {name!r}")
        for name in folder.file.scripts
        if name not in folder.scripts
    ]
