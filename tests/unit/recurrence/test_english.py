"""Rules in English: the inverse of the sentences that Lodger writes, short forms that people write, and refusals with what to write."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
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
    st.builds("FREQ=DAILY;BYDAY={}".format, WEEKDAYS),
    st.builds("FREQ=DAILY;BYMONTH={}".format, some(1, 12)),
    st.builds("FREQ=WEEKLY;BYDAY={}".format, WEEKDAYS),
    st.builds("FREQ=MONTHLY;{}".format, MONTH_DAY | st.builds("BYDAY={}".format, NTH)),
    st.builds("FREQ=MONTHLY;BYDAY={};BYSETPOS={}".format, WEEKDAYS.filter(lambda days: "," in days), st.sampled_from([1, -1, 2])),
    st.builds("FREQ=YEARLY;BYMONTH={};BYMONTHDAY={}".format, st.integers(1, 12), st.integers(1, 28)),
)  # fmt: skip
RRULES = st.one_of(
    st.builds("{};INTERVAL={};BYHOUR={};BYMINUTE={};BYSECOND=0".format, STEPS, st.integers(1, 4), some(0, 23), some(0, 59, 2)),
    st.builds("FREQ={};INTERVAL={}".format, st.sampled_from(["HOURLY", "MINUTELY"]), st.integers(1, 40)),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.builds("{} {}".format, CRON_TIMES, CRON_DAYS) | RRULES, st.sampled_from(["UTC", "Europe/Berlin"]))
def test_a_sentence_of_one_pattern_reads_back_as_the_same_rule(text: str, tz: str) -> None:
    rule = parse_rule(RuleSpec(text, tz=tz))
    sentence = rule.text()
    assert recognise(sentence) is Kind.ENGLISH
    again = parse_rule(RuleSpec(sentence))
    assert again.text() == sentence
    if rule.never_reason() is None:
        assert slots(again) == slots(rule)


@pytest.mark.parametrize("text", ["every 90s", "PT1H", "at 2027-01-01T09:00", "at 2027-01-01T09:00:00Z"])
def test_sentences_of_intervals_and_single_dates_read_back(text: str) -> None:
    sentence = parse_rule(RuleSpec(text)).text()
    assert parse_rule(RuleSpec(sentence)).text() == sentence
    anchored = parse_rule(RuleSpec("every 5m", dtstart="2026-11-24T12:00:00Z")).text()
    assert parse_rule(RuleSpec(anchored)).text() == anchored


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("every weekday at 9", "0 9 * * 1-5"),
        ("Weekdays at 9am and 5 pm (Europe/Berlin)", "CRON_TZ=Europe/Berlin 0 9,17 * * 1-5"),
        ("last friday of the month at 17:30", "30 17 * * 5L"),
        ("every 2 weeks on tue and thu", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        ("every other monday at noon", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=12;BYMINUTE=0;BYSECOND=0"),
        ("fortnightly on monday at midnight", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=0;BYMINUTE=0;BYSECOND=0"),
        ("on the 1st and 15th of each month at 8am", "0 8 1,15 * *"),
        ("every 15 minutes from 9:00 through 17:45 on weekdays", "0,15,30,45 9-17 * * 1-5"),
        ("the last weekday of each month at 18", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0;BYSECOND=0"),
        ("second to last friday at 9", "FREQ=MONTHLY;BYDAY=-2FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
        ("every year on march 3 at 9", "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=3;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
        ("mon-fri at 12:15 am in nov-feb", "15 0 * 11,12,1,2 1-5"),
        ("every 31st at 9", "0 9 31 * *"),
    ],
)  # fmt: skip
def test_short_forms(text: str, means: str) -> None:
    read, meant = parse_rule(RuleSpec(text)), parse_rule(RuleSpec(means))
    assert read.text() == meant.text()
    assert slots(read) == slots(meant)


@pytest.mark.parametrize(
    ("text", "index", "fix"),
    [
        ("biweekly on monday", 0, "every 2 weeks"),
        ("next friday at 9", 0, "2027-01-01"),
        ("at 9", 4, "every day at 9"),
        ("every month at 9 and on", 17, "every weekday"),
        ("every month on the 32nd at 9", 19, ""),
        ("weekly at 9", 11, "on monday"),
        ("quarterly at 9", 14, "on the 1st"),
        ("every monday at 25:00", 16, "at 17:30"),
        ("every day at 9:00 and 17:30", 27, "second rule"),
        ("every weekday on the 1st at 9", 29, "two rules"),
        ("every 0 weeks on monday", 6, ""),
        ("every monday \x00", 13, ""),
        ("every monday at 9" + " and 10" * 99, 500, ""),
    ],
)
def test_what_is_not_clear_is_refused_with_what_to_write(text: str, index: int, fix: str) -> None:
    with pytest.raises(RuleInvalid) as refused:
        parse_rule(RuleSpec(text))
    assert (refused.value.code, refused.value.index) == ("english_unclear", index)
    assert fix in (refused.value.fix or "")


def test_other_languages_keep_their_texts() -> None:
    texts = (
        "every 5 minutes",
        "every day",
        "at 2027-01-01",
        "in 3 days",
        "on changes of stock",
        "0 9 * * MON",
        "dow(mon) h(9)",
        "@daily",
    )
    assert [text for text in texts if begins(text) and recognise(text) is Kind.ENGLISH] == []
