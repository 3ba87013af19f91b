"""Rules in English: the inverse of the sentences that Lodger writes, short forms that people write, and refusals with what to write."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.recurrence.english import begins
from lodger.engine.recurrence.parse import parse_rule, recognise
from lodger.engine.recurrence.rule import Kind, Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def some(low: int, high: int, count: int = 3) -> st.SearchStrategy[str]:
    """Draw a list of numbers, as text."""
    return st.lists(st.integers(low, high), min_size=1, max_size=count, unique=True).map(
        lambda numbers: ",".join(map(str, sorted(numbers)))
    )


def slots(rule: Recurrence) -> list[datetime]:
    """Return the answers to five questions, each from the slot before."""
    found: list[datetime] = []
    while len(found) < 5 and isinstance(answer := rule.next_after(found[-1] if found else NOW), datetime):
        found.append(answer)
    return found


MONTHS = st.just("*") | some(1, 12)
CRON_TIMES = st.one_of(
    st.builds("{} {}".format, some(0, 59, 2), some(0, 23)),
    st.sampled_from(["* *", "*/5 *", "*/15 9,10,11", "10 *", "0 9-17"]),
    st.builds("{} {} {}".format, st.integers(1, 59), st.integers(0, 59), st.integers(0, 23)),
)
CRON_DAYS = st.one_of(
    st.builds("* {} *".format, MONTHS),
    st.builds("{} {} *".format, some(1, 31) | st.sampled_from(["L", "L-1", "L-6"]), MONTHS),
    st.builds("* {} {}".format, MONTHS, some(1, 7) | st.sampled_from(["2#1", "5L", "1#2"])),
)
WEEKDAYS = st.lists(st.sampled_from(DAYS), min_size=1, max_size=5, unique=True).map(",".join)
NTH = st.builds("{}{}".format, st.sampled_from([-2, -1, 1, 2, 3, 4, 5]), st.sampled_from(DAYS))
MONTH_DAY = st.builds("BYMONTHDAY={}".format, some(1, 31, 2) | st.sampled_from(["-1", "-3"]))
STEPS = st.one_of(
    st.just("FREQ=DAILY"),
    st.builds("FREQ=DAILY;BYMONTH={}".format, some(1, 12)),
    st.builds("FREQ=WEEKLY;BYDAY={}".format, WEEKDAYS),
    st.builds("FREQ=MONTHLY;{}".format, MONTH_DAY | st.builds("BYDAY={}".format, NTH)),
    st.builds("FREQ=YEARLY;BYMONTH={};BYMONTHDAY={}".format, st.integers(1, 12), st.integers(1, 28)),
    st.just("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"),
)  # fmt: skip
RRULES = st.builds("{};BYHOUR={};BYMINUTE={};BYSECOND=0".format, STEPS, some(0, 23, 1), some(0, 59, 1))


@given(st.builds("{} {}".format, CRON_TIMES, CRON_DAYS) | RRULES, st.sampled_from(["UTC", "Europe/Berlin"]))
def test_a_sentence_of_one_pattern_reads_back_as_the_same_rule(text: str, tz: str) -> None:
    rule = parse_rule(RuleSpec(text, tz=tz))
    if rule.never_reason() is None:
        sentence = rule.text()
        assert recognise(sentence) is Kind.ENGLISH
        assert slots(parse_rule(RuleSpec(sentence))) == slots(rule)


@pytest.mark.parametrize("text", ["every 90s", "PT1H", "at 2027-01-01T09:00", "at 2027-01-01T09:00:00Z"])
def test_sentences_of_intervals_and_single_dates_read_back(text: str) -> None:
    sentence = parse_rule(RuleSpec(text)).text()
    assert parse_rule(RuleSpec(sentence)).text() == sentence
    anchored = parse_rule(RuleSpec("every 5m", dtstart="2026-11-24T12:00:00Z")).text()
    assert parse_rule(RuleSpec(anchored)).text() == anchored


@pytest.mark.parametrize("start", ["2027-06-01T00:00:00Z", "2027-06-01T09:30:00Z"])
def test_the_sentence_names_a_start_that_cuts_slots_off(start: str) -> None:
    rule = parse_rule(RuleSpec("every day at 9", dtstart=start))
    assert "starting Tuesday, June 1, 2027" in rule.text()
    assert slots(parse_rule(RuleSpec(rule.text()))) == slots(rule)


@pytest.mark.parametrize(
    ("text", "index", "what"),
    [
        ("every wekday at 9", 6, "'wekday'"),
        ("every monday at 25:00", 16, "hours go from 0 to 23"),
        ("every month on the 32nd at 9", 19, "no month has a day 32"),
        ("every monday at 9 (Europe/Berln)", 18, "'Europe/Berln' is not a time zone"),
        ("every day at 9 and at 5 pm", 13, "9 may be am or pm"),
        ("every monday \x00", 13, "is not understood here"),
        ("daily at 9 17:30", 11, "'at 9' and '17:30' are two of a kind"),
        ("Monday at o'clock 9", 10, "a time of day is expected"),
        ("every day at past 9", 13, "a time of day is expected"),
        ("every monday at 9" + " and 10" * 99, 500, "at most 500"),
    ],
)
def test_a_refusal_has_the_place_and_the_word(text: str, index: int, what: str) -> None:
    with pytest.raises(RuleInvalid, match=what) as refused:
        parse_rule(RuleSpec(text))
    assert (refused.value.code, refused.value.index) == ("english_unclear", index)


def test_other_languages_keep_their_texts() -> None:
    texts = (
        "every 5 minutes",
        "at 2027-01-01",
        "in 3 days",
        "on changes of stock",
        "0 9 * * MON",
        "dow(mon) h(9)",
        "@daily",
    )
    assert [text for text in texts if begins(text) and recognise(text) is Kind.ENGLISH] == []
