"""``lodger check``: all findings about a folder of scripts at once, without a server."""

from pathlib import Path
from typing import Annotated

import typer

from lodger.engine.core.clock import zulu
from lodger.engine.core.plain_text import visible
from lodger.engine.output.result_output import say, write_result
from lodger.engine.workbench import script_folder
from lodger.engine.workbench.check import examine, throw_away
from lodger.engine.workbench.findings import Finding

Folder = Annotated[Path, typer.Argument(metavar="[DIR]", help="Folder of the scripts.")]


def check(folder: Folder = Path()) -> None:
    """Check a folder of scripts: syntax, imports, schedules.toml, rules and grants. Nothing is stored or sent."""
    read = script_folder.read(folder)
    with throw_away(read) as engine:
        findings, planned = examine(engine, read)
    findings.sort(key=lambda each: (each.level != "error", each.file, each.line or 0, each.column or 0))
    failed = any(each.level == "error" for each in findings)
    write_result({"ok": not failed, "findings": findings, "scripts": list(read.scripts), "schedules": planned})
    show(findings)
    for one in planned:
        slots = ", ".join(zulu(slot) for slot in one.next) or "no slot"
        say(f"{one.name}: runs {one.script}: {one.text}", f"  next: {slots}")
    say(
        f"{counted(len(read.scripts), 'script')}, {counted(len(planned), 'schedule')}, {counted(len(findings), 'finding')}"
    )
    if failed:
        raise typer.Exit(1)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def show(findings: list[Finding]) -> None:
    """Write findings for people."""
    for each in findings:
        say(str(each))
        if each.fix:
            say(f"  fix: {visible(each.fix)}")
