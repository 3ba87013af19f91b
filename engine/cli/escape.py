"""``lodger escape``: attacks this host's walls with the whole suite and reports which walls held."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lodger.engine.core.errors import Usage
from lodger.engine.output.progress import bar
from lodger.engine.output.result_output import is_for_program, say, table, write_result

if TYPE_CHECKING:
    from lodger.escape.case import Case
    from lodger.escape.judge import Finding
    from lodger.escape.runner import Suite

_RUNTIMES = ("quickjs", "quickjs-native", "wasm", "engine")


def escape(
    runtime: Annotated[str | None, typer.Option(help="Run only cases of this runtime.")] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class", metavar="C", help="Run only this class (such as 16) or chapter (such as B); may be repeated."
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="ID", help="Run only cases with this id or prefix of an id; may be repeated."),
    ] = None,
    wall: Annotated[str | None, typer.Option(help="Run only cases against this wall.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run one attack of each class: a first look at a host, in seconds.")
    ] = False,
    extra: Annotated[
        Path | None,
        typer.Option("--with", metavar="FILE", help="Also run your own attacks: a Python file that defines CASES."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the cases without running them.")] = False,
) -> None:
    """Run attacks against the sandbox of this host; exit 1 if an attack escaped or had a wrong outcome."""
    from lodger.escape.runner import Suite

    chosen = choose(runtime, classes, ids, wall, extra)
    if quick:
        first: dict[int, Case] = {}
        for case in chosen:
            first.setdefault(case.number, case)
        chosen = tuple(first.values())
    if listed:
        _list(chosen)
        return
    run(Suite, chosen, (runtime,) if runtime else None, html=html, junit=junit)


def choose(
    runtime: str | None, classes: list[str] | None, ids: list[str] | None, wall: str | None, extra: Path | None
) -> "tuple[Case, ...]":
    """Return the cases that match the filters. Raises Usage if there is none."""
    from lodger.escape.cases import all_cases

    if runtime is not None and runtime not in _RUNTIMES:
        raise Usage("runtime_unknown", runtime=runtime, runtimes=_RUNTIMES)
    everything = all_cases() + (_own(extra) if extra is not None else ())
    chosen = tuple(case for case in everything if _wanted(case, classes, ids, wall))
    if runtime is not None:
        chosen = tuple(case for case in chosen if runtime in case.runtimes)
    if not chosen:
        raise Usage("no_case")
    return chosen


def run(
    kind: "type[Suite]",
    cases: "Sequence[Case]",
    runtimes: tuple[str, ...] | None = None,
    *,
    times: int = 1,
    html: Path | None,
    junit: Path | None,
) -> None:
    """Run cases and write their findings; exit 1 if an attack escaped.

    Args:
        kind: the suite's class.
        cases: the cases to run.
        runtimes: the runtimes to attack, by default the installed ones.
        times: number of findings per case, for progress.
        html: path of the HTML page.
        junit: path of the JUnit XML.
    """
    from lodger.escape.arena import installed_runtimes
    from lodger.escape.report import as_json as body
    from lodger.escape.report import passed

    if html is not None and find_spec("jinja2") is None:
        raise Usage("extra_missing.page")
    for place in (html, junit):
        if place is not None:
            _writable(place)
    suite = _attack(kind, cases, runtimes or installed_runtimes(), times=times)
    _write(suite, html, junit)
    write_result(body(suite.findings, suite.walls))
    _show(suite)
    if not passed(suite.findings):
        raise typer.Exit(1)


def _wanted(case: "Case", classes: list[str] | None, ids: list[str] | None, wall: str | None) -> bool:
    """Whether a case is chosen by class, id and wall."""
    if classes and not {case.letter, str(case.number), f"{case.letter}{case.number}"} & {
        text.upper() for text in classes
    }:
        return False
    if ids and not any(case.id.startswith(text) for text in ids):
        return False
    return wall is None or wall == case.wall or wall in {case.at(runtime).wall for runtime in case.runtimes}


def _writable(place: Path) -> None:
    """Check before the attacks that the report files can be written."""
    try:
        with place.open("a", encoding="utf-8"):
            pass
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        raise Usage("not_writable", place=place, reason=why) from None


def _own(path: Path) -> "tuple[Case, ...]":
    """Load the attacks of a tester's own Python file, its ``CASES``."""
    import runpy

    if not path.is_file():
        raise Usage("file_missing.cases", path=str(path))
    try:
        found = runpy.run_path(str(path)).get("CASES")
    except Exception as problem:
        why = f"{type(problem).__name__}: {problem}"
        raise Usage("attacks_broken", path=path, reason=why) from problem
    if not found:
        raise Usage("no_cases", path=path)
    from lodger.escape.case import Case

    if wrong := [one for one in found if not isinstance(one, Case)]:
        raise Usage("no_cases.type", path=path, value=wrong[0])
    return tuple(found)


