"""Cron against cronsim (Debian's reading), forwards and backwards, in UTC and across DST transitions."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.recurrence.local import next_local, previous_local

from lodger.engine.recurrence.calendar.civil import local_of, naive_of
from lodger.engine.recurrence.cron import parse
from lodger.engine.recurrence.parse import parse_rule
from lodger.engine.recurrence.rule import Kind, RuleSpec


def _terms(low: int, high: int) -> st.SearchStrategy[str]:
    """Return a strategy that draws one term of a cron field."""
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(lambda p: f"{min(p)}-{max(p)}")
    step = st.integers(1, high - low + 1)
    # cronsim reads a-a/n as a/n (from a on); here a range of one number holds that number.
    longer = st.tuples(number, number).filter(lambda p: p[0] != p[1]).map(lambda p: f"{min(p)}-{max(p)}")
    stepped = st.tuples(longer | st.just("*"), step).map(lambda p: f"{p[0]}/{p[1]}")
    return st.just("*") | number.map(str) | pair | stepped | st.tuples(number, step).map(lambda p: f"{p[0]}/{p[1]}")


def _field(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return a strategy that draws a whole cron field."""
    return terms | st.lists(terms.filter(lambda term: term != "*"), min_size=1, max_size=3).map(",".join)


MINUTES, HOURS = _field(_terms(0, 59)), _field(_terms(0, 23))
DAYS = _field(_terms(1, 31) | st.sampled_from(["L", "LW"]))
MONTHS = _field(_terms(1, 12) | st.sampled_from(["JAN", "feb", "Mar-Oct"]))
WEEKDAYS = _field(
    _terms(0, 7)
    | st.sampled_from(["MON-FRI", "sun", "5L", "0L", "7L"])
    | st.tuples(st.integers(0, 7), st.integers(1, 5)).map(lambda p: f"{p[0]}#{p[1]}")
)
FIVE = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)
SIX = st.tuples(MINUTES, FIVE).map(" ".join)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)).map(lambda at: at.replace(microsecond=0))


def _cronsim(text: str, start: datetime, count: int, *, reverse: bool = False) -> list[datetime]:
    try:
        return list(islice(CronSim(text, start, reverse=reverse), count))
    except CronSimError:
        # It refuses days that no month has; that such rules never fire is tested apart.
        assume(False)
        raise AssertionError from None


@given(FIVE | SIX, MOMENTS)
def test_agrees_with_cronsim(text: str, start: datetime) -> None:
    # cronsim looks 50 years ahead.
    horizon = timedelta(days=365 * 40)
    forward, backward = _cronsim(text, start, 4), _cronsim(text, start, 3, reverse=True)
    rule = parse(text).rule
    at = local_of(start)
    for expected in forward:
        found = next_local(rule, at)
        assert found is not None
        assert naive_of(found) == expected
        at = found
    if not forward:
        assert next_local(rule, at, inclusive=True) is None or naive_of(next_local(rule, at) or 0) > start + horizon
    at = local_of(start)
    for expected in backward:
        found = previous_local(rule, at)
        assert found is not None
        assert naive_of(found) == expected
        at = found


# Not Australia/Lord_Howe: cronsim steps by whole hours of UTC and loses 00:00 after a transition of half an
# hour.
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Santiago")
_TRANSITIONS = [
    datetime(2027, 3, 28, 1, tzinfo=UTC),
    datetime(2027, 10, 31, 1, tzinfo=UTC),
    datetime(2027, 3, 14, 7, tzinfo=UTC),
    datetime(2027, 11, 7, 6, tzinfo=UTC),
    datetime(2027, 4, 3, 15, tzinfo=UTC),
    datetime(2027, 10, 2, 15, 30, tzinfo=UTC),
    datetime(2027, 4, 4, 3, tzinfo=UTC),
    datetime(2027, 9, 5, 4, tzinfo=UTC),
]
_OFTEN = st.tuples(MINUTES, HOURS).map(lambda p: f"{p[0]} {p[1]} * * *")


