"""``lodger next`` and ``lodger bench rules`` as a user runs them."""

import json
from pathlib import Path
from time import perf_counter
from xml.etree import ElementTree

from tests.e2e.ready import lodger
from tests.unit.drawn_marks import marks
from tests.unit.recurrence.foreign_rules import CASES


def run_timed(*arguments: str) -> tuple[str, float]:
    """Run a command; return its output and how long it took, in seconds."""
    begin = perf_counter()
    done = lodger(*arguments)
    assert done.code == 0, done.err
    return done.out, perf_counter() - begin


def test_the_bench_has_the_others_beside_it(tmp_path: Path) -> None:
    drawn = tmp_path / "rules.svg"
    rows = json.loads(run_timed("bench", "rules", "--json", "--svg", str(drawn))[0])["rules"]
    picture = ElementTree.parse(drawn).getroot()
    for name in ("lodger", "dateutil", "cronsim"):
        assert len(marks(picture, name)) == sum(row[name] is not None for row in rows), name
    for other in ("dateutil", "cronsim"):
        assert any(row[other] is not None for row in rows), other


def test_rules_from_elsewhere_mean_on_the_command_line_what_they_mean_there() -> None:
    asked = [{"rule": case.text, "tz": case.tz, "after": "2026-01-01T00:00:00Z", "n": 1} for case in CASES]
    said = lodger("next", "--batch", stdin="\n".join(json.dumps(each) for each in asked))
    for case, line in zip(CASES, said.out.splitlines(), strict=True):
        found = json.loads(line)
        if case.fix:
            assert case.fix in found["error"]["fix"], case
        elif case.never:
            assert (found["next"], found["never"], case.never in found["reason"]) == ([], True, True), case
        else:
            assert case.says in found["text"], case
            assert not case.first or found["next"] == [case.first], case
