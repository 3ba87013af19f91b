import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.duration import duration_in_words, parse_duration
from lodger.engine.recurrence.rule_errors import RuleInvalid

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("90s", 90 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("2 days", 172_800 * SECOND),
        ("2 days 3 hours", 183_600 * SECOND),
        ("1 day, 2 hours and 3 minutes", 93_780 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("250ms", 250_000),
        ("0.000001s", 1),
        ("1w", 604_800 * SECOND),
        ("PT90S", 90 * SECOND),
        ("P1DT2H", 93_600 * SECOND),
        ("P2W", 1_209_600 * SECOND),
        ("pt0.5s", 500_000),
        ("PT1H30M", 5400 * SECOND),
        ("0s", 0),
        ("1H30M", 5400 * SECOND),
    ],
)
def test_reads(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("", 0),
        ("90", 0),
        ("s", 0),
        ("-5s", 0),
        ("5 parsecs", 2),
        ("3 months", 2),
        ("1y", 1),
        ("1m1h", 3),
        ("1s 1s", 4),
        ("1h and", 3),
        ("1h,", 3),
        ("P", 0),
        ("PT", 0),
        ("P1Y", 0),
        ("P3M", 0),
        ("P1DT", 0),
        ("0.0000001s", 0),
        ("99999999999999d", 0),
        ("1٣s", 0),
        ("1h x", 3),
        ("1M", 1),
        ("2D 5M", 4),
    ],
)
def test_refuses(text: str, index: int) -> None:
    with pytest.raises(RuleInvalid) as caught:
        parse_duration(text, 10)
    assert caught.value.code == "duration_invalid"
    assert caught.value.index == 10 + index
    assert caught.value.why
    assert caught.value.fix


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_words_are_exact(one: int, other: int) -> None:
    assert (duration_in_words(one) == duration_in_words(other)) == (one == other)
