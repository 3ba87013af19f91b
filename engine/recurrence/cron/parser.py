"""Text to cron rule: 5 fields, or 6 with the seconds first, or an ``@`` word, after optional assignments.

Assignments stand before the fields as in a crontab: ``TZ=`` or ``CRON_TZ=`` (IANA zone) and ``DAYS=both`` or
``DAYS=either`` (how day of month and day of week belong together; without it, as Debian's cron reads them).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from lodger.engine.recurrence.calendar.dial import Dial, stride
from lodger.engine.recurrence.calendar.zones import known_zone
from lodger.engine.recurrence.cron.days import ALL_WEEKDAYS, CronDays, DayReading, FromEnd, MonthDays, WeekDays
from lodger.engine.recurrence.cron.rule import rule_of
from lodger.engine.recurrence.groups import GroupedRule
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
        """Return the value of a number or a name in this field; ``index`` is its position in the whole text."""
        for number, full in enumerate(self.names, self.first_name) if len(text) > 2 else ():
            if full.startswith(text.upper()):
                return number
        if not _DIGITS.match(text) or not self.low <= int(text) <= self.high:
            raise self.wrong(text, index, "cron_bad_field.named" if self.names else "cron_bad_field")
        return int(text)

    def terms(self, text: str, index: int) -> Iterator[tuple[str, int]]:
        """Yield each comma-separated term with its position."""
        for term in text.split(","):
            if not term:
                raise self.wrong(term, index, "cron_bad_field.empty")
            yield term, index
            index += len(term) + 1

    def set_of(self, text: str, index: int) -> int:
        """Return the numbers that the terms of a field stand for, as a set."""
        return reduce(or_, (self.term(*term) for term in self.terms(text, index)))

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
            if step > self.high - self.low + 1:
                raise self.wrong(steps, at, "cron_bad_field.step_beyond")
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


_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PIECE = re.compile(r"[^ \t\r\n]+")
#: What follows the five fields in a crontab: a path, a user or a program, and no day of the week.
_COMMAND = re.compile(r"(?!(?:sun|mon|tue|wed|thu|fri|sat)[a-z]*(?:[-,#/L]|\Z))[~./\"'$#a-z]", re.IGNORECASE)
#: Days of the week by number, after which Quartz, where 1 is Sunday, differs.
_NUMBERED_DAY = re.compile(r"(?<![#/0-9])[0-7](?![0-9])")
_SETTING = re.compile(r"(?!(?:CRON_)?TZ=|DAYS=)[A-Z_]+=\S*[ \t]*")
_YEARS = re.compile(r"[12][0-9]{3}\b")
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
#: Schedules of Amazon: minute, hour, day, month, weekday (1 is Sunday) and year.
_AMAZON = re.compile(r"[ \t]*cron\(([^()]*)\)[ \t]*", re.IGNORECASE)
_AMAZON_DAY = re.compile(r"(?<![#/0-9])[1-7](?![0-9])")
_FROM_END = re.compile(r"L(?:-([0-9]{1,2}))?(W)?\Z", re.IGNORECASE)
_NEAREST = re.compile(r"([0-9]{1,2})W\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CronText:
    """A rule with the zone that its text names (None when it names none) and the position of that zone."""

    rule: GroupedRule
    tz: str | None
    tz_index: int


def _month_days(text: str, index: int) -> MonthDays:
    """Return the days that a day-of-month field means; ``index`` is its position in the whole text."""
    numbers, from_end, nearest = 0, [], []
    for term, at in DAY.terms(text, index):
        if match := _FROM_END.match(term):
            before = int(match[1] or 0)
            if before > 30:
                raise DAY.wrong(term, at, "cron_bad_field.from_end")
            from_end.append(FromEnd(before, nearest_weekday=bool(match[2])))
        elif match := _NEAREST.match(term):
            nearest.append(DAY.number(match[1], at))
        else:
            numbers |= DAY.term(term, at)
    return MonthDays(numbers, tuple(dict.fromkeys(from_end)), tuple(dict.fromkeys(nearest)), text[0] in "*?")


def _week_days(text: str, index: int) -> WeekDays:
    """Return the days that a day-of-week field means; ``index`` is its position in the whole text."""
    numbers, nth = 0, []
    for term, at in WEEKDAY.terms(text, index):
        day, hash_sign, which = term.partition("#")
        if hash_sign:
            if which not in ("1", "2", "3", "4", "5"):
                raise WEEKDAY.wrong(term, at + len(day) + 1, "cron_bad_field.nth")
            nth.append(((WEEKDAY.number(day, at) - 1) % 7, int(which)))
        elif term.upper() == "L":
            raise WEEKDAY.wrong(term, at, "cron_bad_field.last")
        elif term[-1] in "Ll":
            nth.append(((WEEKDAY.number(term[:-1], at) - 1) % 7, -1))
        else:
            numbers |= WEEKDAY.term(term, at)
    sundays = (numbers | numbers >> 7) & 1
    weekly = ((numbers >> 1) & (ALL_WEEKDAYS >> 1)) | sundays << 6
    return WeekDays(weekly, tuple(dict.fromkeys(nth)), text[0] in "*?")


def _assigned(pieces: list[tuple[str, int]]) -> tuple[str | None, int, DayReading]:
    """Take the assignments before the fields; return the zone that they set, its position in the text, and the reading of days."""
    tz, tz_index, reading = None, 0, DayReading.DEBIAN
    while pieces and "=" in pieces[0][0]:
        piece, at = pieces.pop(0)
        name, _, value = piece.partition("=")
        value_at = at + len(name) + 1
        if name in ("TZ", "CRON_TZ") and tz is None and value:
            tz, tz_index = value, value_at
        elif name == "DAYS" and value in (DayReading.BOTH, DayReading.EITHER):
            reading = DayReading(value)
        else:
            raise RuleInvalid("cron_bad_assignment", piece=piece, index=at)
    return tz, tz_index, reading


def _expanded(pieces: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the fields that a word such as ``@daily`` stands for."""
    if len(pieces) == 1 and pieces[0][0].startswith("@"):
        word, at = pieces[0]
        fields = _WORDS.get(word.lower()) if word.isascii() else None
        if fields is None:
            raise RuleInvalid("cron_unknown_word", word=word, macros=sorted(_WORDS), index=at)
        return [(field, at) for field in fields.split()]
    if len(pieces) > 5 and _COMMAND.match(pieces[5][0]):
        fields = " ".join(piece for piece, _ in pieces[:5])
        if len(pieces) == 6 and known_zone(pieces[5][0]):
            raise RuleInvalid("cron_field_count.zone", zone=pieces[5][0], fields=fields, index=pieces[5][1])
        raise RuleInvalid("cron_field_count.command", command=pieces[5][0], fields=fields, index=pieces[5][1])
    if len(pieces) == 7 and _YEARS.match(pieces[6][0]):
        raise RuleInvalid("cron_field_count.year", year=pieces[6][0], index=pieces[6][1])
    if len(pieces) == 7 and pieces[6][0] in "*?":
        pieces = pieces[:6]  # the years of Quartz, all of them
        _check_quartz(pieces)
    elif len(pieces) == 6 and "?" in (pieces[3][0], pieces[5][0]):
        _check_quartz(pieces)
    if len(pieces) not in (5, 6):
        raise RuleInvalid(
            "cron_field_count",
            count=len(pieces),
            index=pieces[6][1] if len(pieces) > 6 else pieces[-1][1] if pieces else 0,
        )
    return pieces


