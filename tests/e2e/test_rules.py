"""``lodger next`` and ``lodger bench rules`` as a user runs them."""

import json
from pathlib import Path
from time import perf_counter
from xml.etree import ElementTree

from tests.e2e.ready import lodger
from tests.unit.test_rule_picture import marks

NEVER = "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"


def ran(*arguments: str) -> tuple[str, float]:
    begin = perf_counter()
    done = lodger(*arguments)
    assert done.code == 0, done.err
    return done.out, perf_counter() - begin


def test_an_impossible_rule_is_answered_with_its_reason_at_once() -> None:
    """The answer costs no more than a rule that fires: what is left is the start of Python and of the command."""
    reported, took = ran("next", NEVER, "--json")
    body = json.loads(reported)
    assert body["never"] is True
    assert "400-year" in body["reason"]
    _, usual = min((ran("next", "FREQ=DAILY", "--json") for _ in range(2)), key=lambda pair: pair[1])
    assert took < usual * 20


def test_what_next_says_for_people() -> None:
    reported, _ = ran("next", "30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-03-27T12:00", "-n", "2")
    for part in ("At 02:30, every day", "CEST", "DST", "Earlier slot", "at most 1 per day", "The rule never ends"):
        assert part in reported
    reported, _ = ran("next", "DTSTART:20300101T000000\nRRULE:FREQ=DAILY;COUNT=3")
    assert "The last slot is 2030-01-03T00:00:00Z" in reported


def test_the_bench_has_the_others_beside_it(tmp_path: Path) -> None:
    drawn = tmp_path / "rules.svg"
    rows = json.loads(ran("bench", "rules", "--json", "--svg", str(drawn))[0])["rules"]
    picture = ElementTree.parse(drawn).getroot()
    for name in ("lodger", "dateutil", "cronsim"):
        assert len(marks(picture, name)) == sum(row[name] is not None for row in rows), name
    for other in ("dateutil", "cronsim"):
        assert any(row[other] is not None for row in rows), other
