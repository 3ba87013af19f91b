"""Density is a bound: no walk over any stretch of time finds slots closer, or a day fuller, than it says."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import Density, DstPolicy, Fold, Gap, RuleSpec, ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.recurrence.search import Steps

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]
RULES = [
    "30 1 * * *", "15 2 * * *", "0 9 * * 1-5", "*/20 * * * *", "45 23 * * *", "0 0 1 * *", "2 3 29 2 *",
    "min(*%30) hours(2)", "{h(9)} {m(*%45)}", "dates(2027/3/28) m(*%10)", "every 7h", "every 90m", "every 1500ms",
    "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,59", "FREQ=HOURLY;INTERVAL=5", "FREQ=MINUTELY;INTERVAL=77", "FREQ=DAILY;INTERVAL=3",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2;BYMINUTE=30", "FREQ=YEARLY;BYSECOND=0,1,30",
    "FREQ=MONTHLY;BYDAY=MO,SU;BYSETPOS=1,-1;BYHOUR=3", "DTSTART:20270101T000000\nRRULE:FREQ=DAILY;COUNT=500",
    "DTSTART:20270301T020500\nRDATE:20270328T023000,20271031T013007\nRRULE:FREQ=WEEKLY", "at 2027-03-28T01:30:00.5Z",
]  # fmt: skip


def union(*texts: str, tz: str | None = None, dst: DstPolicy | None = None) -> CompiledSchedule:
    return compile_schedule(ScheduleRules(tuple(RuleSpec(text) for text in texts), tz=tz, dst=dst or DstPolicy()))


@given(st.integers(0, 2**32))
def test_no_walk_breaks_the_bound(seed: int) -> None:
    dice = Random(seed)
    dst = DstPolicy(dice.choice([None, *Gap]), dice.choice([None, *Fold]))
    schedule = union(*dice.sample(RULES, dice.randint(1, 3)), tz=dice.choice(ZONES), dst=dst)
    density = schedule.density()
    begins = [datetime(2027, 3, 27, tzinfo=UTC), datetime(2027, 10, 30, tzinfo=UTC), datetime(2027, 4, 3, tzinfo=UTC)]
    begins += [
        datetime(2011, 12, 29, tzinfo=UTC),
        datetime(1970 + dice.randrange(400), dice.randint(1, 12), 1, tzinfo=UTC),
    ]
    for begin in begins:
        for day in range(3):
            first = begin + timedelta(days=day)
            slots = []
            for slot in schedule.between(first, first + timedelta(days=1)):
                slots.append(slot)
                if len(slots) > 300:
                    break
            assert len(slots) <= density.max_per_day
            if slots and isinstance(before := schedule.previous_before(slots[0]), datetime):
                slots.insert(0, before)
            for one, other in pairwise(slots):
                assert density.smallest_gap_s is not None
                assert (other - one).total_seconds() >= density.smallest_gap_s


@pytest.mark.parametrize(
    ("texts", "tz", "gap", "max_per_day"),
    [
        (("0 9 * * *",), None, 86_400, 1),
        (("0 9 * * *",), "Europe/Berlin", 82_800, 1),  # the day on which the clocks go forward
        (("30 1 * * *",), "Europe/Berlin", 82_800, 2),  # 00:30 and 23:30 UTC of one day
        (("0 0 * 3 *",), "Australia/Lord_Howe", 84_600, 1),  # half an hour
        (("*/5 * * * *",), "America/New_York", 300, 288),
        (("FREQ=WEEKLY;BYDAY=MO;BYHOUR=9", "FREQ=WEEKLY;BYDAY=TU;BYHOUR=9;BYMINUTE=30"), None, 88_200, 1),
        (("15 2 * * *", "30 3 * * *"), "Europe/Berlin", 1800, 2),  # 02:15 becomes 03:00 once a year
        (("FREQ=MINUTELY;INTERVAL=7",), None, 420, 206),
        (("FREQ=SECONDLY",), "Europe/Berlin", 1, 86_400),
        (("FREQ=DAILY;INTERVAL=10",), None, 864_000, 1),
        (("FREQ=WEEKLY;INTERVAL=2;BYDAY=FR",), None, 14 * 86_400, 1),
        (("every 7h", "every 5h"), None, 3600, 9),
        (("every 90s", "every 90s"), None, 90, 960),
        (("0 9 * * *", "at 2027-01-01T09:00:05Z"), None, 5, 2),
        (("DTSTART:20270101T000000\nRRULE:FREQ=DAILY;COUNT=3",), None, 86_400, 1),
        (("CRON_TZ=Asia/Tokyo 0 9 * * *", "30 0 * * *"), None, 1800, 2),
    ],
)
def test_the_bound_is_never_laxer_than_the_truth(
    texts: tuple[str, ...], tz: str | None, gap: float, max_per_day: int
) -> None:
    density = union(*texts, tz=tz).density()
    assert density.smallest_gap_s is not None
    assert density.smallest_gap_s <= gap
    assert density.max_per_day >= max_per_day
    assert not density.exact or (density.smallest_gap_s, density.max_per_day) == (gap, max_per_day)


@pytest.mark.parametrize(
    ("texts", "gap", "max_per_day"),
    [(("0 9 * * *",), 86_400, 1), (("*/7 * * * *",), 240, 216), (("15 2 * * *", "30 3 * * *"), 4500, 2)],
)
def test_where_the_bound_is_exact(texts: tuple[str, ...], gap: float, max_per_day: int) -> None:
    assert union(*texts).density() == Density(gap, max_per_day, exact=True)


@pytest.mark.parametrize(
    ("texts", "limit_s", "found"),
    [
        (("every 30s",), 60, 30),
        (("0 9 * * *", "1 9 * * *"), 3600, 60),
        (("0 9 * * *", "30 9 * * *"), 60, None),
        (("FREQ=MINUTELY;INTERVAL=7;BYHOUR=9",), 600, 420),
        (("0 9 * * 1", "CRON_TZ=Asia/Kolkata 0 15 * * 1"), 3600, 1800),
        # Closer slots than that come after the first ones: the tick holds them apart.
        (("0 9 * * *", "DTSTART:24000229T000000\nRRULE:FREQ=YEARLY;BYSECOND=7,8"), 60, None),
    ],
)
def test_the_first_slots_are_held_against_a_limit(texts: tuple[str, ...], limit_s: float, found: float | None) -> None:
    assert union(*texts).smallest_gap_s(datetime(2026, 11, 21, tzinfo=UTC), limit_s) == found


def test_rules_that_cannot_be_closer_are_not_walked() -> None:
    asked: list[datetime] = []

    class Watched(CompiledSchedule):
        def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
            asked.append(instant)
            return super().next_from(instant, steps)

    for text, slots in (("0 9 * * 1-5", 0), ("*/5 * * * *", 0), ("0,7 * * * *", 4)):
        asked.clear()
        watched = Watched(union(text).rules)
        watched.smallest_gap_s(datetime(2026, 11, 21, tzinfo=UTC), 300 if slots == 0 else 600)
        assert len(asked) <= slots
