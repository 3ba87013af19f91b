"""``lodger check``: all findings about a folder of scripts at once, without a server."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lodger.engine.cli.folder import script_folder, stocking
from lodger.engine.cli.folder.findings import LEVELS, Finding
from lodger.engine.cli.folder.script_folder import ScriptFolder
from lodger.engine.cli.output.result_output import AsJson, say, visible, write_json, zulu

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine
    from lodger.engine.store.records import Schedule

#: The tenant of a throw-away ledger.
TENANT = "dev"
Folder = Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder of the scripts.")]
#: Number of slots that are shown of each schedule.
SLOTS = 3


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule of the folder: its rules as a sentence, and its next slots."""

    name: str
    script: str
    text: str
    next: tuple[datetime, ...]


def check(folder: Folder = Path(), as_json: AsJson = False) -> None:
    """Check a folder of scripts: syntax, imports, schedules.toml, rules and grants. Nothing is stored or sent."""
    read = script_folder.read(folder)
    with throw_away(read) as engine:
        findings, planned = examine(engine, read)
    findings = sorted(
        findings, key=lambda each: (LEVELS.index(each.level), each.file, each.line or 0, each.column or 0)
    )
    failed = any(each.level == "error" for each in findings)
    if as_json:
        write_json({"ok": not failed, "findings": findings, "scripts": list(read.scripts), "schedules": planned})
    else:
        show(findings)
        for one in planned:
            slots = ", ".join(zulu(slot) for slot in one.next) or "no slot"
            say(f"{one.name}: runs {one.script}: {one.text}\n  next: {slots}")
        say(
            f"{_count(len(read.scripts), 'script')}, {_count(len(planned), 'schedule')}, {_count(len(findings), 'finding')}"
        )
    if failed:
        raise typer.Exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show(findings: list[Finding]) -> None:
    """Write findings for people."""
    for each in findings:
        say(str(each))
        if each.fix:
            say(f"  fix: {visible(each.fix)}")


@contextmanager
def throw_away(folder: ScriptFolder) -> Iterator["Engine"]:
    """Open an empty ledger with a tenant that has the folder's grants for development; it is removed after the block."""
    from lodger.engine.core.settings import load
    from lodger.engine.service.engine import Engine

    with tempfile.TemporaryDirectory(prefix="lodger-check-") as place:
        settings = load(database=f"{place}/ledger.db", sqlite_synchronous="NORMAL", check_scripts=True)
        with Engine.open(settings.database, settings=settings) as engine:
            engine.tenants.create(TENANT, grants=folder.file.dev.grants, people=folder.file.dev.people)
            yield engine


def examine(engine: "Engine", folder: ScriptFolder) -> tuple[list[Finding], list[Planned]]:
    """Store the folder in a throw-away ledger; return all findings and the schedules that it could store."""
    refused = stocking.store_scripts(engine, TENANT, folder)
    findings = [*folder.findings, *refused, *stocking.unused(folder), *stocking.missing_grants(folder)]
    broken = {script for script in folder.scripts if any(_is_of(folder, script, each) for each in refused)}
    # A script that was refused has its own finding already.
    findings += stocking.store_schedules(engine, TENANT, folder, broken)
    planned = [
        Planned(each.name, each.script, each.text, next_slots(engine, each))
        for each in engine.schedules.list(TENANT, limit=1000)
    ]
    return findings, planned


def _is_of(folder: ScriptFolder, script: str, finding: Finding) -> bool:
    path = folder.scripts[script].path.name
    return finding.file == path or finding.file.startswith(path + "/")


def next_slots(engine: "Engine", schedule: "Schedule", after: datetime | None = None) -> tuple[datetime, ...]:
    """Return the next slots of a schedule, after now by default."""
    rules = schedule.rules
    return engine.schedules.preview(
        rules.rules, exclusions=rules.exclusions, tz=rules.tz, dst=rules.dst, start=rules.start, end=rules.end, after=after,
        n=SLOTS,
    ).slots  # fmt: skip
