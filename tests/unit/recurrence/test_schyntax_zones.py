from datetime import UTC, datetime, timedelta

import pytest

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Recurrence, RuleSpec

SPRING, AUTUMN = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)


def night(text: str, begin: datetime, dst: DstPolicy | None = None) -> list[str]:
    rule = parse_rule(RuleSpec(text, tz="Europe/Berlin"), dst=dst)
    assert isinstance(rule, Recurrence)
    end = begin + timedelta(hours=3)
    forward = list(rule.between(begin, end))
    backward, slot = [], rule.previous_before(end)
    while slot is not None and slot >= begin:
        backward.append(slot)
        slot = rule.previous_before(slot)
    assert backward == forward[::-1]
    return [f"{slot:%H:%M}" + "*" * rule.shifted(slot) for slot in forward]


@pytest.mark.parametrize(
    ("text", "spring", "autumn"),
    [
        ("m(30)", ["00:30", "01:30", "02:30"], ["00:30", "01:30", "02:30"]),
        ("h(*)", ["00:00", "01:00", "02:00"], ["00:00", "01:00", "02:00"]),
        ("h(!5)", ["00:00", "01:00", "02:00"], ["00:00", "01:00", "02:00"]),
        ("h(2) m(30)", ["01:00*"], ["00:30"]),
        ("h(1..3) m(30)", ["00:30", "01:00*", "01:30"], ["00:30", "02:30"]),
        ("{h(2) m(30)} {m(30)}", ["00:30", "01:00*", "01:30", "02:30"], ["00:30", "01:30", "02:30"]),
        ("{h(3)} {h(2) m(30)}", ["01:00"], ["00:30", "02:00"]),
    ],
)
def test_each_granularity_has_its_default(text: str, spring: list[str], autumn: list[str]) -> None:
    assert night(text, SPRING) == spring
    assert night(text, AUTUMN) == autumn


def test_a_given_policy_holds_for_all_groups() -> None:
    both = DstPolicy(Gap.SKIP, Fold.BOTH)
    assert night("{h(2) m(30)} {m(45)}", SPRING, both) == ["00:45", "01:45", "02:45"]
    assert night("{h(2) m(30)} {m(45)}", AUTUMN, both) == ["00:30", "00:45", "01:30", "01:45", "02:45"]


def test_mixed_rules_prove_and_end_as_a_whole() -> None:
    never = parse_rule(RuleSpec("{dom(30) dates(2/1..2/29)} {dom(31) dates(4/1..4/30) m(*)}", tz="Europe/Berlin"))
    reason = never.never_reason()
    assert reason is not None
    assert "February 29" in reason
    assert "April 30" in reason
    once = parse_rule(RuleSpec("{dates(2030/1/1)} {dates(2031/1/1) m(*)}", tz="Europe/Berlin"))
    assert once.ends()
    assert once.never_reason() is None
    assert not parse_rule(RuleSpec("{dates(2030/1/1)} {m(*)}", tz="Europe/Berlin")).ends()
