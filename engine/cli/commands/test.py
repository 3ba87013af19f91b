"""``lodger test``: runs the tests of a folder of scripts and shows what failed."""

import difflib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lodger.engine.cli.commands.check import Folder, show
from lodger.engine.cli.platform import File, functions
from lodger.engine.core.errors import Usage
from lodger.engine.output import script_files
from lodger.engine.output.result_output import say, write_result
from lodger.engine.workbench import script_folder
from lodger.engine.workbench.script_folder import ScriptFolder


def run(
    folder: Folder = Path(),
    only: Annotated[
        str | None, typer.Option("--only", metavar="TEXT", help="Run only cases with this text in their file or name.")
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Send requests without a recording, and write the responses beside the test."),
    ] = False,
    platform: File = None,
) -> None:
    """Run the tests (NAME.test.js, NAME.test.ts) of a folder of scripts: real sandbox, fake time, seeded data, recorded responses."""
    from lodger.engine.workbench.cases import recordings_of, run_tests

    read = script_folder.read(folder)
    if not read.tests:
        raise Usage("tests_missing", folder=str(folder))
    done = run_tests(read, only, live=record, functions=functions(platform))
    written = []
    for path, received in done.received.items():
        if received:
            place = recordings_of(path)
            before = json.loads(place.read_text()) if place.exists() else []
            text = json.dumps([*before, *received], indent=2, ensure_ascii=False) + "\n"
            script_files.put(place.parent, place.name, text.encode())
            written.append(place.name)
    failed = [case for case in done.cases if case.failures]
    broken = any(each.level == "error" for each in done.findings)
    write_result({
        "ok": not failed and not broken, "passed": len(done.cases) - len(failed), "failed": len(failed),
        "findings": done.findings, "recorded": written,
        "cases": [
            {"file": case.path.name, "name": case.name, "ok": not case.failures, "failures": case.failures}
            for case in done.cases
        ],
    })  # fmt: skip
    show(done.findings)
    for case in done.cases:
        say(f"{'failed' if case.failures else 'ok':6}  {case.key}")
        for each in case.failures:
            _show(read, case.path, each)
    for name in written:
        say(f"written: {name}")
    say(f"{len(done.cases) - len(failed)} passed, {len(failed)} failed")
    if failed or broken:
        raise typer.Exit(1)


def _show(folder: ScriptFolder, path: Path, failure: dict[str, Any]) -> None:
    """Print a failure of a test."""
    from lodger.engine.core.plain_text import code_frame

    script = folder.scripts.get(str(failure.get("script")))
    shown = script.shown(folder.path, failure.get("file")) if script else path.name
    line, column = failure.get("line"), failure.get("column")
    say(f"  {shown}{f':{line}' if line else ''}: {failure['message']}")
    text = script.text(failure.get("file")) if script else path.read_text(encoding="utf-8", errors="replace")
    for each in code_frame(text, line, column):
        say(f"  {each}")
    if failure.get("fix"):
        say(f"    fix: {failure['fix']}")
    if "expected" in failure and "actual" in failure:
        expected, actual = failure["expected"].split("\n")[:200], failure["actual"].split("\n")[:200]
        for each in list(difflib.unified_diff(expected, actual, "expected", "actual", lineterm="", n=2)):
            if not each.startswith("@@"):
                say(f"    {each.rstrip()}")
