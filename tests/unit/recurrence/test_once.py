from datetime import UTC, datetime, timedelta

import pytest

from lodger.engine.recurrence.parse import parse_rule, resolved
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAWN = datetime(1, 1, 1, tzinfo=UTC)


def slots(text: str, tz: str | None = None, dst: DstPolicy | None = None) -> list[str]:
    rule = parse_rule(RuleSpec(text, tz=tz), dst=dst, now=NOW)
    found, slot = [], rule.next_after(DAWN, inclusive=True)
    while slot is not None:
        found.append(slot)
        slot = rule.next_after(slot)
    assert rule.ends()
    back, slot = [], rule.previous_before(datetime.max.replace(tzinfo=UTC), inclusive=True)
    while slot is not None:
        back.append(slot)
        slot = rule.previous_before(slot)
    assert back == found[::-1]
    return [slot.isoformat() for slot in found]


@pytest.mark.parametrize(
    ("text", "tz", "expected"),
    [
        ("at 2027-01-01T09:00", None, "2027-01-01T09:00:00+00:00"),
        ("at 2027-01-01T09:00", "Europe/Berlin", "2027-01-01T08:00:00+00:00"),
        ("at 2027-01-01T09:00Z", "Europe/Berlin", "2027-01-01T09:00:00+00:00"),
        ("at 2027-01-01T09:00:00.25+02:00", None, "2027-01-01T07:00:00.250000+00:00"),
        ("AT 2027-01-01 09:00", None, "2027-01-01T09:00:00+00:00"),
        ("2027-01-01", None, "2027-01-01T00:00:00+00:00"),
        ("at 20270101T090000Z", None, "2027-01-01T09:00:00+00:00"),
        ("at 9999-12-31T23:59:59Z", None, "9999-12-31T23:59:59+00:00"),
        ("in 90s", None, "2026-11-21T12:01:30+00:00"),
        ("in 3 days", "Asia/Tokyo", "2026-11-24T12:00:00+00:00"),
        ("in 2000000 days", None, (NOW + timedelta(days=2_000_000)).isoformat()),
        (
            "at 2027-03-28T02:30",
            "Europe/Berlin",
            "2027-03-28T01:30:00+00:00",
        ),  # skipped: the offset before the gap
        ("at 2027-10-31T02:30", "Europe/Berlin", "2027-10-31T00:30:00+00:00"),  # twice: the first
    ],
)
def test_has_one_slot(text: str, tz: str | None, expected: str) -> None:
    assert slots(text, tz) == [expected]


def test_the_policy_is_obeyed() -> None:
    gap, fold = "at 2027-03-28T02:30", "at 2027-10-31T02:30"
    assert slots(gap, "Europe/Berlin", DstPolicy(gap=Gap.NEXT)) == ["2027-03-28T01:00:00+00:00"]
    assert slots(gap, "Europe/Berlin", DstPolicy(gap=Gap.SKIP)) == []
    assert len(slots(fold, "Europe/Berlin", DstPolicy(fold=Fold.BOTH))) == 2


def test_relative_needs_a_moment() -> None:
    with pytest.raises(RuleInvalid, match="has no instant to count from"):
        parse_rule(RuleSpec("in 90s"))


def test_what_is_stored_means_the_same_later() -> None:
    spec = resolved(RuleSpec("in 90s", tz="Europe/Berlin"), NOW)
    assert spec == RuleSpec("at 2026-11-21T12:01:30Z", Kind.ONCE, tz="Europe/Berlin")
    assert resolved(spec, NOW + timedelta(days=1)) == spec
    daily = RuleSpec("@daily")
    assert resolved(daily, NOW) == daily
