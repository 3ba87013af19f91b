"""The next and the last year with a day that INTERVAL selects: against looking at every year; and how little is looked at."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps, position_table
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.parts import Freq, Rule
from lodger.engine.recurrence.rrule.phase import Months, Phase, WeekYears, Years
from lodger.engine.recurrence.rrule.residues import LongSteps, Residues, Turning
from lodger.engine.recurrence.rrule.spans import Spans
from lodger.engine.recurrence.rrule.year_masks import YearMasks

_PARTS = (
    {"bymonth": (2,), "bymonthday": (29,)}, {"byday": ((0, 6),)}, {"byyearday": (366,)}, {"byweekno": (53,), "byday": ((0, 0),)},
    {"bymonthday": (13,), "byday": ((0, 4),)}, {"bymonth": (1, 3, 7)}, {"byweekno": (1,), "byday": ((0, 6),)}, {},
)  # fmt: skip


def _steps(dice: Random, n: int, hours: tuple[int, ...], masks: YearMasks) -> Phase | None:
    steps = ClockSteps(masks, position_table(hours, (), (), 1), n, dice.randrange(10**9))
    return steps.days.phase if isinstance(steps.days, Days) else None


def _phase(dice: Random, masks: YearMasks) -> Phase | None:
    shape = dice.randrange(6)
    if shape == 0:
        return Years(dice.choice((2, 3, 7, 97, 399, 400, 5000)), dice.randint(1, 9999))
    if shape == 1:
        return WeekYears(dice.choice((2, 3, 53, 400, 4000)), dice.randint(1, 9999), dice.randrange(7))
    if shape == 2:
        return Months(dice.choice((2, 5, 12, 24, 4799, 4801, 70_000)), dice.randrange(120_000))
    if shape == 3:
        modulus = dice.choice((2, 7, 14, 28, 365, 1461, 4097, 20_871, 146_097, 146_099, 1_000_003))
        return Residues(modulus, sorted({dice.randrange(modulus) for _ in range(dice.choice((1, 1, 7)))}))
    if shape == 4:
        return _steps(dice, dice.choice((604_799, 86_401, 172_799)), (), masks)
    return _steps(dice, dice.choice((86_400 * 28 + 1, 100_000_007)), (1, 2), masks)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_years_are_those_that_looking_finds(seed: int) -> None:
    dice = Random(seed)
    parts = dice.choice(_PARTS)
    masks = YearMasks(Rule(freq=Freq.YEARLY if "byweekno" in parts else Freq.DAILY, **parts))
    phase = _phase(dice, masks)
    if phase is None:
        return
    phase.prepare(masks)
    year = dice.choice((1, 2, 398, 400, 401, 2000, 9598, 9600, 9990, 9999, dice.randint(1, 9999)))
    hits = (each for each in range(year, 10_000) if masks.mask(each) & phase.mask(each))
    assert phase.year_from(year, masks) == next(hits, None)
    back = (each for each in range(year, 0, -1) if masks.mask(each) & phase.mask(each))
    assert phase.year_to(year, masks) == next(back, None)


def test_every_sort_of_phase_is_compared() -> None:
    masks = YearMasks(Rule(freq=Freq.DAILY, bymonth=(1,)))
    sorts = {type(_phase(Random(seed), masks)) for seed in range(24)}
    assert sorts >= {Years, WeekYears, Months, Residues, Turning, LongSteps}


@pytest.mark.parametrize("years", [(), (9998,), (1, 9999), (400, 799, 800)])
def test_a_search_looks_at_two_spans_at_most(years: tuple[int, ...]) -> None:
    looked = []

    def days(year: int) -> int:
        looked.append(year)
        begin = civil.year_start(year)
        return sum(1 << civil.year_start(each) - begin + 100 for each in years if year <= each < year + 400)

    spans = Spans(days)
    assert len(looked) == 25
    for year in (1, 399, 400, 401, 799, 800, 801, 5000, 9998, 9999):
        for found, expected in (
            (spans.year_from, min((each for each in years if each >= year), default=None)),
            (spans.year_to, max((each for each in years if each <= year), default=None)),
        ):
            looked.clear()
            assert found(year) == expected
            assert len(looked) <= 2


def test_what_one_set_of_days_needs_is_kept_beside_what_another_needs() -> None:
    """What is left of a rule is several sets of days with one phase; questions go to each in turn."""
    phase = WeekYears(3, 2026, 0)
    one, other = (YearMasks(Rule(freq=Freq.YEARLY, byweekno=(week,))) for week in (53, 1))
    made = [phase._week_years(masks) for masks in (one, other)]
    for _ in range(3):
        assert phase.year_from(3000, one) is not None
        assert phase.year_to(3000, other) is not None
    assert phase._week_years(one) is made[0]
    assert phase._week_years(other) is made[1]
