"""Schyntax against the official suite, and against a slow reading of the spec where the suite is silent."""

import json
import os
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance import schyntax_reading as reading
from tests.unit.recurrence.local import next_local, previous_local

from lodger.engine.recurrence.calendar.civil import local_of, naive_of
from lodger.engine.recurrence.groups import GroupedRule
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.schyntax import parse

ROOT = Path(__file__).resolve().parent.parent.parent
VECTORS = Path(os.environ.get("LODGER_VECTORS", ROOT / "../shared/vectors")) / "schyntax-tests.json"


def next_of(rule: GroupedRule, when: str) -> str | None:
    """Return the next slot of a rule after a local time, as text."""
    found = next_local(rule, local_of(datetime.fromisoformat(when)))
    return None if found is None else str(naive_of(found))


def test_official_suite() -> None:
    if not VECTORS.exists():
        pytest.skip(f"NOT TESTED with public vectors: {VECTORS} is absent (set LODGER_VECTORS to their folder)")
    suites = json.loads(VECTORS.read_text())["suites"]
    cases = [case for suite in suites.values() for case in suite]
    wrong = [case for case in cases if not _parses_as_expected(case)]
    assert not wrong
    assert len(cases) == 409


def _parses_as_expected(case: dict[str, Any]) -> bool:
    """Whether a published case is parsed, or refused at the published position."""
    try:
        rule = parse(case["format"])
    except RuleInvalid as error:
        return error.index == case.get("parseErrorIndex", -1)
    if "parseErrorIndex" in case:
        return False
    at = local_of(datetime.fromisoformat(case["date"]))
    got = (previous_local(rule, at, inclusive=True), next_local(rule, at))
    return got == tuple(local_of(datetime.fromisoformat(case[side])) for side in ("prev", "next"))


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        # The reference looks 1459 days ahead and gives up.
        ("dates(2/29)", "2016-02-29 00:00:00", "2020-02-29 00:00:00"),
        ("dates(2/29)", "2096-03-01 00:00:00", "2104-02-29 00:00:00"),
        ("dates(2020/5/1)", "2016-01-01 00:00:00", "2020-05-01 00:00:00"),
        ("doy(366)", "2096-12-31 00:00:00", "2104-12-31 00:00:00"),
        ("dates(2/29) dow(mon)", "2000-01-01 00:00:00", "2016-02-29 00:00:00"),
        ("dates(2200/12/31)", "0001-01-01 00:00:00", "2200-12-31 00:00:00"),
        # An interval on dates throws in both official implementations.
        ("dates(*%100)", "2021-01-02 00:00:00", "2021-04-11 00:00:00"),
        ("dates(12/30..1/5%3)", "2021-12-30 12:00:00", "2022-01-02 00:00:00"),
        ("dates(2020/1/1..2030/1/1%1000)", "2020-01-02 00:00:00", "2022-09-27 00:00:00"),
        ("dates(2020/12/30%1)", "2020-12-31 12:00:00", None),
        # A range from a negative to a positive day never matches in the reference.
        ("dom(-1..2)", "2021-02-02 00:00:00", "2021-02-28 00:00:00"),
        ("dom(-1..2)", "2021-02-28 00:00:00", "2021-03-01 00:00:00"),
        ("doy(-1..1)", "2020-12-31 00:00:00", "2021-01-01 00:00:00"),
        ("dom(-3..3%2)", "2021-02-28 12:00:00", "2021-03-02 00:00:00"),
        # A yearless range that wraps within its month loses that month in the reference.
        ("dates(5/20..5/10)", "2021-05-10 00:00:00", "2021-05-20 00:00:00"),
        # Both negative: counted from the end of the month in which the range began.
        ("dom(-2..-29%2)", "2021-02-28 00:00:00", "2021-03-01 00:00:00"),
        ("dates(1900/1/1)", "1900-01-01 00:00:00", None),
        ("dom(20..-20)", "2021-01-01 00:00:00", None),
        ("h(5,!5)", "2021-01-01 00:00:00", None),
        ("doy(366) dates(1/1)", "2021-01-01 00:00:00", None),
        ("{dom(31) dates(2/1..2/29)} {h(3)}", "2021-01-01 03:00:00", "2021-01-02 03:00:00"),
    ],
)
def test_defects_of_the_reference_are_fixed(text: str, after: str, expected: str | None) -> None:
    assert next_of(parse(text), after) == expected


