"""Changes of a ledger that give it the scripts and schedules of a folder: compared first, then applied by the operations."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from lodger.engine.core.access.grants import parse
from lodger.engine.core.errors import NotFound
from lodger.engine.core.params import dump_fields, read_fields
from lodger.engine.store.records import Schedule, ScriptVersion
from lodger.engine.store.scripts import differences
from lodger.engine.workbench import schedules_file, stocking
from lodger.engine.workbench.findings import Finding
from lodger.engine.workbench.script_folder import FolderScript, ScriptFolder

if TYPE_CHECKING:
    from lodger.engine.sync import Engine

#: Begins the reason of every change that a deployment makes; its name follows.
MARK = "lodger deploy "
#: Maximum number of slots that are shown of each change.
SLOTS = 5
_DETAILS = ("create", "change", "delete")


@dataclass(frozen=True, slots=True)
class Step:
    """One object of a plan.

    Attributes:
        action: create, change, delete, unchanged, or keep: made by this deployment, and not in the folder any more.
        kind: script or schedule.
        seen: version or revision that was compared; 0 if it does not exist.
        diff: the changes, as lines.
        dropped, added: slots that a change of rules drops and adds within 31 days.
        id: of a schedule that exists: another one may get its name.
    """

    action: str
    kind: str
    name: str
    seen: int
    diff: tuple[str, ...] = ()
    dropped: tuple[datetime, ...] = ()
    added: tuple[datetime, ...] = ()
    id: str | None = None

    @property
    def writes(self) -> bool:
        """Whether applying this step changes the ledger."""
        return self.action in _DETAILS


def make_plan(
    engine: "Engine", tenant_id: str, folder: ScriptFolder, *, prune: bool
) -> tuple[list[Step], list[Finding]]:
    """Compare a folder with a tenant's scripts and schedules; nothing is written.

    Returns:
        The steps in the order in which they are applied, and the findings that prevent that.
    """
    tz = engine.tenants.get(tenant_id).tz
    findings = [each for each in (*folder.findings, *stocking.unused(folder)) if each.level == "error"]
    stored = {each.name for each in engine.scripts.list(tenant_id)}
    steps = list(_scripts(engine, tenant_id, folder, stored))
    existing = {each.name: each for each in engine.schedules.list(tenant_id)}
    for name, fields, missing in stocking.schedules_of(folder, stored):
        findings += missing
        if fields is not None:
            wanted = fields if schedules_file.rules_of(fields).names_zone else {**fields, "tz": tz}
            steps.append(_schedule(engine, tenant_id, name, wanted, existing.get(name)))
    for name, schedule in existing.items():
        if name not in folder.file.schedules and is_made_by(engine, schedule, folder.file.name):
            action, diff = "delete" if prune else "keep", (f"- {schedule.text}",)
            steps.append(Step(action, "schedule", name, schedule.revision, diff, id=schedule.id))
    return steps, findings


def is_made_by(engine: "Engine", schedule: Schedule, deployment: str) -> bool:
    """Whether a deployment of this name created a schedule: the reason of its first revision says so."""
    revisions = engine.schedules.revisions(schedule.tenant_id, schedule.id)
    first = revisions[-1] if revisions else None
    return first is not None and first.revision == 1 and (first.why or "").split(": ")[0] == MARK + deployment


def _scripts(engine: "Engine", tenant_id: str, folder: ScriptFolder, stored: set[str]) -> Iterator[Step]:
    """Yield the step for each script of a folder; ``stored`` has the names of the tenant's scripts."""
    changed: set[str] = set()
    for script in folder.scripts.values():
        current = engine.scripts.get(tenant_id, script.name) if script.name in stored else None
        step = _script(engine, folder, script, current, changed)
        if step.writes:
            changed.add(script.name)
        yield step


def _script(
    engine: "Engine", folder: ScriptFolder, script: FolderScript, current: ScriptVersion | None, changed: set[str]
) -> Step:
    """Return the step for one script. ``changed`` has the scripts whose steps write: those that import them get a new version, too."""
    if current is None:
        return Step("create", "script", script.name, 0, _size(script))
    diff = [*_content(engine, script, current), *_settings(folder, script, current)]
    for start, version in current.uses.items():
        other = start.removeprefix("../")
        if start != other and (other in changed or engine.scripts.get(current.tenant_id, other).version != version):
            diff.append(f"~ imports a new version of {other}")
    return Step("change" if diff else "unchanged", "script", script.name, current.version, tuple(diff))