@given(_OFTEN, st.sampled_from(ZONES), st.sampled_from(_TRANSITIONS), st.integers(-30 * 3600, 3 * 3600))
def test_agrees_with_cronsim_across_dst(text: str, zone: str, transition: datetime, ahead_s: int) -> None:
    start = transition + timedelta(seconds=ahead_s)
    expected = [slot.astimezone(UTC) for slot in _cronsim(text, start.astimezone(ZoneInfo(zone)), 8)]
    # A fixed time that a gap moves onto another slot is given twice by cronsim: one instant is one slot.
    # Asked within the second pass of a fold, it answers with the first pass, before the question: that is
    # dropped.
    expected = [slot for slot in dict.fromkeys(expected) if slot > start]
    rule = parse_rule(RuleSpec(text, Kind.CRON, tz=zone))
    found, at = [], start
    for _ in expected:
        at = rule.next_after(at)
        found.append(at)
    assert found == expected


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 12 15W * *", "2026-08-01", "2026-08-14 12:00:00"),  # the 15th is a Saturday
        ("0 12 16W * *", "2026-08-01", "2026-08-17 12:00:00"),  # the 16th is a Sunday
        ("0 12 1W * *", "2026-08-01", "2026-08-03 12:00:00"),  # stays in the month
        ("0 12 31W 5 *", "2026-05-01", "2026-05-29 12:00:00"),
        ("0 12 31W 6 *", "2026-05-01", None),
        ("0 0 L-3 2 *", "2027-12-01", "2028-02-26 00:00:00"),
        ("0 0 L-2W * *", "2026-11-01", "2026-11-27 00:00:00"),  # the 28th is a Saturday
        ("0 0 ? * 6L", "2026-11-01", "2026-11-28 00:00:00"),
        ("0 0 * * FRI#5", "2026-11-01", "2027-01-29 00:00:00"),
        ("0 22-2 * * *", "2026-11-01 02:00", "2026-11-01 22:00:00"),
        ("0 22-3/2 * * *", "2026-11-01 00:00", "2026-11-01 02:00:00"),
        ("0 0 * * FRI-MON", "2026-11-10", "2026-11-13 00:00:00"),
        ("0 0 1 NOV-FEB *", "2026-02-02", "2026-11-01 00:00:00"),
        ("0 0 * * FRI-TUE/2", "2026-11-15 00:00", "2026-11-17 00:00:00"),  # a step counts on over the edge of the week
        ("30 0 9 * * *", "2026-11-01", "2026-11-01 09:00:30"),
        ("0 0 13 * 5", "2026-11-01", "2026-11-06 00:00:00"),
        ("DAYS=both 0 0 13 * 5", "2026-11-01 00:00", "2026-11-13 00:00:00"),
        ("DAYS=either 0 0 */2 * 5", "2026-11-01 00:00", "2026-11-03 00:00:00"),
        (
            "0 0 */2 * 5",
            "2026-11-01 00:00",
            "2026-11-13 00:00:00",
        ),  # Debian: a star in either field means both
        ("0 0 29 2 */7", "2026-11-01", "2032-02-29 00:00:00"),
        ("@weekly", "2026-11-01 00:00", "2026-11-08 00:00:00"),
        ("0 0 30 2 *", "2026-11-01", None),
        ("0 0 31 2,4 *", "2026-11-01", None),
        ("0 0 31 4,6,9,11 *", "2026-11-01", None),
        ("DAYS=both 0 0 1 * FRI#2", "2026-11-01", None),
        ("0 0 1 1 *", "9999-01-01 00:00", None),
        ("* * * * * *", "9999-12-31 23:59:58", "9999-12-31 23:59:59"),
    ],
)
def test_reads(text: str, after: str, expected: str | None) -> None:
    rule = parse(text).rule
    found = next_local(rule, local_of(datetime.fromisoformat(after)))
    assert (None if found is None else str(naive_of(found))) == expected
    if found is not None:
        assert previous_local(rule, found, inclusive=True) == found


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@HOURLY", "0 * * * *"),
    ],
)
def test_words_are_the_fields_of_crontab(word: str, fields: str) -> None:
    one, other = parse(word).rule, parse(fields).rule
    assert (one.text(), one.default_dst()) == (other.text(), other.default_dst())
