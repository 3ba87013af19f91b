"""A folder of scripts at work on a virtual clock: a throw-away ledger, real workers, and reports of events."""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lodger.engine.core.access import names
from lodger.engine.core.clock import from_us, zulu
from lodger.engine.core.errors import InputError, Usage
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim
from lodger.engine.core.functions import PlatformFunction
from lodger.engine.core.plain_text import code_frame
from lodger.engine.effects.finished import Finished
from lodger.engine.service.effect_diff import lines
from lodger.engine.store.records import Schedule
from lodger.engine.testing import Stage
from lodger.engine.testing.recordings import Recordings
from lodger.engine.workbench import script_folder, stocking
from lodger.engine.workbench.cases import SEED, SEEDING, read_recordings
from lodger.engine.workbench.check import TENANT
from lodger.engine.workbench.findings import Finding, similar
from lodger.engine.workbench.script_folder import ScriptFolder
from lodger.sandbox.job import LogLine

#: One report: its ``kind`` is run, log, skipped, reload, finding or time.
Report = dict[str, Any]
#: How far ahead the next slot is looked for.
HORIZON = timedelta(days=366 * 20)


class DevSession:
    """One folder on one stage.

    Args:
        report: called with each report as it happens; log lines come from the stage's thread.
    """

    def __init__(
        self, stage: Stage, folder: ScriptFolder, way_out: Recordings, report: Callable[[Report], None]
    ) -> None:
        self._stage = stage
        self._way_out = way_out
        self._report = report
        self._stamp: object = None
        self._names: dict[str, str] = {}
        self.folder = folder

    @property
    def now(self) -> datetime:
        """Return the present instant of the virtual clock."""
        return self._stage.now

    def begin(self) -> None:
        """Store the folder's scripts and schedules, and the data of [dev]."""
        dev, engine = self.folder.file.dev, self._stage.engine
        engine.tenants.create(TENANT, grants=dev.grants, people=dev.people)
        engine.scripts.put(TENANT, SEED, SEEDING, force=True)
        if dev.collections or dev.kv:
            made = engine.run_at(TENANT, SEED, self.now, {"rows": dev.collections, "kv": dev.kv})
            self._stage.settle()
            ended = engine.actions.get(TENANT, made.id)
            if ended.error is not None:
                what = f"the data of [dev] cannot be stored: {ended.error.message}"
                self._found(Finding("error", "schedules.toml", "seed_refused", what))
        self._stage.engine.on_event(self._happened)
        self._stamp = stamp(self.folder.path)
        self._store(set(self.folder.scripts), None)

    def _store(self, changed: set[str], before: ScriptFolder | None) -> None:
        """Store changed scripts with those that import them, and changed schedules; report new versions, and refusals."""
        engine, folder = self._stage.engine, self.folder
        old = {each.name: each.version for each in engine.scripts.list(TENANT)}
        refused = stocking.store_scripts(
            engine, TENANT, folder, [script for script in folder.scripts.values() if script.name in changed]
        )
        stored = {each.name: each.version for each in engine.scripts.list(TENANT)}
        for script, version in stored.items() if before is not None else ():
            if old.get(script) != version:
                self._tell("reload", script=script, version=version)
        for name, fields, found in stocking.schedules_of(folder, stored):
            if before is not None and folder.file.schedules[name] == before.file.schedules.get(name):
                continue
            if fields is not None:
                found = stocking.store_schedule(engine, TENANT, folder, name, fields)
                if before is not None and not found:
                    self._tell("reload", schedule=name)
            refused += found
        for each in self.schedules():
            if each.name not in folder.file.schedules and not folder.findings:
                engine.schedules.delete(TENANT, each.name)
                self._tell("reload", schedule=each.name, deleted=True)
        for finding in (*folder.findings, *refused):
            self._found(finding)
        self._names = {each.id: each.name for each in self.schedules()}
        self._give_recordings()

    def _tell(self, kind: str, at: datetime | None = None, **more: Any) -> None:
        """Report something that happened, by default now."""
        self._report({"kind": kind, "at": zulu(at or self.now)} | more)

    def _found(self, finding: Finding) -> None:
        """Report a finding about the folder."""
        self._report({"kind": "finding"} | asdict(finding))

    def _give_recordings(self) -> None:
        """Read the folder's recorded responses (NAME.fetches.json), and hand them to the object that answers requests."""
        recordings: list[dict[str, Any]] = []
        for path in sorted(self.folder.path.glob("*.fetches.json")):
            try:
                recordings += read_recordings(path)
            except (OSError, ValueError) as error:
                self._found(Finding("error", path.name, "recording_invalid", str(error)))
        self._way_out.give(TENANT, recordings)

    def reload(self, at: datetime | None = None) -> bool:
        """Store changes of the folder since the last look; return whether there are any. A refused change leaves the old version.

        Args:
            at: instant to which time passes before that; now by default.
        """
        now = stamp(self.folder.path)
        if now == self._stamp:
            return False
        self._stamp = now
        if at is not None:
            self.go_to(at)
        before, self.folder = self.folder, script_folder.read(self.folder.path)
        settings, settings_before = self.folder.file.scripts, before.file.scripts
        changed = {
            name
            for name, script in self.folder.scripts.items()
            if script != before.scripts.get(name) or (name in settings and settings[name] != settings_before.get(name))
        }
        self._store(changed, before)
        return True

    # ---- time

    def schedules(self) -> list[Schedule]:
        """Return the schedules, by their next slot."""
        found = self._stage.engine.schedules.list(TENANT, limit=1000)
        return sorted(found, key=lambda each: (each.next_at is None, each.next_at or self.now, each.name))

    def next_due(self) -> datetime | None:
        """Return the next instant at which something happens."""
        return self._stage.next_due(self.now + HORIZON)

    def step(self) -> bool:
        """Go to the next instant at which something happens; return False if there is none."""
        due = self.next_due()
        if due is not None:
            self.go_to(due)
        return due is not None

    def go_to(self, instant: datetime) -> None:
        """Let time pass until an instant, and everything happen on the way."""
        self._stage.advance_to(max(instant, self.now))

    def run_now(self, name: str) -> None:
        """Run a schedule, or a script without params, now.

        Raises:
            InputError: there is none of this name.
        """
        if name in self._names.values():
            self._stage.engine.actions.run_now(TENANT, name)
        elif name not in self.folder.scripts:
            known = [*self._names.values(), *self.folder.scripts]
            raise InputError("script_unknown.folder_either", name=name, near=similar(name, known))
        else:
            self._stage.engine.run_at(TENANT, name, self.now)
        self._stage.settle()

    # ---- what happens

    def log(self, claim: Claim, line: LogLine) -> None:
        """Report a line of a running script."""
        self._tell("log", from_us(claim.started_us), script=claim.script_name, level=line.level, text=line.text)

    def _happened(self, event: Event) -> None:
        """Report an event of the engine to the listener of the session."""
        details, schedule = event.details, self._names.get(event.schedule_id or "")
        finished = details.get("finished")
        if event.kind == "finished" and isinstance(finished, Finished):
            self._report(self._run(event, finished, schedule))
        elif event.kind == "skipped":
            self._tell("skipped", from_us(details["slot_us"]), schedule=schedule, reason=details.get("reason"))

    def _run(self, event: Event, finished: Finished, schedule: str | None) -> Report:
        """Return the report of a run that has ended."""
        details = event.details
        slot, name = details.get("slot_us"), str(details["script"])
        error: dict[str, Any] | None = None
        if finished.error is not None:
            script, shown = self.folder.scripts.get(name), finished.error
            error = {part: getattr(shown, part) for part in ("name", "message", "line", "column")}
            error["file"] = script and script.shown(self.folder.path, shown.file)
            error["frame"] = code_frame(script.text(shown.file), shown.line, shown.column) if script else []
        return {
            "kind": "run", "at": zulu(from_us(event.at_us)), "schedule": schedule, "script": name,
            "slot": zulu(from_us(slot)) if isinstance(slot, int) else None, "outcome": str(details["outcome"]),
            "attempt": details["attempt"], "result": None if finished.result is None else json.loads(finished.result), "error": error,
            "retry_at": zulu(from_us(details["retry_at_us"])) if details.get("retry_at_us") else None,
            "effects": list(finished.effects), "diff": lines(finished.effects), "took_ms": round(finished.usage.wall_ms, 1),
        }  # fmt: skip


