"""All findings about a folder of scripts at once, in a ledger that is thrown away."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lodger.engine.workbench import stocking
from lodger.engine.workbench.findings import Finding
from lodger.engine.workbench.script_folder import ScriptFolder

if TYPE_CHECKING:
    from lodger.engine.store.records import Schedule
    from lodger.engine.sync import Engine

#: The tenant of a throw-away ledger.
TENANT = "dev"
#: Number of slots that are shown of each schedule.
SLOTS = 3


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule of the folder: its rules as a sentence, and its next slots."""

    name: str
    script: str
    text: str
    next: tuple[datetime, ...]


@contextmanager
def throw_away(folder: ScriptFolder) -> Iterator["Engine"]:
    """Open an empty ledger with a tenant that has the folder's grants for development; it is removed after the block."""
    from lodger.engine.core.settings import load
    from lodger.engine.sync import Engine

    with tempfile.TemporaryDirectory(prefix="lodger-check-") as place:
        settings = load(database=f"{place}/ledger.db", sqlite_synchronous="NORMAL", check_scripts=True)
        with Engine.open(settings.database, settings=settings) as engine:
            engine.tenants.create(TENANT, grants=folder.file.dev.grants, people=folder.file.dev.people)
            yield engine


def examine(engine: "Engine", folder: ScriptFolder) -> tuple[list[Finding], list[Planned]]:
    """Store the folder in a throw-away ledger; return all findings and the schedules that it could store."""
    refused = stocking.store_scripts(engine, TENANT, folder)
    broken = {script.name for script in folder.scripts.values() if stocking.is_refused(folder, script, refused)}
    refused += stocking.further_mistakes(engine, TENANT, folder, broken, refused)
    findings = [*folder.findings, *refused, *stocking.unused(folder)]
    told = {(each.file, each.line) for each in refused}
    findings += [each for each in stocking.unknown(folder) if (each.file, each.line) not in told]
    # A script that was refused has its own finding already; its schedules are checked all the same.
    without = {name for name in broken if not stocking.store_stand_in(engine, TENANT, folder, name)}
    findings += stocking.store_schedules(engine, TENANT, folder, without)
    planned = [
        Planned(each.name, each.script, each.text, next_slots(engine, each))
        for each in engine.schedules.list(TENANT, limit=1000)
    ]
    return findings, planned


def next_slots(engine: "Engine", schedule: "Schedule", after: datetime | None = None) -> tuple[datetime, ...]:
    """Return the next slots of a schedule, after now by default."""
    return engine.schedules.preview(**schedule.rules.arguments, after=after, n=SLOTS).slots
