"""Reading a rule costs time that grows with its length, not with the square of it, whatever the text is made of.

Work is counted in executed lines of Python, which no other job on the machine changes; what runs below Python (patterns,
copies of texts) is held by a gross bound of CPU time at the longest text that is read.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from tests.effort import min_cpu_s

from lodger.engine.recurrence.parse import LONGEST_RRULE_SET, LONGEST_TEXT, parse_rule
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

NOW = datetime(2026, 11, 21, tzinfo=UTC)
START = "DTSTART:20260101T000000\n"


def listed(head: str, terms: list[str], tail: str = "", sign: str = ",") -> Callable[[int], str]:
    """A text of about so many characters: head, terms in turn, tail."""

    def text(length: int) -> str:
        found, size = [], len(head) + len(tail)
        while size < length - len(terms[len(found) % len(terms)]) - len(sign):
            found.append(terms[len(found) % len(terms)])
            size += len(found[-1]) + len(sign)
        return head + sign.join(found) + tail

    return text


def repeated(head: str, piece: str, tail: str = "") -> Callable[[int], str]:
    return listed(head, [piece], tail, sign="")


DATES = [f"{2026 + n // 28:04}{n % 12 + 1:02}{n % 28 + 1:02}T000000" for n in range(990)]
SHORT = {
    "cron-list": listed("0 9 ", [f"{n}" for n in range(1, 32)], " * *"),
    "cron-steps": listed("", ["0-59/7", "5/9", "40-10"], " * * * *"),
    "cron-nearest": listed("0 9 ", [f"{n}W" for n in range(1, 32)], " * *"),
    "cron-nth": listed("0 9 * * ", [f"{n}#{m}" for n in range(7) for m in range(1, 6)]),
    "cron-fields": repeated("0 ", "* "),
    "cron-spaces": repeated("0", " ", "9 * * *"),
    "cron-digits": repeated("", "1", " * * * *"),
    "cron-zone": repeated("CRON_TZ=", "A/", " * * * * *"),
    "schyntax-arguments": listed("m(", [f"{n}" for n in range(60)], ")"),
    "schyntax-dates": listed("dates(", [f"{n % 12 + 1}/{n % 28 + 1}" for n in range(84)], ")"),
    "schyntax-excluded": listed("doy(", [f"!{n}..-{n * 7 % 366 + 1}%3" for n in range(1, 366)], ")"),
    "schyntax-groups": repeated("{h(9)", "}{h(9)", "}"),
    "schyntax-open": repeated("", "{"),
    "schyntax-names": repeated("", "m("),
    "schyntax-excludes": repeated("m(", "!"),
    "schyntax-digits": repeated("m(", "9", ")"),
    "schyntax-dots": repeated("m(", "."),
    "interval": repeated("every ", "1h "),
    "interval-words": repeated("every ", "1h and ", "1s"),
    "iso": repeated("P", "1", "D"),
    "once": repeated("at ", "2"),
    "later": repeated("in ", "1d "),
    "changes": repeated("on changes of ", "a,"),
    "blank": repeated("", " "),
    "rrule-list": listed("FREQ=YEARLY;BYYEARDAY=", [f"{n}" for n in range(1, 367)]),
    "rrule-days": listed("FREQ=YEARLY;BYDAY=", [f"{n}MO" for n in range(1, 54)]),
    "rrule-semicolons": repeated("FREQ=DAILY", ";"),
    "rrule-digits": repeated("FREQ=DAILY;INTERVAL=", "1"),
}
LONG = {
    "rrule-dates": listed(START + "RDATE:", DATES),
    "rrule-dates-of-a-zone": listed(START + "RRULE:FREQ=HOURLY\nEXDATE;TZID=Asia/Tokyo:", DATES),
    "rrule-lines": listed(START + "RRULE:FREQ=SECONDLY\n", [f"EXDATE:{each}" for each in DATES], sign="\n"),
    "rrule-folded": repeated("RRULE:FREQ=DAILY;BYHOUR=1", "\n ,1"),
    "rrule-parameters": repeated("DTSTART", ";A=b", ":20260101T000000"),
    "rrule-quoted": repeated('DTSTART;TZID="', "a"),
    "rrule-starts": repeated("", START),
    "rrule-blank-lines": repeated("FREQ=DAILY", "\n"),
}
#: A thousand dates and no more are read.
MAX_DATES = 15_000


def read(text: str) -> None:
    with suppress(RuleInvalid):
        parse_rule(RuleSpec(text), now=NOW).text()


def lines(text: str) -> int:
    """How many lines of Python reading it executes."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    read(text)  # what is imported or kept is there from here on
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", [*SHORT, *LONG])
def test_a_text_eight_times_as_long_is_at_most_about_eight_times_the_work(name: str) -> None:
    longest = LONGEST_TEXT if name in SHORT else MAX_DATES if "-dates" in name else LONGEST_RRULE_SET // 3
    shape = SHORT.get(name) or LONG[name]
    assert lines(shape(longest)) <= 10 * lines(shape(longest // 8)) + 200
    cost = min_cpu_s(lambda: read(shape(longest)), 2)
    assert cost < 0.5, "twenty times and more what it takes"
