"""Rules in English, such as ``every weekday at 9``: a text is accepted when it has one meaning, and refused with what to write."""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from lodger.engine.recurrence.calendar.civil import instant_of
from lodger.engine.recurrence.calendar.zones import Zone
from lodger.engine.recurrence.english.grammar import read
from lodger.engine.recurrence.english.mends import begins, refused, reworded
from lodger.engine.recurrence.english.phrase import Phrase, last_second
from lodger.engine.recurrence.english.rule import group_of
from lodger.engine.recurrence.english.vocabulary import Unread
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.groups import GroupedRule
from lodger.engine.recurrence.instant import instant_us
from lodger.engine.recurrence.rule import DstPolicy, Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.union import by_granularity

__all__ = ["Phrase", "begins", "parse", "recurrence"]
#: Longest text of a rule in English, in characters.
MAX_LENGTH = 500


@lru_cache(maxsize=1024)
def parse(text: str) -> Phrase:
    """Read a rule in English.

    Raises:
        RuleInvalid: ``english_unclear``, with the position, and texts of the same wish that are accepted.
    """
    if len(text) > MAX_LENGTH:
        raise RuleInvalid("english_unclear.long", count=len(text), maximum=MAX_LENGTH, index=MAX_LENGTH)
    try:
        return read(text)
    except Unread as unread:
        with suppress(Unread):
            return read(reworded(text))
        raise refused(text, unread) from None


def recurrence(phrase: Phrase, start: int | None, home: Zone, dst: DstPolicy, *, bounded: bool = True) -> Recurrence:
    """Put a phrase under its zone.

    Args:
        start: local second of the schedule's start; None counts from 1900 (intervals from 1970), without a first slot.
        bounded: whether it is the first instant that may be a slot; otherwise steps are only counted from it.

    Raises:
        RuleInvalid: ``english_unclear``: a date without a year, and no start from which the next one counts.
    """
    clauses = [each.started(start, bounded=bounded) for each in phrase.clauses]
    if any(bound is not None and bound.year is None for each in clauses for bound in (each.first, each.last)):
        raise RuleInvalid("english_unclear.year", index=0)
    if any(each.last and each.begins is not None and last_second(each.last) < each.begins for each in clauses):
        raise RuleInvalid("english_unclear.bounds", index=0)
    one = clauses[0]  # an interval stands alone
    if not one.period_us:
        return by_granularity(GroupedRule(map(group_of, clauses)), home, dst)
    anchor = None if one.begins is None else home.instant(one.begins)
    every = Every(one.period_us, 0 if anchor is None else anchor * 1_000_000, starts=anchor is not None and one.bounded)
    last = None if one.last is None else instant_of(home.instant(last_second(one.last)))
    return every if last is None else replace(every, last_us=instant_us(last))
