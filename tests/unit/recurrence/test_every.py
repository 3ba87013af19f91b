from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.every import Every, parse_every
from lodger.engine.recurrence.instant import instant_us
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import Recurrence, RuleSpec

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
INSTANTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
PERIODS = st.integers(1, 10**15)


@given(PERIODS, INSTANTS, INSTANTS, st.booleans())
def test_neighbours(period_us: int, anchor: datetime, at: datetime, starts: bool) -> None:
    rule = Every(period_us, instant_us(anchor), starts)
    assert isinstance(rule, Recurrence)
    after, before = rule.next_after(at), rule.previous_before(at, inclusive=True)
    if after is not None:
        assert after > at
        assert (instant_us(after) - instant_us(anchor)) % period_us == 0
        assert not starts or after >= anchor
        assert rule.previous_before(after) == before
        assert rule.next_after(after, inclusive=True) == after
    if before is not None:
        assert before <= at
        assert after is None or instant_us(after) - instant_us(before) == period_us


def test_a_restart_never_makes_it_drift() -> None:
    rule = parse_every("every 7s", datetime(2020, 1, 1, tzinfo=UTC))
    slot = NOON
    for late_us in range(0, 10**7, 123_457):
        found = rule.next_after(slot + timedelta(microseconds=late_us))
        assert found is not None
        assert (found - datetime(2020, 1, 1, tzinfo=UTC)) % timedelta(seconds=7) == timedelta(0)
        slot = found


def test_begins_with_its_anchor() -> None:
    rule = parse_every("every 2 days", NOON)
    assert rule.next_after(datetime(1, 1, 1, tzinfo=UTC)) == NOON
    assert rule.previous_before(NOON) is None
    assert rule.previous_before(NOON, inclusive=True) == NOON
    assert list(rule.between(NOON, NOON + timedelta(days=5)))[-1] == NOON + timedelta(days=4)
    assert not rule.ends()
    assert rule.never_reason() is None


def test_counts_from_1970_on_both_sides_without_an_anchor() -> None:
    rule = parse_every("every hour")
    assert rule.previous_before(datetime(1969, 12, 31, 23, 30, tzinfo=UTC)) == datetime(1969, 12, 31, 23, tzinfo=UTC)


def test_the_ends_of_the_calendar() -> None:
    rule = parse_every("every 1 day")
    assert rule.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert rule.previous_before(datetime.min.replace(tzinfo=UTC)) is None
    assert parse_every("every 3000000 days").next_after(datetime(9999, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    "text", ["every 90s", "EVERY 1m30s", "@every 90s", "PT90S", "every PT1M30S", "\n every  90  seconds \n"]
)
def test_spellings(text: str) -> None:
    assert parse_rule(RuleSpec(text)) == Every(90_000_000)


def test_anchor_is_local_in_the_zone() -> None:
    rule = parse_rule(RuleSpec("every 1h", dtstart="2026-07-01T09:15", tz="Asia/Kolkata"))
    assert rule.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 7, 1, 3, 45, tzinfo=UTC)


def test_days_may_be_counted_from_a_fraction_of_a_second() -> None:
    rule = parse_rule(RuleSpec("every 1d", dtstart="2026-07-01T09:15:00.5Z", tz="Asia/Kolkata"))
    assert rule.next_after(NOON) == datetime(2026, 11, 22, 9, 15, 0, 500_000, UTC)


def test_asked_with_another_offset() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert parse_every("every 1 day").next_after(datetime(2026, 11, 21, 8, tzinfo=tokyo)) == datetime(
        2026, 11, 21, tzinfo=UTC
    )


def test_naive_is_no_instant() -> None:
    with pytest.raises(TypeError):
        parse_every("every 1 day").next_after(datetime(2026, 11, 21))
