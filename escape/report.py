"""Reports of a run for programs: the JSON object of ``lodger escape --json``, and JUnit XML for build servers."""

from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

from lodger.escape.catalogue import title
from lodger.escape.judge import Finding
from lodger.escape.layers import LAYERS
from lodger.escape.runner import attacks, host, matrix_counts, summary


def passed(findings: Iterable[Finding]) -> bool:
    """Return whether no case escaped or failed, and no wall that was tested alone let an attack through."""
    return all(
        found.status in ("contained", "slow", "skipped") and found.only_its_wall != "escaped" for found in findings
    )


def as_json(findings: Sequence[Finding], walls: dict[str, bool]) -> dict[str, Any]:
    """Return the object of ``--json``, which is a stable interface: ``cases``, ``walls``, ``host`` and a summary."""
    alone, seen, tried = matrix_counts(findings)
    return {
        "ok": passed(findings),
        "summary": {
            **summary(findings),
            "triples": len({(found.case.triple, found.runtime) for found in findings}),
            "attacks": attacks(findings),
        },
        "matrix": {"tried": tried, "held_behind_only_its_wall": alone, "escaped_behind_none": seen} if tried else None,
        "cases": [_case(found) for found in findings],
        "walls": walls,
        "host": host(),
    }


def _case(found: Finding) -> dict[str, Any]:
    """Return a finding, JSON-able."""
    case = found.case
    return {
        "id": case.id,
        "class": case.number,
        "class_title": title(case.number),
        "wall": case.wall,
        "mechanism": case.mechanism,
        "story": case.story,
        "runtime": found.runtime,
        "status": found.status,
        "expected": [str(outcome) for outcome in case.expect],
        "outcome": found.outcome,
        "evidence": found.evidence,
        "only_its_wall": found.only_its_wall,
        "no_wall": found.no_wall,
        "notes": list(found.notes),
        "ms": found.ms,
    }


def as_junit(findings: Sequence[Finding]) -> str:
    """Return JUnit XML: an escape is a failure, a wrong outcome an error."""
    counts = summary(findings)
    suite = ElementTree.Element(
        "testsuite",
        name="lodger escape",
        tests=str(len(findings)),
        failures=str(counts["escaped"]),
        errors=str(counts["failed"]),
        skipped=str(counts["skipped"] + counts["slow"]),
        time=f"{sum(found.ms for found in findings) / 1000:.3f}",
    )
    kinds = {"escaped": "failure", "failed": "error", "slow": "skipped", "skipped": "skipped"}
    for found in findings:
        name = xml_text(f"{found.case.id}: {found.case.mechanism}")
        node = ElementTree.SubElement(
            suite, "testcase", classname=f"{found.runtime}.{found.case.wall}", name=name, time=f"{found.ms / 1000:.3f}"
        )
        if found.status in kinds:
            ElementTree.SubElement(node, kinds[found.status], message=xml_text(found.evidence))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def xml_text(text: str) -> str:
    """Return text with characters that XML does not allow replaced by U+FFFD."""
    return "".join(
        char if char in "\n\t" or (char >= " " and not 0xD800 <= ord(char) < 0xE000 and ord(char) < 0xFFFE) else "�"
        for char in text
    )


def by_class(findings: Iterable[Finding]) -> list[tuple[str, str, dict[str, int]]]:
    """Return table rows: class, title, number of cases by status."""
    groups: dict[tuple[str, int], list[Finding]] = {}
    for found in findings:
        groups.setdefault((found.case.letter, found.case.number), []).append(found)
    return [(f"{letter}{number}", title(number), summary(group)) for (letter, number), group in sorted(groups.items())]


def by_wall(findings: Iterable[Finding]) -> list[tuple[str, str, int, int, int, int]]:
    """Return table rows: wall, what it stops, numbers of cases, tested alone, held alone, escaped without."""
    groups: dict[str, list[Finding]] = {}
    for found in findings:
        groups.setdefault(found.case.wall, []).append(found)
    rows = []
    for name, group in sorted(groups.items()):
        alone, seen, tried = matrix_counts(group)
        rows.append((name, LAYERS[name], len(group), tried, alone, seen))
    return rows