def _check_quartz(pieces: list[tuple[str, int]]) -> None:
    """Refuse weekdays by number in the form of Quartz and Spring, of which one counts from 1 and one from 0."""
    text, at = pieces[5]
    if "0" in text or not _NUMBERED_DAY.search(text):
        return
    head = " ".join(piece for piece, _ in pieces[:5])
    spring = f"{head} {_NUMBERED_DAY.sub(lambda day: _DAY_NAMES[int(day[0])], text)}"
    quartz = f"{head} {_NUMBERED_DAY.sub(lambda day: _DAY_NAMES[int(day[0]) - 1], text)}"
    raise RuleInvalid("cron_weekday_numbers", text=text, quartz=quartz, spring=spring, index=at)


def _check_lines(text: str) -> None:
    """Refuse a crontab of several lines."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    rules = [each for each in lines if len(each.split()) >= 5]
    if len(rules) > 1 or any(_SETTING.match(each) for each in lines):
        shown = ", ".join(f"`{_SETTING.sub('', each)[:40]}`" for each in rules[:3]) or "`0 9 * * *`"
        raise RuleInvalid("cron_field_count.lines", count=len(lines), lines=shown, index=0)


def _of_amazon(pieces: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the five fields that the six of Amazon mean."""
    if len(pieces) != 6:
        raise RuleInvalid("cron_field_count.amazon", count=len(pieces), index=pieces[-1][1] if pieces else 0)
    if pieces[5][0] not in "*?":
        raise RuleInvalid("cron_field_count.year", year=pieces[5][0], index=pieces[5][1])
    weekdays, at = pieces[4]
    return [*pieces[:4], (_AMAZON_DAY.sub(lambda day: str(int(day[0]) - 1), weekdays), at)]


def parse(text: str) -> CronText:
    """Read a cron expression.

    Raises:
        RuleInvalid: with the position of the first mistake.
    """
    _check_lines(text)
    amazon = _AMAZON.fullmatch(text)
    begin, end = amazon.span(1) if amazon else (0, len(text))
    pieces = [(match[0], match.start()) for match in _PIECE.finditer(text, begin, end)]
    if amazon:
        pieces = _of_amazon(pieces)
    tz, tz_index, reading = _assigned(pieces)
    pieces = _expanded(pieces)
    if len(pieces) == 5:
        pieces = [("0", pieces[0][1]), *pieces]
    seconds, minutes, hours = (
        field.set_of(*piece) for field, piece in zip((SECOND, MINUTE, HOUR), pieces, strict=False)
    )
    days = CronDays(_month_days(*pieces[3]), MONTH.set_of(*pieces[4]), _week_days(*pieces[5]), reading)
    recurring = pieces[1][0].startswith("*") or pieces[2][0].startswith("*")
    return CronText(rule_of(Dial(hours, minutes, seconds), days, recurring=recurring), tz, tz_index)