@pytest.mark.parametrize(
    ("names", "argument", "canonical"),
    [
        ("s sec second seconds secondofminute secondsofminute", "5", "seconds(5)"),
        ("m min minute minutes minuteofhour minutesofhour", "5", "minutes(5)"),
        ("h hour hours hourofday hoursofday", "5", "hours(5)"),
        ("day days dow dayofweek daysofweek", "5", "daysofweek(5)"),
        ("dom dayofmonth daysofmonth", "5", "daysofmonth(5)"),
        ("doy dayofyear daysofyear", "5", "daysofyear(5)"),
        ("date dates", "5/6", "dates(5/6)"),
    ],
)
def test_every_name_of_a_unit(names: str, argument: str, canonical: str) -> None:
    for name in names.split():
        for spelled in (name, name.upper()):
            assert parse(f"{spelled}({argument})").text() == parse(canonical).text()


@pytest.mark.parametrize(
    ("names", "number"),
    [
        ("su sun sunday", 1),
        ("mo mon monday", 2),
        ("tu tue tues tuesday", 3),
        ("we wed wednesday", 4),
        ("th thu thur thurs thursday", 5),
        ("fr fri friday", 6),
        ("sa sat saturday", 7),
    ],
)
def test_every_name_of_a_day(names: str, number: int) -> None:
    for name in names.split():
        assert parse(f"dow({name})").text() == parse(f"dow({name.upper()})").text() == parse(f"dow({number})").text()


def test_the_first_and_last_year_of_a_date() -> None:
    assert next_of(parse("dates(1900/1/1)"), "1899-12-31 00:00:00") == "1900-01-01 00:00:00"
    for text in ("dates(1899/12/31)", "dates(2201/1/1)"):
        with pytest.raises(RuleInvalid):
            parse(text)


def test_outside_the_named_years() -> None:
    rule = parse("dates(!2000/1/1..2200/12/31, 12/25)")
    assert next_of(rule, "1999-12-25 00:00:00") == "2201-12-25 00:00:00"
    assert previous_local(rule, local_of(datetime(2201, 12, 25))) == local_of(datetime(1999, 12, 25))


def _argument(values: st.SearchStrategy[Any], high: int) -> st.SearchStrategy[reading.Argument]:
    plain = st.tuples(st.booleans(), values, st.none() | values, st.booleans(), st.none() | st.integers(1, high))
    wild = st.tuples(st.just(False), st.none(), st.none(), st.just(False), st.none() | st.integers(1, high))
    return (
        (plain | wild)
        .filter(lambda a: not (a[2] is not None and a[3] and a[1] == a[2]))
        .map(lambda a: (*a[:3], a[3] and a[2] is not None, a[4]))
    )


_DATES = st.tuples(st.none(), st.integers(1, 12), st.integers(1, 28)) | st.sampled_from([(None, 2, 29), (None, 1, 31)])
_FULL = st.dates(date(2018, 1, 1), date(2026, 12, 31)).map(lambda day: (day.year, day.month, day.day))
_FULL_ARGUMENT = _argument(_FULL, 400).filter(lambda a: a[2] is None or a[1] <= a[2])
_SIGNED = {high: st.integers(1, high) | st.integers(-high, -1) for high in (31, 366)}
_UNITS = {
    "s": _argument(st.integers(0, 59), 59),
    "m": _argument(st.integers(0, 59), 59),
    "h": _argument(st.integers(0, 23), 23),
    "dow": _argument(st.integers(1, 7), 7),
    "dom": _argument(_SIGNED[31], 31),
    "doy": _argument(_SIGNED[366], 366),
    "dates": _argument(_DATES, 400) | _FULL_ARGUMENT,
}
_GROUPS = st.lists(
    st.lists(
        st.sampled_from(sorted(_UNITS)).flatmap(
            lambda unit: st.tuples(st.just(unit), st.lists(_UNITS[unit], min_size=1, max_size=3))
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda expression: expression[0],
    ),
    min_size=1,
    max_size=2,
)


def _has_few_times(group: reading.Group) -> bool:
    return len(reading.times(group)) <= 30


@given(
    _GROUPS.filter(lambda groups: all(_has_few_times(group) for group in groups)),
    st.dates(date(2019, 1, 1), date(2025, 1, 1)),
)
def test_walks_like_the_spec_reads(groups: list[reading.Group], first: date) -> None:
    rule = parse(reading.text_of(groups))
    expected = [local_of(slot) for slot in reading.slots(groups, first, 70)]
    begin, end = (
        local_of(datetime.combine(first, datetime.min.time())),
        local_of(datetime.combine(first + timedelta(days=70), datetime.min.time())),
    )
    forward, at = [], next_local(rule, begin, inclusive=True)
    while at is not None and at < end:
        forward.append(at)
        at = next_local(rule, at)
    assert forward == expected
    backward, at = [], previous_local(rule, end)
    while at is not None and at >= begin:
        backward.append(at)
        at = previous_local(rule, at)
    assert backward == expected[::-1]
