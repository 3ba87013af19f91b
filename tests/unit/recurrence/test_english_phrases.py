"""Phrases of the tables mean what the tables say, which were written without a look at the grammar."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from pathlib import Path

import pytest
from tests.unit.recurrence.plain_phrases import START, meanings, table

from lodger.engine.recurrence.parse import parse_rule, recognise, resolved
from lodger.engine.recurrence.rule import Kind, Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

PHRASES = table("english_slots.txt")
REFUSALS = table("english_refusals.txt")
#: Slots of a phrase that are compared, and the end of them.
_COMPARED, _END = 40, START.replace(year=2040)


def started(text: str, tz: str | None = None) -> Recurrence:
    """Return the rule of a schedule that begins with the table."""
    return parse_rule(resolved(RuleSpec(text, tz=tz), START))


def slots(rule: Recurrence) -> list[datetime]:
    """Return the slots of a rule that are compared."""
    return list(islice(rule.between(START, _END), _COMPARED))


def refusal(phrase: str) -> RuleInvalid | None:
    """Return the error of a phrase."""
    try:
        started(phrase)
    except RuleInvalid as error:
        return error
    return None


def wrong(phrase: str, expected: Iterator[datetime]) -> str | None:
    """Describe what is wrong with the slots of a phrase, or with those of its sentence."""
    try:
        rule = started(phrase)
    except RuleInvalid as error:
        return f"{phrase!r} is refused: {error.what}"
    found = slots(rule)
    if found != [slot for slot in islice(expected, _COMPARED) if slot < _END]:
        return f"{phrase!r} means: {rule.text()}"
    again = parse_rule(RuleSpec(rule.text()))
    return (
        None if (again.text(), slots(again)) == (rule.text(), found) else f"{rule.text()!r} reads as {again.text()!r}"
    )


def test_a_phrase_has_the_slots_that_a_person_means_and_its_sentence_reads_back_as_them() -> None:
    assert len(PHRASES) >= 400
    united = ((phrase, merge(*(each.slots() for each in meanings(meaning)))) for phrase, meaning in PHRASES)
    assert [each for phrase, found in united if (each := wrong(phrase, (slot for slot, _ in groupby(found))))] == []


def of_rules(meaning: str) -> Iterator[datetime]:
    """Yield the slots of a meaning in cron and RRULE."""
    zone = re.match(r"([A-Z][a-z]+/\w+) ", meaning)
    meaning = meaning[zone.end() if zone else 0 :]
    rules, _, bound = meaning.partition(" until ")
    rules, _, but = rules.partition(" except ")
    end = datetime.fromisoformat(f"{bound}T00:00:00+00:00") + timedelta(days=1) if bound else _END
    found = (
        started(each.replace("\\n", "\n"), zone[1] if zone else None).between(START, end) for each in rules.split(" + ")
    )
    return (slot for slot, _ in groupby(merge(*found)) if f"{slot.day}/{slot.month}" != but)


def test_a_phrase_has_the_slots_of_the_rules_that_say_the_same() -> None:
    meaning, failures, count = "", [], 0
    for line in (Path(__file__).parent / "english_equals.txt").read_text().splitlines():
        if line.startswith("= "):
            meaning = line[2:]
        elif line and line[0] != "#":
            count += 1
            failures.append(wrong(line, of_rules(meaning)))
    assert [each for each in failures if each] == []
    assert count >= 400


def test_a_refusal_names_accepted_texts_that_say_what_was_meant() -> None:
    assert len(REFUSALS) >= 580
    failures = []
    for phrase, mends in REFUSALS:
        error = refusal(phrase)
        if error is None or error.index is None or not 0 <= error.index <= len(phrase):
            failures.append(f"{phrase!r} is accepted, or has no position")
            continue
        missing = [mend for mend in mends.split(" | ") if mend not in (error.fix or "")]
        failures += [f"{phrase!r}: {missing} not in {error.fix}"] if missing else []
        for text in (error.fix or "").split("`")[1::2]:
            if refusal(text) or recognise(text) not in Kind:
                failures.append(f"{phrase!r}: {text!r} is refused")
    assert failures == []


@pytest.mark.parametrize(
    "phrase",
    [
        "Monday morning at 9 and evening at 6",
        "at 9 every morning and 6 every evening",
        "daily at 7 o'clock in the evening",
    ],
)
def test_a_refusal_puts_no_other_day_or_time_in_place_of_a_part_of_the_day(phrase: str) -> None:
    error = refusal(phrase)
    assert error is not None
    texts = (error.fix or "").split("`")[1::2]
    assert [text for text in texts if "every day at 6" in text or "18:00" in text] == []