def _size(script: FolderScript) -> tuple[str, ...]:
    """Return the size of a new script in words."""
    if isinstance(script.source, bytes):
        return (f"+ {len(script.source)} bytes of WebAssembly",)
    files = script.source
    return tuple(f"+ {file}: {text.count(chr(10)) + 1} lines" for file, text in files.items())


def _content(engine: "Engine", script: FolderScript, current: ScriptVersion) -> Iterator[str]:
    """Yield the lines in which a script differs from the stored version."""
    if isinstance(script.source, bytes):
        same = current.wasm_bytes == len(script.source)
        if not same or engine.scripts.module(current.tenant_id, current.name, current.version) != script.source:
            yield f"~ {len(script.source)} bytes of WebAssembly"
        return
    files = script.source
    single, stored = (
        [(PurePosixPath(name).suffix, text) for name, text in each.items()] for each in (files, current.modules)
    )
    if len(single) == 1 and single == stored:
        return  # a single file is the same under the name that a folder gives it, in its language
    for each in differences.of_files(current.modules, files):
        yield f"~ {each.file} ({each.state})"
        yield from each.text.split("\n")


def _settings(folder: ScriptFolder, script: FolderScript, current: ScriptVersion) -> Iterator[str]:
    """Yield the settings of a script that differ."""
    wanted = settings_of(folder, script.name)
    grants = None if wanted["grants"] is None else list(parse(wanted["grants"]).shown())
    held = None if current.grants is None else list(current.grants)
    for name, old, new in (
        ("grants", held, grants),
        ("params", current.fields, dump_fields(read_fields(wanted["params"]))),
    ):
        if old != new:
            yield f"~ {name}: {old} → {new}"


def settings_of(folder: ScriptFolder, name: str) -> dict[str, Any]:
    """Return the settings of a script; absent ones have their default."""
    return {"grants": None, "params": None} | folder.file.scripts.get(name, {})


def _schedule(engine: "Engine", tenant_id: str, name: str, fields: Mapping[str, Any], current: Schedule | None) -> Step:
    """Return the step for one schedule of the folder; ``current`` is the stored one, None if there is none."""
    wanted = schedules_file.normal(fields, None if current is None else current.rules)
    if current is None:
        shown = engine.schedules.preview(**schedules_file.rules_of(fields).arguments, n=SLOTS)
        return Step("create", "schedule", name, 0, (f"+ {shown.text}",), (), shown.slots)
    before = schedules_file.normal_record(current)
    diff = [
        f"~ {key}: {_short(before.get(key))} → {_short(value)}"
        for key, value in wanted.items()
        if before.get(key) != value
    ]
    dropped: tuple[datetime, ...] = ()
    added: tuple[datetime, ...] = ()
    if before["rules"] != wanted["rules"]:
        shown_change = engine.schedules.what_if(tenant_id, name, **schedules_file.rules_of(fields).arguments)
        diff = [line for line in diff if not line.startswith("~ rules")]
        diff += [f"- {shown_change.before}", f"+ {shown_change.after}"]
        dropped, added = shown_change.dropped, shown_change.added
    return Step("change" if diff else "unchanged", "schedule", name, current.revision, tuple(diff), dropped, added)


def _short(value: object) -> str:
    """Return the beginning of a value's text."""
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def apply(
    engine: "Engine",
    tenant_id: str,
    folder: ScriptFolder,
    steps: list[Step],
    why: str | None,
    done: Callable[[Step], None],
) -> None:
    """Apply a plan's steps. Each is refused if the object has changed since the plan was made; steps applied before stay.

    Args:
        why: the reason, which follows the deployment's name.
        done: called after each step that wrote.

    Raises:
        Conflict: changed_meanwhile, schedule_exists.
        InputError: what an operation refused.
    """
    reason = MARK + folder.file.name + (f": {why}" if why else "")
    for step in steps:
        if step.kind == "script" and step.writes:
            source, settings = folder.scripts[step.name].source, settings_of(folder, step.name)
            engine.scripts.put(tenant_id, step.name, source, after_version=step.seen, why=reason, **settings)
            done(step)
    for step in steps:
        if step.kind != "schedule" or not step.writes:
            continue
        fields = folder.file.schedules.get(step.name, {})
        if step.action == "create":
            engine.schedules.create(tenant_id, step.name, **fields, why=reason)
        elif step.action == "change":
            engine.schedules.edit(tenant_id, step.name, **stocking.whole(fields), revision=step.seen, why=reason)
        else:
            with suppress(NotFound):
                engine.schedules.delete(tenant_id, step.id or step.name, revision=step.seen)
        done(step)
