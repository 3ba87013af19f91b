"""The report as one self-contained HTML page, without scripts, with every text of an attack escaped."""

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from lodger.escape.case import Case
from lodger.escape.catalogue import CHAPTERS, title
from lodger.escape.judge import Finding
from lodger.escape.report import by_wall, passed, xml_text
from lodger.escape.runner import host, matrix_counts, summary

_LONGEST_SOURCE = 2000


def as_html(findings: Sequence[Finding], walls: dict[str, bool], made: str) -> str:
    """Return the page; ``made`` is the date in words."""
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"clean": xml_text, "source": _source, "counted": _counted}
    folder = files("lodger.escape")
    runtimes = list(dict.fromkeys(found.runtime for found in findings))
    alone, seen, tried = matrix_counts(findings)
    return environment.from_string(folder.joinpath("report.html").read_text("utf-8")).render(
        findings=findings, walls=walls, made=made, host=host(), css=folder.joinpath("report.css").read_text("utf-8"),
        good=passed(findings), counts=summary(findings), alone=alone, seen=seen, tried=tried, by_wall=by_wall(findings),
        bad=[found for found in findings if found.status in ("escaped", "failed") or found.only_its_wall == "escaped"],
        runtimes=runtimes, chapters=_chapters(findings),
        choices=[("runtime", runtimes), ("status", sorted({found.status for found in findings}))],
    )  # fmt: skip


def _chapters(findings: Sequence[Finding]) -> list[tuple[str, str, list[tuple[int, str, list[Finding]]]]]:
    """Return the chapters with their classes, and the runs of each."""
    groups: dict[str, dict[int, list[Finding]]] = {}
    for found in findings:
        groups.setdefault(found.case.letter, {}).setdefault(found.case.number, []).append(found)
    return [
        (letter, CHAPTERS[letter], [(number, title(number), group) for number, group in sorted(classes.items())])
        for letter, classes in sorted(groups.items())
    ]


def _counted(found: Sequence[Finding]) -> dict[str, str]:
    """Return the results of a class on one runtime in words, and the worst of them; nothing without runs."""
    counts = {status: count for status, count in summary(found).items() if count}
    if not counts:
        return {}
    words = ", ".join(str(count) if status == "contained" else f"{count} {status}" for status, count in counts.items())
    worst = next(status for status in ("escaped", "failed", "slow", "contained", "skipped") if status in counts)
    return {"words": words, "worst": worst}


def _source(case: Case) -> str:
    """Return the source of a case for the report, cut if it is long."""
    source = "\n\n".join(f"// {name}\n{text}" for name, text in case.sources().items())
    if len(source) > _LONGEST_SOURCE:
        source = f"{source[:_LONGEST_SOURCE]}\n… {len(source) - _LONGEST_SOURCE} more characters"
    return source
