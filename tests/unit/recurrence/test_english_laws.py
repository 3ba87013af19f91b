"""Laws of rules in English, over phrases that are put together from parts with a known meaning."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import groupby, islice, pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.recurrence.plain_phrases import START, meanings

from lodger.engine.recurrence.parse import parse_rule, resolved
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Parts of a phrase by kind: words, and the conditions or times of the table's reading.
DAYS = {
    "every day": "*", "weekdays": "mon-fri", "on weekends": "sat,sun", "every Monday": "mon", "on Tuesdays and Fridays": "tue,fri",
    "Mon-Thu": "mon-thu", "on the 1st": "d1", "on the 1st and the 15th of the month": "d1,15", "on the last day of the month": "d-1",
    "on the first Monday of the month": "1mon", "every second Tuesday of the month": "2tue", "the last business day of the month": "wd-1",
    "every 3 days": "n3", "every two weeks on Friday": "w2 fri", "every other week on Monday and Thursday": "w2 mon,thu",
    "quarterly": "m1,4,7,10 d1", "first Monday of each quarter": "m1,4,7,10 1mon",
    "every 25 December": "12-25", "on Friday the 13th": "fri d13",
    "every month on the 20th": "d20", "every 2 months on the 5th": "mo2 d5",
}  # fmt: skip
TIMES = {
    "at 9": "9:00", "at 9am": "9:00", "at 17:30": "17:30", "at noon": "12:00", "at 9 and 17:30": "9:00,17:30",
    "at 1, 3 and 5 pm": "13:00,15:00,17:00",
    "every 15 minutes from 9:00 to 11:00": "9:00-11:00/15m", "every hour between 8 and 18": "8:00-18:00/1h", "every 30 minutes": "/30m",
    "every hour at minute 20": "0:20-23:20/1h", "at half past 7": "7:30",
}  # fmt: skip
MONTHS = {"": "", "in March": "m3", "in June, July and August": "m6,7,8", "from November to February": "m11,12,1,2"}
BUT = {
    "": "",
    "except Fridays": "!fri",
    "except in August": "!m8",
    "except on 25 December": "!12-25",
    "except weekends": "!sat,sun",
    "except the 1st": "!d1",
}
BOUNDS = {
    "": "",
    "until 2029-10-15": "..2029-10-15",
    "starting 2028-02-02": "2028-02-02..",
    "from 2028-02-02 to 2029-10-15": "2028-02-02.. ..2029-10-15",
}
KINDS = (DAYS, TIMES, MONTHS, BUT, BOUNDS)
PARTS = st.tuples(*(st.sampled_from(list(kind)) for kind in KINDS))


END = START.replace(year=2036)


def first_slots(found: Iterable[datetime]) -> list[datetime]:
    """Return the first slots, and the first ones after the bounds of the drawn phrases."""
    early, late = [], []
    for slot in found:
        if slot >= END or len(late) == 20:
            break
        if len(early) < 60:
            early.append(slot)
        elif slot.year > 2029:
            late.append(slot)
    return early + late


def slots(text: str) -> list[datetime] | None:
    """Return slots of a phrase; None when it is refused."""
    try:
        rule = parse_rule(resolved(RuleSpec(text), START))
    except RuleInvalid:
        return None
    early = list(islice(rule.between(START, END), 60))
    if len(early) < 60:
        return early
    return early + list(
        islice(rule.between(max(early[-1] + timedelta(seconds=1), START.replace(year=2030, month=1, day=1)), END), 20)
    )


def days(text: str) -> set[date] | None:
    """Return the days of five years with a slot, and some slots; None when the phrase is refused."""
    found = slots(text)
    if found is None:
        return None
    rule, begin = parse_rule(resolved(RuleSpec(text), START)), START.replace(year=2027, month=1, day=1)
    days = (begin + timedelta(days=each) for each in range(5 * 366))
    return {
        *found,
        *(slot.date() for day in days if isinstance(slot := rule.next_after(day, inclusive=True), datetime)),
    }


def phrase(parts: tuple[str, ...]) -> str:
    """Join parts to a phrase."""
    return " ".join(part for part in parts if part)


@given(PARTS)
def test_an_accepted_phrase_has_the_slots_of_its_parts(parts: tuple[str, ...]) -> None:
    found = slots(phrase(parts))
    counts_from_start = any(word in parts[0] for word in ("3 days", "weeks", "other week", "2 months"))
    if found is None or (counts_from_start and ("starting" in parts[4] or "2028-02-02" in parts[4])):
        return  # a step counts from the day that the phrase names, which the table has no word for
    when, times, *others = (kind[part] for kind, part in zip(KINDS, parts, strict=True))
    (meaning,) = meanings(f"{' '.join([when, *(each for each in others if each)])} @ {times}")
    assert found == first_slots(meaning.slots())


@given(PARTS)
def test_removing_a_part_changes_the_slots_or_is_refused(parts: tuple[str, ...]) -> None:
    found = days(phrase(parts))
    for place, part in enumerate(parts if slots(phrase(parts)) else ()):
        rest = (*parts[:place], "", *parts[place + 1 :])
        # Within a short time, or on days years apart, a part may happen to meet no day.
        rare = (parts[4] and place < 4) or (parts[0] == "on Friday the 13th" and part in BOUNDS)
        if part not in ("", "every day") and phrase(rest) and not rare:
            assert days(phrase(rest)) != found, f"{part!r} of {phrase(parts)!r} has no effect"


@given(PARTS)
def test_the_order_of_the_parts_changes_nothing(parts: tuple[str, ...]) -> None:
    found = slots(phrase(parts))
    for order in islice(permutations([part for part in parts if part]), 6):
        # What follows an exception may belong to it, and "August first" is a date.
        refused = any(a in BUT or (a in MONTHS and "first" in b) for a, b in pairwise(order))
        assert slots(phrase(order)) in ([None, found] if refused else [found]), (
            f"{phrase(order)!r} and {phrase(parts)!r}"
        )


@given(PARTS)
def test_the_sentence_of_an_accepted_phrase_reads_back(parts: tuple[str, ...]) -> None:
    found = slots(phrase(parts))
    if found:
        sentence = parse_rule(resolved(RuleSpec(phrase(parts)), START)).text()
        assert slots(sentence) == found, f"{phrase(parts)!r}: {sentence}"


CLAUSES = st.tuples(st.sampled_from(list(DAYS)), st.sampled_from(list(TIMES)))


@given(CLAUSES, CLAUSES, st.sampled_from([", ", " and ", "; "]))
def test_two_clauses_are_two_rules(one: tuple[str, str], other: tuple[str, str], sign: str) -> None:
    text = phrase(one) + sign + phrase(other)
    found = slots(text)
    if found is None:
        return
    (first,), (second,) = (meanings(f"{DAYS[days]} @ {TIMES[times]}") for days, times in (one, other))
    assert found == first_slots(slot for slot, _ in groupby(merge(first.slots(), second.slots()))), text


SOUP = [word for kind in KINDS for part in kind if part for word in (part, *part.split())]
OTHERS = [
    "and",
    ",",
    ";",
    "or",
    "March 1-5",
    "of March",
    "every quarter",
    "counted from",
    "except",
    "last",
    "2nd last",
    "at 9",
    ":30",
]


@given(st.lists(st.sampled_from(SOUP + OTHERS), min_size=2, max_size=7))
def test_words_of_rules_in_any_order_are_read_or_refused(words: list[str]) -> None:
    slots(" ".join(words))
