"""One field of a cron expression: its range, its names, and how its terms are read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lodger.engine.recurrence.calendar.dial import stride
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS

_DIGITS = re.compile(r"[0-9]{1,4}\Z")


@dataclass(frozen=True, slots=True)
class Field:
    """The values that a field accepts.

    Attributes:
        name: as errors call it.
        low: smallest number.
        high: largest number.
        modulus: numbers that differ by it mean the same (7 for the weekday, where 0 and 7 are Sunday); 0
            for none.
        names: upper-case names of the numbers, from ``first_name`` on; three letters of one are enough.
        first_name: the number of the first name.
    """

    name: str
    low: int
    high: int
    modulus: int = 0
    names: tuple[str, ...] = ()
    first_name: int = 0

    def wrong(self, text: str, index: int, code: str) -> RuleInvalid:
        """Return the error for a term of this field."""
        return RuleInvalid(code, text=text, name=self.name, low=self.low, high=self.high, index=index)

    def number(self, text: str, index: int) -> int:
        """Value of a number or a name."""
        for number, full in enumerate(self.names, self.first_name) if len(text) > 2 else ():
            if full.startswith(text.upper()):
                return number
        if not _DIGITS.match(text) or not self.low <= int(text) <= self.high:
            raise self.wrong(text, index, "cron_bad_field.named" if self.names else "cron_bad_field")
        return int(text)

    def term(self, text: str, index: int) -> int:
        """Set of the numbers that ``*``, ``a``, ``a-b``, each with an optional ``/n``, stand for.

        A range with its start above its end wraps (``22-2``, ``FRI-MON``, ``NOV-FEB``) and a step keeps
        counting across the edge. ``a/n`` runs from a to the largest number, as in cronsim.
        """
        body, slash, steps = text.partition("/")
        if body == "?" and self not in (DAY, WEEKDAY):
            raise self.wrong(text, index, "cron_bad_field.question")
        step = 1
        if slash:
            at = index + len(body) + 1
            if not _DIGITS.match(steps) or not int(steps):
                raise self.wrong(steps, at, "cron_bad_field.step")
            step = int(steps)
        if body in ("*", "?"):
            return stride(self.low, self.high + 1, step)
        start, dash, end = body.partition("-")
        first = self.number(start, index)
        if not dash:
            return stride(first, self.high + 1, step) if slash else 1 << first
        last = self.number(end, index + len(start) + 1)
        if last >= first:
            return stride(first, last + 1, step)
        size = self.modulus or self.high - self.low + 1
        wrapped = 0
        for ahead in range(0, (last - first) % size + 1, step):
            wrapped |= 1 << (first - self.low + ahead) % size + self.low
        return wrapped


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, names=tuple(name.upper() for name in MONTHS[1:]), first_name=1)
WEEKDAY = Field("day of week", 0, 7, modulus=7, names=tuple(name.upper() for name in (WEEKDAYS[6], *WEEKDAYS[:6])))


def terms(field: Field, text: str, index: int) -> Iterator[tuple[str, int]]:
    """Return each comma-separated term with its position."""
    for term in text.split(","):
        if not term:
            raise field.wrong(term, index, "cron_bad_field.empty")
        yield term, index
        index += len(term) + 1
