"""What a density calls exact is the truth: some day is as full, some two slots are as close, and none are more so."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.recurrence.volume import examples

from lodger.engine.recurrence import census
from lodger.engine.recurrence.compile import _compile, demand_density
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, RuleSpec, ScheduleRules
from lodger.engine.recurrence.union import Union

NOW = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
NIGHTS = "DTSTART:20200101T220000\nDURATION:PT9H\nRRULE:FREQ=DAILY"
WEEKENDS = "DTSTART;VALUE=DATE:20200104\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU"
CHRISTMAS = "DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY"
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"]


def schedule(rules: list[str], closed: list[str], tz: str = "UTC", dst: DstPolicy | None = None) -> Union:
    texts, shut = (tuple(RuleSpec(text) for text in each) for each in (rules, closed))
    return _compile(ScheduleRules(texts, shut, tz=tz, dst=dst or DstPolicy()), NOW)


@pytest.mark.parametrize(
    ("rules", "closed", "tz", "gap", "most"),
    [
        (["*/5 * * * *"], [NIGHTS], "UTC", 300, 180),
        (["*/5 * * * *"], [NIGHTS, WEEKENDS, CHRISTMAS], "Europe/Berlin", 300, 180),
        (["* * * * *"], ["* * * * 1-5", NIGHTS], "UTC", 60, 15 * 60),
        (["every 7m", "every 11m"], [], "UTC", 60, 319),
        (["every 77m", "every 13m"], [], "UTC", 60, 129),  # the sum of both would be 130
        (["every 7m"], [NIGHTS], "UTC", 420, 129),
        (["every 90m"], ["0 9 * * *"], "UTC", 5400, 15),
        (["0 9 * * *", "0 9 * * *"], [], "UTC", 86_400, 1),
        (["FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"], [], "UTC", 28 * 86_400, 1),
        (["FREQ=SECONDLY"], [], "Europe/Berlin", 1, 86_400),
        (
            ["FREQ=DAILY;BYHOUR=9", "FREQ=DAILY;BYHOUR=9;BYSECOND=1"],
            ["FREQ=DAILY;BYHOUR=9;BYSECOND=1"],
            "UTC",
            86_400,
            1,
        ),
        (["FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=4;BYSECOND=0,1"], [], "UTC", 1, 2),
        # In the years to come only: the one day on which it was denser is past.
        (["0 9 * * *", "at 2020-01-01T09:00:05Z"], [], "UTC", 86_400, 1),
    ],
)
def test_it_is_counted(rules: list[str], closed: list[str], tz: str, gap: float, most: int) -> None:
    density = schedule(rules, closed, tz).density(NOW)
    assert (density.smallest_gap_s, density.most_per_day, density.exact) == (gap, most, True)


def test_what_is_too_much_to_count_is_a_bound_and_says_so() -> None:
    density = schedule(["0 9 * * *", "every 86401s"], []).density(NOW)
    assert not density.exact
    assert (density.smallest_gap_s, density.most_per_day) == (1, 2)


def test_a_save_that_asks_for_the_least_distance_counts_no_days(monkeypatch: pytest.MonkeyPatch) -> None:
    offices = schedule(["*/5 * * * *"], [NIGHTS], "Europe/Berlin")
    monkeypatch.setattr(census, "counted", lambda *_: pytest.fail("it is counted"))
    density = offices.density(NOW, gap_only=True)
    assert (density.smallest_gap_s, density.exact) == (300, False)


def test_a_limit_is_held_to_what_exclusions_leave() -> None:
    offices = schedule(["*/5 * * * *"], [NIGHTS], "Europe/Berlin")
    # One night in autumn is nine hours long by the clock's ten: it ends at six.
    assert demand_density(offices, most_per_day=192, since=NOW).exact
    with pytest.raises(RuleInvalid) as caught:
        demand_density(offices, most_per_day=191, since=NOW)
    assert "counted" in str(caught.value.why)
    with pytest.raises(RuleInvalid) as caught:
        demand_density(schedule(["0 9 * * *", "every 86401s"], []), smallest_gap_s=60)
    assert "bound" in str(caught.value.why)


def test_counting_is_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted steps: with less work allowed the same schedule is not counted, and nothing is walked far."""
    asked = 0
    whole = Union.next_after

    def counting(self: Union, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        nonlocal asked
        asked += 1
        return whole(self, instant, inclusive=inclusive)

    monkeypatch.setattr(Union, "next_after", counting)
    for rules, closed in ((["* * * * * *"], [NIGHTS]), (["*/2 * * * *", "7 * * * *"], [WEEKENDS, NIGHTS])):
        kept = schedule(rules, closed, "America/New_York")
        asked = 0
        kept.density(NOW)
        assert asked < 3 * census._MOST_SLOTS


RULES = [
    "30 1 * * *", "15 2 * * *", "0 9 * * 1-5", "*/20 * * * *", "0 0 1 * *", "2 3 29 2 *", "min(*%30) hours(2)", "{h(9)} {m(*%45)}",
    "dates(2027/3/28) m(*%10)", "every 7h", "every 90m", "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,59", "FREQ=HOURLY;INTERVAL=5",
    "FREQ=DAILY;INTERVAL=3", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2;BYMINUTE=30", "FREQ=MONTHLY;BYDAY=MO,SU;BYSETPOS=1,-1;BYHOUR=3",
    "DTSTART:20270101T000000\nRRULE:FREQ=DAILY;COUNT=500", "DTSTART:20270301T020500\nRDATE:20270328T023000\nRRULE:FREQ=WEEKLY",
    "DTSTART:20260101T000000\nRRULE:FREQ=HOURLY\nEXRULE:FREQ=DAILY;BYHOUR=2,3,4",
]  # fmt: skip
SHUT = [
    NIGHTS,
    WEEKENDS,
    CHRISTMAS,
    "0 9 * * *",
    "0 */3 * * *",
    "DTSTART:20260601T013000\nDURATION:PT2H\nRRULE:FREQ=WEEKLY;BYDAY=SU",
]


@settings(max_examples=examples(8), deadline=None, derandomize=examples(1) == 1)
@given(st.integers(0, 2**32))
def test_what_is_exact_is_reached_and_never_passed(seed: int) -> None:
    dice = Random(seed)
    dst = DstPolicy(dice.choice([None, *Gap]), dice.choice([None, *Fold]))
    rules, closed = dice.sample(RULES, dice.randint(1, 2)), dice.sample(SHUT, dice.randint(0, 2))
    try:
        kept = schedule(rules, closed, dice.choice(ZONES), dst)
    except RuleInvalid:
        return
    density = kept.density(NOW)
    close = full = False
    for begin in [
        NOW,
        datetime(2027, 3, 13, tzinfo=UTC),
        *(datetime(2026 + dice.randrange(60), m, 24, tzinfo=UTC) for m in (3, 10)),
    ]:
        first = max(begin.replace(hour=0, minute=0, second=0), NOW)
        slots = list(islice(kept.between(first, first + timedelta(days=20)), 1500))
        per_day: dict[object, int] = {}
        for slot in slots:
            per_day[slot.date()] = per_day.get(slot.date(), 0) + 1
        gaps = [(two - one).total_seconds() for one, two in pairwise(slots)]
        assert max(per_day.values(), default=0) <= density.most_per_day
        assert density.smallest_gap_s is None or min(gaps, default=density.smallest_gap_s) >= density.smallest_gap_s
        full = full or density.most_per_day in per_day.values()
        close = close or density.smallest_gap_s in gaps
    if density.exact and not (close and full):
        walked = _walked(kept)
        assert walked is None or walked == (density.smallest_gap_s, density.most_per_day)


def _walked(kept: Union) -> tuple[float | None, int] | None:
    """The truth by walking to the end of years in which everything comes once; None when that is too far."""
    slots = list(islice(kept.between(NOW, datetime(2460, 1, 1, tzinfo=UTC)), 8001))
    if len(slots) > 8000:
        return None
    per_day: dict[object, int] = {}
    for slot in slots:
        per_day[slot.date()] = per_day.get(slot.date(), 0) + 1
    return min(((two - one).total_seconds() for one, two in pairwise(slots)), default=None), max(
        per_day.values(), default=0
    )


def test_the_comparison_sees_a_sort_of_day_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days that are told apart by less have other slots: without the changes of clocks the count is wrong."""
    kept = schedule(["30 1 * * *", "0 3 * * *"], [CHRISTMAS], "Europe/Berlin")
    right = kept.density(NOW)
    assert right.exact
    monkeypatch.setattr(census, "_changes", lambda *_: ({}, {}))
    wrong = census.counted(kept, NOW)
    assert wrong is None or (wrong.smallest_gap_s, wrong.most_per_day) != (right.smallest_gap_s, right.most_per_day)


def test_a_turn_of_ages_is_no_fault() -> None:
    """Weeks that come together only after more years than a machine's word holds: what is said is the bound."""
    weeks = "\n".join(f"RRULE:FREQ=WEEKLY;INTERVAL={n};BYDAY=TU,SA" for n in (999_999_937, 493_573_636, 86_401))
    rules = ScheduleRules((RuleSpec(f"DTSTART;TZID=Asia/Kolkata:20260101T223900\n{weeks}"), RuleSpec("*/5 */2 * * *")))
    assert _compile(rules, None).density().smallest_gap_s is not None