@contextmanager
def open_session(
    path: Path,
    start: datetime,
    report: Callable[[Report], None],
    *,
    allow_fetch: bool,
    functions: Iterable[PlatformFunction] = (),
) -> Iterator[DevSession]:
    """Open a session on a throw-away ledger for the block.

    Args:
        functions: what scripts may call of a platform; a call is a request, which a recording answers or ``allow_fetch`` lets go.

    Raises:
        Usage: folder_missing, folder_empty.
    """
    from lodger.engine.core.settings import load

    folder = script_folder.read(path)
    if not folder.scripts and not folder.findings:
        raise Usage("folder_empty", path=path)
    way_out = Recordings(load(), live=allow_fetch)
    made: list[DevSession] = []
    with Stage(
        at=start, way_out=way_out, on_log=lambda claim, line: made[0].log(claim, line), check_scripts=True
    ) as stage:
        for each in functions:
            stage.engine.put_function(each)
        made.append(DevSession(stage, folder, way_out, report))
        made[0].begin()
        yield made[0]


def stamp(path: Path) -> object:
    """Return a value that differs when a file of the folder has changed."""
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(each for each in folders if not names.is_of_tools(each))
        for each in (Path(folder, name) for name in sorted(files) if not name.startswith(".")):
            with contextlib.suppress(OSError):
                about = each.stat()
                found.append((str(each), about.st_mtime_ns, about.st_size))
    return tuple(found)
