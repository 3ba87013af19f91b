"""The tables of docs/policies.md say what the code does."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lodger.engine.policy.budget_table import ALLOWANCES
from lodger.engine.policy.defaults import POLICIES
from lodger.engine.policy.plan import (
    Gap,
    MissedKind,
    Overlap,
    Run,
    SlotPolicies,
    Step,
    UnfinishedCounts,
    parse_missed,
    parse_overlap,
    plan,
)
from lodger.engine.recurrence.every import Every

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "policies.md").read_text()
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head, without backquotes."""
    section = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    (body,) = (part for part in section if part.startswith(heading + "\n"))
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def said(step: Step) -> str:
    if isinstance(step, Run):
        return "run" + ", held" * step.held + ", cancels" * step.cancels
    return "gap" if isinstance(step, Gap) else f"skipped: {step.reason}"


def test_every_default_stands_there_with_its_meaning() -> None:
    assert rows("Defaults") == [[spec.name, str(spec.default), spec.help] for spec in POLICIES]


def test_every_allowance_stands_there_with_its_bounds() -> None:
    assert rows("Limits of a tenant") == [
        [spec.name, str(spec.minimum), str(spec.maximum), spec.help] for spec in ALLOWANCES
    ]


def test_the_table_of_missed_slots() -> None:
    table = rows("Missed")
    assert {parse_missed(row[0]).kind for row in table} == set(MissedKind)
    for missed, becomes in table:
        terms = SlotPolicies(parse_missed(missed))
        steps = plan(UnfinishedCounts(), terms, Every(600_000_000), NOW - 51 * MINUTE, NOW + 2 * MINUTE)
        assert ", ".join("run" if isinstance(step, Run) else said(step) for step in steps) == becomes, missed


def test_the_table_of_overlapping_slots() -> None:
    table = rows("Overlap")
    assert {parse_overlap(row[0]) for row in table} == set(Overlap)
    for overlap, busy, waiting, becomes in table:
        standing = UnfinishedCounts(int(busy), int(waiting))
        (step,) = plan(standing, SlotPolicies(overlap=parse_overlap(overlap)), Every(600_000_000), NOW - MINUTE, NOW)
        assert said(step) == becomes, (overlap, busy, waiting)
