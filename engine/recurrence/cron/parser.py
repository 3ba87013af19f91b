"""Text to cron rule: 5 fields, or 6 with the seconds first, or an ``@`` word, after optional assignments.

Assignments stand before the fields as in a crontab: ``TZ=`` or ``CRON_TZ=`` (IANA zone) and ``DAYS=both`` or
``DAYS=either`` (how day of month and day of week belong together; without it, as Debian's cron reads them).
"""

import re
from dataclasses import dataclass

from lodger.engine.recurrence.calendar.dial import Dial
from lodger.engine.recurrence.cron.days import (
    ALL_WEEKDAYS,
    CronDays,
    DayReading,
    FromEnd,
    MonthDays,
    WeekDays,
)
from lodger.engine.recurrence.cron.field import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, terms
from lodger.engine.recurrence.cron.rule import CronRule
from lodger.engine.recurrence.rule_errors import RuleInvalid

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
_FROM_END = re.compile(r"L(?:-([0-9]{1,2}))?(W)?\Z", re.IGNORECASE)
_NEAREST = re.compile(r"([0-9]{1,2})W\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CronText:
    """A rule with the zone that its text names (None when it names none) and the position of that zone."""

    rule: CronRule
    tz: str | None
    tz_index: int


def _month_days(text: str, index: int) -> MonthDays:
    numbers, from_end, nearest = 0, [], []
    for term, at in terms(DAY, text, index):
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
    numbers, nth, last = 0, [], []
    for term, at in terms(WEEKDAY, text, index):
        day, hash_sign, which = term.partition("#")
        if hash_sign:
            if which not in ("1", "2", "3", "4", "5"):
                raise WEEKDAY.wrong(term, at + len(day) + 1, "cron_bad_field.nth")
            nth.append(((WEEKDAY.number(day, at) - 1) % 7, int(which)))
        elif term.upper() == "L":
            raise WEEKDAY.wrong(
                term,
                at,
                "cron_bad_field.last",
            )
        elif term[-1] in "Ll":
            last.append((WEEKDAY.number(term[:-1], at) - 1) % 7)
        else:
            numbers |= WEEKDAY.term(term, at)
    sundays = (numbers | numbers >> 7) & 1
    weekly = ((numbers >> 1) & (ALL_WEEKDAYS >> 1)) | sundays << 6
    return WeekDays(weekly, tuple(dict.fromkeys(nth)), tuple(dict.fromkeys(last)), text[0] in "*?")


def _assigned(pieces: list[tuple[str, int]]) -> tuple[str | None, int, DayReading]:
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
    if len(pieces) == 1 and pieces[0][0].startswith("@"):
        word, at = pieces[0]
        fields = _WORDS.get(word.lower()) if word.isascii() else None
        if fields is None:
            raise RuleInvalid("cron_unknown_word", word=word, macros=sorted(_WORDS), index=at)
        return [(field, at) for field in fields.split()]
    if len(pieces) not in (5, 6):
        raise RuleInvalid(
            "cron_field_count",
            count=len(pieces),
            index=pieces[6][1] if len(pieces) > 6 else pieces[-1][1] if pieces else 0,
        )
    return pieces


def parse(text: str) -> CronText:
    """Read a cron expression.

    Raises:
        RuleInvalid: with the position of the first mistake.
    """
    pieces = [(match[0], match.start()) for match in _PIECE.finditer(text)]
    tz, tz_index, reading = _assigned(pieces)
    pieces = _expanded(pieces)
    if len(pieces) == 5:
        pieces = [("0", pieces[0][1]), *pieces]
    sets = []
    for field, (piece, at) in zip((SECOND, MINUTE, HOUR), pieces, strict=False):
        bits = 0
        for term, term_at in terms(field, piece, at):
            bits |= field.term(term, term_at)
        sets.append(bits)
    (day_text, day_at), (month_text, month_at), (week_text, week_at) = pieces[3:]
    months = 0
    month_days = _month_days(day_text, day_at)
    for term, term_at in terms(MONTH, month_text, month_at):
        months |= MONTH.term(term, term_at)
    days = CronDays(month_days, months, _week_days(week_text, week_at), reading)
    recurring = pieces[1][0].startswith("*") or pieces[2][0].startswith("*")
    return CronText(CronRule.of(Dial(sets[2], sets[1], sets[0]), days, recurring=recurring), tz, tz_index)
