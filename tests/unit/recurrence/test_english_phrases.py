"""Phrases of the table mean what the table says, which was written without a look at the grammar."""

from heapq import merge
from itertools import groupby, islice

import pytest
from tests.unit.recurrence.plain_phrases import START, meanings, table

from lodger.engine.recurrence.parse import parse_rule, recognise, resolved
from lodger.engine.recurrence.rule import Kind, Recurrence, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

PHRASES = table("english_slots.txt")
REFUSALS = table("english_refusals.txt")
#: Slots of a phrase that are compared, and the end of them.
_COMPARED, _END = 150, START.replace(year=2040)


def started(text: str) -> Recurrence:
    """Return the rule of a schedule that begins with the table."""
    return parse_rule(resolved(RuleSpec(text), START))


@pytest.mark.parametrize(("phrase", "meaning"), PHRASES, ids=[phrase for phrase, _ in PHRASES])
def test_a_phrase_has_the_slots_that_a_person_means(phrase: str, meaning: str) -> None:
    expected = (slot for slot, _ in groupby(merge(*(each.slots() for each in meanings(meaning)))))
    found = started(phrase).between(START, _END)
    assert list(islice(found, _COMPARED)) == [slot for slot in islice(expected, _COMPARED) if slot < _END]


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in PHRASES])
def test_the_sentence_of_a_phrase_reads_back_as_the_same_slots(phrase: str) -> None:
    rule = started(phrase)
    again = parse_rule(RuleSpec(rule.text()))
    assert again.text() == rule.text()
    assert list(islice(again.between(START, _END), 50)) == list(islice(rule.between(START, _END), 50))


@pytest.mark.parametrize(("phrase", "mends"), REFUSALS, ids=[phrase for phrase, _ in REFUSALS])
def test_a_refusal_names_the_text_to_write(phrase: str, mends: str) -> None:
    with pytest.raises(RuleInvalid) as refused:
        started(phrase)
    assert refused.value.fix is not None
    for mend in mends.split(" | "):
        assert mend in refused.value.fix
    assert refused.value.index is not None
    assert 0 <= refused.value.index <= len(phrase)


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in REFUSALS])
def test_each_text_that_a_refusal_names_is_accepted(phrase: str) -> None:
    with pytest.raises(RuleInvalid) as refused:
        started(phrase)
    for text in refused.value.fix.split("`")[1::2]:
        assert recognise(text) in Kind
        started(text)


def test_the_tables_are_large() -> None:
    assert len(PHRASES) >= 400
    assert len(REFUSALS) >= 227
