"""Density is a proof: no walk over any stretch of time finds slots closer, or a day fuller, than it says."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.compile import compile_schedule, demand_density
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]
RULES = [
    "30 1 * * *", "15 2 * * *", "0 9 * * 1-5", "*/20 * * * *", "45 23 * * *", "0 0 1 * *", "2 3 29 2 *",
    "min(*%30) hours(2)", "{h(9)} {m(*%45)}", "dates(2027/3/28) m(*%10)", "every 7h", "every 90m", "every 1500ms",
    "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,59", "FREQ=HOURLY;INTERVAL=5", "FREQ=MINUTELY;INTERVAL=77", "FREQ=DAILY;INTERVAL=3",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2;BYMINUTE=30", "FREQ=YEARLY;BYSECOND=0,1,30",
    "FREQ=MONTHLY;BYDAY=MO,SU;BYSETPOS=1,-1;BYHOUR=3", "DTSTART:20270101T000000\nRRULE:FREQ=DAILY;COUNT=500",
    "DTSTART:20270301T020500\nRDATE:20270328T023000,20271031T013007\nRRULE:FREQ=WEEKLY", "at 2027-03-28T01:30:00.5Z",
]  # fmt: skip


def union(*texts: str, tz: str | None = None, dst: DstPolicy | None = None) -> Union:
    return compile_schedule(ScheduleRules(tuple(RuleSpec(text) for text in texts), tz=tz, dst=dst or DstPolicy()))


@settings(max_examples=60, deadline=None)
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
            assert len(slots) <= density.most_per_day
            if slots and (before := schedule.previous_before(slots[0])) is not None:
                slots.insert(0, before)
            for one, other in pairwise(slots):
                assert density.smallest_gap_s is not None
                assert (other - one).total_seconds() >= density.smallest_gap_s


@pytest.mark.parametrize(
    ("texts", "tz", "gap", "most"),
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
def test_where_the_bound_is_the_truth(texts: tuple[str, ...], tz: str | None, gap: float, most: int) -> None:
    density = union(*texts, tz=tz).density()
    assert (density.smallest_gap_s, density.most_per_day) == (gap, most)


@pytest.mark.parametrize(
    "texts",
    [
        ("FREQ=DAILY;BYHOUR=9", "FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=3;BYHOUR=4;BYSECOND=0,1"),
        ("FREQ=DAILY;BYHOUR=9", "DTSTART:24000229T000000\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYSECOND=7,8"),
        ("0 9 * * *", "DTSTART:20260101T000000\nRRULE:FREQ=YEARLY;INTERVAL=9\nRDATE:27770101T090001"),
        ("0 9 * * *", "every 86401s"),
        ("s(0) m(0) h(9)", "s(1) m(0) h(9) dates(2/29) dow(mon)"),
    ],
)
def test_a_burst_that_comes_once_in_ages_is_seen(texts: tuple[str, ...]) -> None:
    schedule = union(*texts)
    with pytest.raises(RuleInvalid) as caught:
        demand_density(schedule, smallest_gap_s=60)
    assert caught.value.code == "schedule_too_dense"
    assert caught.value.details["smallest_gap_s"] == 1
    # The first rule alone passes: it is the burst that is refused.
    assert demand_density(union(texts[0]), smallest_gap_s=60, most_per_day=1).most_per_day == 1


def test_a_budget_per_day_counts_the_fullest_day() -> None:
    schedule = union("0 9 * * *", "FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=3;BYHOUR=0,1,2,3,4,5")
    assert demand_density(schedule, most_per_day=7).most_per_day == 7
    with pytest.raises(RuleInvalid):
        demand_density(schedule, most_per_day=6)


def test_hostile_schedules_are_bounded_soon() -> None:
    many = union(*(f"{n} */2 * * *" for n in range(0, 60, 2)), tz="Europe/Berlin")
    rules = "\n".join(f"RRULE:FREQ=SECONDLY;INTERVAL={90_000 + n}" for n in range(16))
    odd = union(*[f"DTSTART:20260101T0000{n:02d}\n{rules}" for n in range(2)], tz="Europe/Berlin")
    start = thread_time()
    assert many.density().smallest_gap_s == 120
    assert odd.density().smallest_gap_s == 1
    assert thread_time() - start < 20


@given(st.sets(st.integers(0, 86_399), max_size=40), st.sets(st.integers(0, 86_399), max_size=40))
def test_distances_of_sets(one: set[int], other: set[int]) -> None:
    bits = sum(1 << each for each in one)
    assert timeset.listed(bits) == sorted(one)
    assert timeset.smallest_gap(bits) == min((b - a for a, b in pairwise(sorted(one))), default=None)
    apart = min((abs(a - b) for a in one for b in other if a != b), default=86_400)
    assert timeset.smallest_between(bits, sum(1 << each for each in other), 86_400) == apart