def _attack(kind: "type[Suite]", cases: "Sequence[Case]", runtimes: tuple[str, ...], *, times: int) -> "Suite":
    """Run attacks on these runtimes with a progress bar; return the suite with its findings."""
    import asyncio

    runs, done = sum(runtime in case.runtimes for case in cases for runtime in runtimes), count(1)
    reported: set[str] = set()
    with bar("attacking", f"of {runs * times} runs") as advance:

        def show_finding(found: "Finding") -> None:
            """Move the bar on, and print a case that has escaped or failed."""
            advance(next(done))
            if found.status in ("escaped", "failed") and found.case.id not in reported and not is_for_program():
                reported.add(found.case.id)
                sys.stderr.write(f"{found.status:10} {found.case.id}\n")

        suite = kind(tuple(cases), runtimes=runtimes, progress=show_finding)
        asyncio.run(suite.run())
    return suite


def _write(suite: "Suite", html: Path | None, junit: Path | None) -> None:
    """Write the findings as HTML and JUnit files."""
    if html is not None:
        from datetime import UTC, datetime

        from lodger.engine.core.clock import SystemClock
        from lodger.escape.html_report import as_html

        made = datetime.fromtimestamp(SystemClock().now_us() // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
        html.write_text(as_html(suite.findings, suite.walls, made), "utf-8")
    if junit is not None:
        from lodger.escape.report import as_junit

        junit.write_text(as_junit(suite.findings), "utf-8")


def _list(cases: "Sequence[Case]") -> None:
    """Print the list of cases without running them."""
    names = ("id", "class", "wall", "mechanism", "runtimes")
    found = [(case.id, case.number, case.wall, case.mechanism, list(case.runtimes)) for case in cases]
    write_result({"cases": [dict(zip(names, each, strict=True)) for each in found]})
    rows = ((name, " ".join(runtimes), wall, mechanism) for name, _class, wall, mechanism, runtimes in found)
    table(("case", "runtimes", "wall", "mechanism"), rows)


def _show(suite: "Suite") -> None:
    """Print the findings for people."""
    from lodger.escape.report import by_class
    from lodger.escape.runner import attacks, matrix_counts, summary

    findings = suite.findings
    table(
        ("class", "attacks by", "came to"),
        [(number, what, _counted(counts)) for number, what, counts in by_class(findings)],
    )
    for found in findings:
        # An attack that escapes behind no wall at all proves that the case can see; one that does not is shown, too.
        if (
            found.status in ("escaped", "failed", "slow")
            or found.only_its_wall == "escaped"
            or found.no_wall == "contained"
        ):
            _show_one(found)
    variants = len({found.case.id for found in findings})
    what = f"{len(findings)} runs: {attacks(findings)} attacks in {variants} variants"
    say(f"{_counted(summary(findings))} of {what}")
    if any(found.status == "slow" for found in findings):
        say("slow: this host gave too little time for a verdict; run these again when it is quiet")
    alone, seen, tried = matrix_counts(findings)
    if tried:
        say(f"matrix: {alone} of {tried} were contained by their wall alone, {seen} of {tried} escaped without it")
    missing = [name for name, stands in suite.walls.items() if not stands]
    if missing:
        say(f"missing walls: {', '.join(missing)}; lodger doctor shows how to fix this")


def _counted(counts: dict[str, int]) -> str:
    """Return counts by status in words, such as ``40 held, 1 skipped``."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _show_one(found: "Finding") -> None:
    case: Any = found.case
    say(f"{found.status.upper():9} {case.id}  wall {case.wall}, ended as {found.outcome}")
    say(f"          {case.story} ({case.mechanism})")
    say(f"          {found.evidence}")
    for note in found.notes:
        say(f"          {note}")
    say(f"          again: lodger escape --case {case.id} --runtime {found.runtime}")
