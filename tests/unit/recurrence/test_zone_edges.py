"""Half-hour clock changes, and UNTIL at an instant with a repeated local time."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, Recurrence, RuleSpec

LORD_HOWE = "Australia/Lord_Howe"
#: On 2027-04-04 02:00 (+11) becomes 01:30 (+10:30); on 2027-10-03 02:00 (+10:30) becomes 02:30 (+11).
BACK, FORTH = datetime(2027, 4, 3, 15, tzinfo=UTC), datetime(2027, 10, 2, 15, 30, tzinfo=UTC)


def near(rule: Recurrence, change: datetime, minutes: int = 61) -> list[int]:
    """Minutes from the change at which it fires."""
    around = timedelta(minutes=minutes)
    return [int((slot - change).total_seconds() // 60) for slot in rule.between(change - around, change + around)]


@pytest.mark.parametrize(
    ("text", "dst", "back", "forth"),
    [
        ("*/15 * * * *", DstPolicy(), [*range(-60, 61, 15)], [*range(-60, 61, 15)]),
        ("45 1 * * *", DstPolicy(), [-15], [-15]),
        ("45 1 * * *", DstPolicy(fold=Fold.BOTH), [-15, 15], [-15]),
        ("15 2 * * *", DstPolicy(), [45], [0]),
        ("15 2 * * *", DstPolicy(gap=Gap.SHIFT), [45], [15]),
        ("15 2 * * *", DstPolicy(gap=Gap.SKIP), [45], []),
        ("FREQ=HOURLY;BYMINUTE=15", DstPolicy(), [-45, 45], [-45, 15, 45]),
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=15", DstPolicy(), [45], [15]),
        ("min(*%30)", DstPolicy(), [-60, -30, 0, 30, 60], [-60, -30, 0, 30, 60]),
    ],
)
def test_half_an_hour(text: str, dst: DstPolicy, back: list[int], forth: list[int]) -> None:
    rule = parse_rule(RuleSpec(text, tz=LORD_HOWE), dst=dst)
    assert (near(rule, BACK), near(rule, FORTH)) == (back, forth)
    for slots in (
        list(rule.between(change - timedelta(hours=1), change + timedelta(hours=1))) for change in (BACK, FORTH)
    ):
        assert all(rule.previous_before(after) == before for before, after in pairwise(slots))


@pytest.mark.parametrize(
    ("until", "last"),
    [
        ("20271031T002959Z", datetime(2027, 10, 30, 23, 30, tzinfo=UTC)),
        ("20271031T003000Z", datetime(2027, 10, 31, 0, 30, tzinfo=UTC)),
        ("20271031T012959Z", datetime(2027, 10, 31, 0, 30, tzinfo=UTC)),
        ("20271031T013000Z", datetime(2027, 10, 31, 1, 30, tzinfo=UTC)),
    ],
)
def test_until_in_utc_inside_a_fold(until: str, last: datetime) -> None:
    """02:30 in Berlin comes at 00:30 and at 01:30 UTC; UNTIL is an instant and means one of them."""
    text = f"DTSTART;TZID=Europe/Berlin:20271030T003000\nRRULE:FREQ=HOURLY;UNTIL={until}"
    rule = parse_rule(RuleSpec(text))
    assert rule.previous_before(datetime(2028, 1, 1, tzinfo=UTC)) == last
    assert rule.next_after(last) is None
    assert rule.next_after(last - timedelta(seconds=1)) == last


@pytest.mark.parametrize(
    ("lines", "hours"),
    [
        ("EXDATE:20251026T003000Z", ["22:30", "23:30", "01:30", "02:30"]),
        ("EXDATE:20251026T013000Z", ["22:30", "23:30", "00:30", "02:30"]),
        ("RRULE:FREQ=DAILY\nEXDATE:20251026T013000Z", ["22:30", "23:30", "00:30", "02:30"]),
        ("EXDATE;TZID=Europe/Berlin:20251026T023000", ["22:30", "23:30", "02:30"]),
    ],
)
def test_exdate_inside_a_fold(lines: str, hours: list[str]) -> None:
    """An EXDATE in UTC is one instant, on the pass that it names; a local one is the reading, on both."""
    rule = parse_rule(RuleSpec(f"DTSTART;TZID=Europe/Berlin:20251026T003000\nRRULE:FREQ=HOURLY\n{lines}"))
    found = rule.between(datetime(2025, 10, 25, 22, tzinfo=UTC), datetime(2025, 10, 26, 3, tzinfo=UTC))
    assert [f"{slot:%H:%M}" for slot in found] == hours
