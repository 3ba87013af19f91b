"""Words of English rules, and the split of a text into tokens."""

import re
from typing import NamedTuple

from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS

_SHORT_DAYS = ("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun")
#: Weekday by name, Monday 0.
DAY_OF = {
    name: number
    for number, (full, short) in enumerate(zip(WEEKDAYS, _SHORT_DAYS, strict=True))
    for name in (full.lower(), f"{full.lower()}s", *short.split())
}
#: Months by name, January 1.
MONTH_OF = {name: number for number, full in enumerate(MONTHS) if full for name in (full.lower(), full[:3].lower())}
MONTH_OF["sept"] = 9
#: Sets of weekdays with a name.
DAY_SETS = {
    "weekday": frozenset(range(5)), "weekdays": frozenset(range(5)),
    "weekend": frozenset({5, 6}), "weekends": frozenset({5, 6}),
}  # fmt: skip
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_UNIT_NAMES = {
    "SECONDLY": "second seconds sec secs", "MINUTELY": "minute minutes min mins", "HOURLY": "hour hours",
    "DAILY": "day days", "WEEKLY": "week weeks", "MONTHLY": "month months", "YEARLY": "year years",
}  # fmt: skip
#: Frequency of RFC 5545 by the unit's name.
UNITS = {name: freq for freq, names in _UNIT_NAMES.items() for name in names.split()}
#: Frequency and interval of an adverb.
ADVERBS = {
    "hourly": ("HOURLY", 1), "daily": ("DAILY", 1), "weekly": ("WEEKLY", 1), "fortnightly": ("WEEKLY", 2),
    "monthly": ("MONTHLY", 1), "quarterly": ("MONTHLY", 3), "yearly": ("YEARLY", 1), "annually": ("YEARLY", 1),
}  # fmt: skip
#: Words with two meanings, and what to write.
AMBIGUOUS = {
    "biweekly": "every 2 weeks on monday at 9, or every monday and thursday at 9",
    "bimonthly": "every 2 months on the 1st at 9, or every month on the 1st and the 15th at 9",
    "biannually": "every year on the 1st of january and july at 9, or every 2 years on the 1st of january at 9",
    "next": "at 2027-01-01T09:00 for one slot, or every friday at 9",
    "twice": "every day at 9:00 and 17:00",
    "morning": "every day at 9:00",
    "afternoon": "every day at 15:00",
    "evening": "every day at 18:00",
    "night": "every day at 22:00",
}
RANGE = {"through", "thru", "to", "until", "till", "-", "–"}
AND = {",", "and", "&"}

_TOKEN = re.compile(r"[ \t]*(\([^()]{1,80}\)|[0-9]{1,2}(?::[0-9]{2}){1,2}|[0-9]{1,4}(?:st|nd|rd|th)?|[a-z]+|[,&–-])")


class Token(NamedTuple):
    """A word, number, time or sign in lower case (a zone as written), and its place: the 0-based position in the text."""

    text: str
    place: int


def tokens(text: str) -> list[Token]:
    """Split a rule; RuleInvalid (``english_unclear``) at a character that no token begins with."""
    found, at = [], 0
    end = len(text.rstrip(" \t\r\n."))
    lower = text.lower()
    while at < end:
        match = _TOKEN.match(lower, at, end)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip(" \t"))
            raise RuleInvalid("english_unclear.word", text=text[at : at + 20], index=at)
        word = match[1]
        found.append(Token(text[match.start(1) : match.end(1)] if word[0] == "(" else word, match.start(1)))
        at = match.end()
    return found
