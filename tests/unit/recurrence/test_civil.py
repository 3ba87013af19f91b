"""Calendar arithmetic agrees with Python's own datetime everywhere."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.calendar import civil

days = st.integers(civil.MIN_DAY, civil.MAX_DAY)


@given(days)
def test_day_numbers_are_inverse(day: int):
    assert civil.day_of(*civil.civil(day)) == day
    assert civil.weekday(day) == date(*civil.civil(day)).weekday()


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1899, 1900, 1970, 2000, 2024, 2100, 9999])
def test_year_starts(year: int):
    assert civil.year_start(year) == civil.day_of(year, 1, 1)
    assert civil.year_start(year + 1) - civil.year_start(year) == civil.days_in_year(year)
    table = civil.DAYS_BEFORE_MONTH[civil.is_leap(year)]
    for month in range(1, 13):
        assert civil.year_start(year) + table[month] == civil.day_of(year, month, 1)
        assert table[month + 1] - table[month] == civil.days_in_month(year, month)


@given(st.integers(civil.MIN_LOCAL, civil.MAX_LOCAL))
def test_local_seconds_are_inverse(local: int):
    naive = civil.naive_of(local)
    assert civil.local_of(naive) == local
    day, second = civil.split(local)
    assert civil.local_at(*civil.civil(day), *civil.clock(second)) == local


def test_the_cycle_repeats_weekdays():
    assert civil.CYCLE_DAYS % 7 == 0
    assert civil.year_start(2400) - civil.year_start(2000) == civil.CYCLE_DAYS


def test_instants_floor_towards_the_past():
    before = datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    assert civil.utc_floor(before) == (-1, False)
    assert civil.utc_floor(before.astimezone(timezone(timedelta(hours=5)))) == (-1, False)
    assert civil.instant_of(-1) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    with pytest.raises(TypeError):
        civil.utc_floor(datetime(2026, 1, 1))
