"""``lodger deploy``: shows what would change in a tenant's scripts and schedules, and applies it."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.cli.commands.check import counted, show
from lodger.engine.cli.ledger import opened
from lodger.engine.cli.operations import confirm
from lodger.engine.core.clock import zulu
from lodger.engine.output.result_output import Database, TenantId, Yes, say, write_result
from lodger.engine.workbench import deployment, script_folder
from lodger.engine.workbench.deployment import Step
from lodger.engine.workbench.findings import Finding

#: Maximum number of lines that are shown of one difference.
MAX_LINES = 60
_MARKS = {"create": "+", "change": "~", "delete": "-", "keep": "?"}


def deploy(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the scripts.")],
    tenant: TenantId,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Delete schedules that a deployment of this name made and the folder has no more."
        ),
    ] = False,
    plan_only: Annotated[bool, typer.Option("--plan", help="Show what would change, and change nothing.")] = False,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="Reason of the change, for the audit log.")] = None,
    yes: Yes = False,
    db: Database = None,
) -> None:
    """Store a folder's scripts and schedules for a tenant: the plan is shown, then applied."""
    read = script_folder.read(folder)
    with opened(db) as engine:
        steps, findings = deployment.make_plan(engine, tenant, read, prune=prune)
        writes = [each for each in steps if each.writes]
        show(findings)
        for step in steps:
            for line in step_lines(step):
                say(line)
        if findings or plan_only or not writes:
            _end(read.file.name, steps, [], findings)
            if findings:
                raise typer.Exit(1)
            return
        confirm(f"apply {counted(len(writes), 'change')} to {tenant}", {}, yes=yes)
        applied: list[Step] = []
        deployment.apply(engine, tenant, read, steps, why, applied.append)
    _end(read.file.name, steps, applied, [])


def _end(name: str, steps: list[Step], applied: list[Step], findings: list[Finding]) -> None:
    """Print how many changes of a deployment were applied or are planned, with its steps and findings."""
    write_result({
        "deployment": name, "findings": findings, "steps": steps, "applied": len(applied),
    })  # fmt: skip
    if applied:
        say(f"{counted(len(applied), 'change')} applied")
    elif not findings:
        waiting = sum(each.writes for each in steps)
        say(f"{counted(waiting, 'change')} planned, nothing was changed" if waiting else "nothing to do")


def step_lines(step: Step) -> list[str]:
    """Return a step as lines for people; none if nothing changes."""
    if step.action == "unchanged":
        return []
    what = "is no more in the folder; --prune deletes it" if step.action == "keep" else step.action
    said = [f"{_MARKS[step.action]} {step.kind} {step.name}: {what}"]
    said += [f"    {line}" for line in step.diff[:MAX_LINES]]
    if len(step.diff) > MAX_LINES:
        said.append(f"    … {len(step.diff) - MAX_LINES} more lines")
    for word, slots in (("dropped", step.dropped), ("next" if step.action == "create" else "added", step.added)):
        if slots:
            more = f" … {len(slots)} in all" if len(slots) > deployment.SLOTS else ""
            said.append(f"    {word}: " + ", ".join(zulu(slot) for slot in slots[: deployment.SLOTS]) + more)
    return said
