"""The grammar of rules in English, by recursive descent: each token belongs to exactly one part of one clause.

=========  ==========================================================================================================
rule       clause, then more clauses, with a comma, a semicolon or *and* between them
clause     parts in any order, each kind once; a kind that comes again after another kind begins the next clause
interval   ``every`` length of hours, minutes or seconds · ``hourly``
step       ``every`` n days, weeks, months, years · ``every other`` … · ``daily``, ``weekly``, …
days       day {``and`` day}: weekdays · ``weekdays``, ``weekends`` · ``the 1st`` · ``the last Friday`` · ``25 December`` …
times      [``at``] time {``and`` time}
window     ``from`` time ``to`` time · ``between`` time ``and`` time
minutes    ``at minute`` n · ``at`` n ``past``
months     ``in`` month {``and`` month}
first      ``starting`` date · ``from`` date
last       ``until`` date
but        ``except`` days, months or a range of dates {``and`` …}
zone       IANA name
=========  ==========================================================================================================

Written by hand, because most of its work is to refuse: a parser library says which token it expected, and a person needs the
text of the same wish that is accepted, which only the rule at hand knows. :data:`_PARTS` names the part that a token begins,
and patterns of tokens (:func:`_pattern`) look ahead.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from itertools import accumulate, pairwise

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.civil import DAY_S
from lodger.engine.recurrence.calendar.zones import known_zone, zone_names
from lodger.engine.recurrence.duration import UNITS as LENGTHS
from lodger.engine.recurrence.english.meaning import in_quarter, meant
from lodger.engine.recurrence.english.phrase import HOUR_S, WEEKEND, WORKDAYS, Date, Days, Phrase
from lodger.engine.recurrence.english.vocabulary import UNITS, WORDS, Token, Unread, tokens
from lodger.engine.recurrence.words import MONTHS, WEEKDAYS, clock, counted, joined, listed, ordinal

_END = Token("end", "", "", 0, 0)
_ALL = (Days(),)
#: Most days of one year's dates that a range excepts, less one.
MAX_EXCEPTED = 30

# Patterns over the kinds of tokens: separators, days, dates and times that may come next.
_MORE = "(and|,)+"
_OF_WEEK, _OF_MONTH, _OF_QUARTER, _OF_YEAR = (
    f"(of|in)(the|every|a)? unit={unit}" for unit in ("week", "month", "quarter", "year")
)
_OF_PERIOD = f"({_OF_MONTH}|{_OF_QUARTER}|{_OF_YEAR})"
#: Ordinals and days of which *of the month*, *of the quarter* or *of March* says what they are counted in.
_COUNTED_DAYS = f"(nth|weekday|days|and|,|the|last|business unit?)* ({_OF_PERIOD}|(of|in) month)"
_DATE = "(date|(number|nth) of? month|month (number|nth)(?!past|clock|oclock))"
_MONTH_ALONE = f"(?!{_DATE})month"
#: A range of days of one month, ``March 1 to 5`` or ``1-5 March``; two ordinals are days of the month, which may have months as well.
_MONTH_RANGE = (
    "(month (number|nth) to the? (number|nth) (?!of? (month|unit|ampm|clock|oclock|past))"
    "|(number to the? (number|nth)|nth to the? number) of? month)"
)
_DAY = f"the? (weekday|days|nth|last|date|slashed|{_DATE}|{_MONTH_RANGE}|unit=day number|business unit=day)"
_COUNTED = "(weekday|days|business|unit=day)"
_HOUR = "(number|clock|moment)"
_TIME = r"(clock|moment|(half|unit=quarter)(past|to=to number)|length=(\d+h)|number (oclock|ampm))"
#: A time of day where a number alone is one, too.
_BARE_TIME = f"({_TIME}|number (?!month|of month|unit|unknown=times))"
_PAST_THE_HOUR = "number unit=minute? past"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of tokens: a word stands for one of that kind, or ``kind=word`` for one that is written so; spaces mean nothing."""
    kind = r"([a-z]+|,)(?:=(\([^)]*\)|[\w+-]+))?"
    one = re.sub(kind, lambda word: f"(?:{word[1].replace('any', '.*')}={word[2] or '.*'}\n)", text)
    return re.compile(one.replace(" ", ""))


def read(text: str) -> Phrase:
    """Return the parse tree of a rule.

    Raises:
        Unread: with texts that may have been meant.
    """
    return _Grammar(text).rule()


@dataclass(slots=True)
class _Time:
    """A time of day as written: the half of the day may follow from its neighbours."""

    hour: int
    minute: int
    second: int
    half: str
    fixed: bool
    place: int
    end: int

    def second_of_day(self) -> int:
        hour = self.hour if not self.half else self.hour % 12 + 12 * (self.half == "pm")
        return hour * HOUR_S + self.minute * 60 + self.second


@dataclass(slots=True)
class Draft:
    """A clause while it is read: the parts by kind, with the places where they begin and end."""

    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    interval_s: int = 0
    step: tuple[int, str] = (0, "")
    unit: str = ""
    days: list[Days] = field(default_factory=list)
    months: int = 0
    times: list[_Time] = field(default_factory=list)
    window: tuple[_Time, _Time] | None = None
    minutes: list[int] = field(default_factory=list)
    first: Date | None = None
    begins: int | None = None
    bounded: bool = True
    last: Date | None = None
    but: list[Days] = field(default_factory=list)
    but_range: bool = False
    dated: bool = False
    last_kind: str = ""

    def complete(self) -> bool:
        """Whether the clause has days and times."""
        return bool({"days", "step"} & set(self.parts)) and bool({"times", "interval"} & set(self.parts))


class _Grammar:
    def __init__(self, text: str) -> None:
        self.text = text
        self.left = tokens(text)
        # What patterns are matched with, and where each token stands in it.
        lines = [f"{each.kind}={_written(each)}\n" for each in (*self.left, _END)]
        self.written, self.places = "".join(lines), [0, *accumulate(map(len, lines))]
        self.at = 0
        self.drafts = [Draft()]
        self.zone: str | None = None
        self.excepting = False
        self.stepping = False
        self.dated = False

    # Tokens

    def peek(self, ahead: int = 0) -> Token:
        """Return a token without reading it."""
        place = self.at + ahead
        if 0 <= place < len(self.left):
            return self.left[place]
        return _END._replace(place=len(self.text), end=len(self.text))

    def sees(self, pattern: str, ahead: int = 0) -> int:
        """Return how many of the next tokens a pattern matches; 0 if it does not."""
        place = self.places[min(self.at + ahead, len(self.left))]
        found = _pattern(pattern).match(self.written, place)
        return found[0].count("\n") if found else 0

    def take(self, pattern: str) -> int:
        """Read the next tokens that a pattern matches, if it does; return how many."""
        count = self.sees(pattern)
        self.at += count
        return count

    def next(self) -> Token:
        """Read the next token."""
        self.at += 1
        return self.peek(-1)

    def since(self, first: int) -> tuple[int, int]:
        """Return the places in the text where a token begins, by its number, and where the last read token ends."""
        return self.left[first].place, self.left[max(self.at - 1, first)].end

    def unread(
        self, what: str, span: tuple[int, int] | Token | None = None, *instead: str, example: bool = False
    ) -> Unread:
        """Return the error of a token, or a stretch of text, that has no meaning here; ``instead`` are texts to write in its place."""
        token = self.peek() if span is None else span
        place, end = (token.place, token.end) if isinstance(token, Token) else token
        texts = tuple(self.text[:place] + each + self.text[end:] for each in instead)
        return Unread(what, place, texts, example=example)

    def unexpected(self, wanted: str, *examples: str) -> Unread:
        """Return the error of a token in place of wanted ones."""
        token = self.peek()
        if token.kind == "end":
            gap = "" if self.text.endswith(" ") else " "
            span = len(self.text.rstrip(" .,;")), len(self.text)
            return self.unread(
                f"{wanted} is missing at the end", span, *(gap + each for each in examples), example=True
            )
        what = f"{self.text[token.place : token.end]!r} is not understood here: {wanted} is expected"
        texts = ("",) if token.kind in ("and", ",") else examples if token.kind == "unknown" else ()
        return self.unread(what, token, *texts, example=True)

    # Clauses

    def rule(self) -> Phrase:
        """Read the whole rule."""
        self.take("run")
        if not self.left:
            raise self.unread("the rule is empty")
        if self.sees(_MORE):
            raise self.unread(f"nothing stands before {self.peek().text!r}", self.peek(), "")
        while self.at < len(self.left):
            strong = False
            while self.sees(_MORE):
                # After a comma a clause that has days and times goes on with neither.
                strong = strong or self.peek().text != "," or self.drafts[-1].complete()
                token = self.next()
                if self.sees("end"):
                    begin = self.peek(-2).end if self.at > 1 else 0
                    raise self.unread(f"nothing follows {token.text!r}", (begin, token.end), "")
            self.part(strong)
        return meant(self.text, self.drafts, self.zone)

    def part(self, strong: bool) -> None:
        """Read one part of a clause, such as its days or times."""
        read = next((read for pattern, read in _PARTS if self.sees(pattern)), None)
        if read is None:
            raise self._bare_number() if self.sees("number") else self.unexpected("days, times or a step")
        read(self, strong, self.at)

    def _bare_number(self) -> Unread:
        """Return the error of a number without a unit."""
        token = self.peek()
        if self.sees("number unit"):
            return self.unread("every is missing before a step", token, f"every {token.text}")
        after = "number (end|and|,|zone|on|every|weekday|days|in|until|except)"
        texts = [f"at {token.text}", f"on the {ordinal(token.value)} of the month"] * bool(self.sees(after))
        before = (each for each in reversed(self.left[: self.at]) if each.kind not in ("number", "and", ","))
        month = next(before, _END)
        if month.kind == "month" and self.sees(_MORE, -1):  # "January 1 and 15"
            texts.insert(0, f"{MONTHS[month.value]} {token.text}")
        return self.unread(f"{token.text} may be a time or a day: at is missing before it", token, *texts)

    def add(self, kind: str, first: int, strong: bool = False) -> Draft:
        """Add a part to its clause: the present one, or the next when the kind comes again."""
        draft, span = self.drafts[-1], self.since(first)
        main = kind in ("days", "times", "interval", "step", "window")
        # "every Monday, every 2 weeks on Friday": the step has days of its own.
        strong = strong or (kind == "step" and "days" in draft.parts and self.sees("on|weekday|days|the") > 0)
        bound = kind == "days" and self._binds(draft, first, strong)
        if bound and any(each.kind == "to" for each in self.left[first : self.at]):
            draft.days.clear()
        elif kind in draft.parts or (strong and main and kind != "window" and draft.parts):
            if not main or bound or (draft.last_kind == kind and not strong):
                place, end = draft.parts[kind]
                what = f"{self.text[place:end]!r} and {self.text[slice(*span)]!r} are two of a kind"
                without = self.text[:place] + self.text[end:]
                if not main or bound:  # they contradict each other; particular days are meant rather than each
                    texts = (without,) if bound else (without, self.text[: span[0]] + self.text[span[1] :])
                    raise Unread(what, span[0], texts, drops=True)
                alike = self.left[first - 1].kind == self.left[first].kind
                raise Unread(what, span[0], (f"{self.text[:end]},{self.text[end:]}",) if alike else ())
            draft = Draft()
            self.drafts.append(draft)
        draft.parts[kind] = span
        draft.last_kind = kind
        return draft

    def _binds(self, draft: Draft, first: int, strong: bool) -> bool:
        """Whether the days from a token on have no times of their own, and so bind ``every day`` before them."""
        timed = "times" in draft.parts and self.sees(f"at|{_HOUR}")
        return tuple(draft.days) == _ALL and not timed and (not strong or self.left[first - 1].text == ",")

    # Steps and intervals

    def every(self, strong: bool, first: int) -> None:
        """Read a part that begins with ``every``."""
        self.take("on")
        if self.next().text == "all" and self.peek().text == "day":
            raise self.unexpected("days", "days")
        if self.sees(_MONTH_RANGE):
            self.at = first
            self.days(strong, first)
        elif self.sees("unit"):
            self.unit(1, strong, first)
        elif self.take("other"):
            if self.sees("unit"):
                self.unit(2, strong, first)
            elif self.sees("weekday"):
                self._every_other_weekday(strong, first)
            else:
                raise self.unexpected("a unit or a weekday", "day")
        elif self.sees("length|number (unit|number)"):
            self.length(strong, first)
        elif self.sees(f"nth unit (?!{_OF_PERIOD})"):
            self._every_nth_unit(strong, first)
        elif self.sees("nth (weekday|days|business)"):
            self._nth_of_every(strong, first)
        elif self.sees("month (?!number|nth)"):
            self.months_of(strong, first)
        elif self.take("number (?!month)"):
            raise self.unexpected("a unit such as minutes, hours, days or weeks", "minutes")
        else:
            self.at = first
            self.days(strong, first)

    def unit(self, count: int, strong: bool, first: int) -> None:
        """Read the unit after ``every`` and a number."""
        name = self.next().value
        seconds = UNITS[name]
        if isinstance(seconds, int):
            while self.take("and number unit=(second|minute|hour)"):
                seconds += self.peek(-2).value * int(LENGTHS[self.peek(-1).value] // 1_000_000)
            self.add("interval", first, strong).interval_s = count * seconds
            return
        if count == 1 and name in ("day", "week"):
            self.take(_OF_WEEK)
        self._step(count, name, seconds, strong, first)

    def _step(self, count: int, name: str, unit: tuple[str, int], strong: bool, first: int) -> None:
        """Add a step of so many units of the calendar; a step of one day is every day."""
        if count == 1 and unit[0] == "day":
            self.add("days", first, strong).days += _ALL
            return
        draft = self.add("step", first, strong)
        draft.step, draft.unit = (count * unit[1], unit[0]), name

    def length(self, strong: bool, first: int) -> None:
        """Read ``2 hours and 30 minutes`` or ``1h30m``: an interval, or a step when it is whole days, weeks or months."""
        found: list[tuple[int, str]] = []
        while self.sees("length|and? number unit"):
            self.take("and")
            token = self.next()
            if token.kind == "number":
                found.append((token.value, self.next().value))
                continue
            for count, name in re.findall(r"(\d+)([a-z]+)", token.text):
                kind, unit_name = WORDS.get(name, ("", name))
                found.append((int(count), unit_name if kind == "unit" else name))
        span = self.since(first)
        if not found:
            raise self.unexpected("a unit such as minutes, hours, days or weeks", f"{self.peek().text} minutes")
        if any(not count for count, _ in found):
            raise self.unread("a step is at least one", span, f"every {found[0][1]}")
        count, name = found[0]
        if name == "minute" and re.search(r"\d\s*M\b", self.text[slice(*span)]):
            texts = f"every {count} minutes", f"every {count} months on the 1st"
            raise self.unread("M is short for minutes and for months", span, *texts)
        unit = UNITS.get(name)
        if len(found) == 1 and isinstance(unit, tuple):
            self._step(count, name, unit, strong, first)
            return
        total = 0
        for count, each in found:
            size = LENGTHS.get(each)
            if size is None:
                raise self.unread(f"{each!r} is not a unit of fixed length", span, "every hour")
            total += count * size
        if total % 1_000_000:
            raise self.unread("fractions of a second stand in a rule of their own", span, "every second")
        self.add("interval", first, strong).interval_s = total // 1_000_000

    def _every_nth_unit(self, strong: bool, first: int) -> None:
        """Read the ordinal after ``every`` and its unit, such as ``every 3rd week``; refuse ``every 3rd day``, which has two meanings."""
        count = self.next().value
        if self.take("unit=day"):
            what = f"every {ordinal(count)} day may be every {count} days, or a day of the month"
            texts = f"every {count} days", f"on the {ordinal(count)} of the month"
            raise self.unread(what, self.since(first), *texts)
        self.unit(count, strong, first)

    def _every_other_weekday(self, strong: bool, first: int) -> None:
        """Read the weekdays of a step of two weeks, such as ``every other Monday``."""
        begin = self.at
        self.stepping = True
        found = self.day_list()
        self.stepping = False
        draft = self.add("step", first, strong or "days" in self.drafts[-1].parts)
        draft.step, draft.unit = (2, "week"), "week"
        draft.days += found
        draft.parts["days"] = self.since(begin)
        draft.last_kind = "days"

    def _nth_of_every(self, strong: bool, first: int) -> None:
        """Read ``every second Tuesday``: which of its two meanings it has, only *of the month* tells."""
        count = self.peek().value
        if count < 2 or self.sees(_COUNTED_DAYS):
            self.at = first
            self.days(strong, first)
            return
        if self.take("nth weekday"):
            name, nth = WEEKDAYS[self.peek(-1).value], ordinal(count)
            what = f"every {nth} {name} may be one in {count} weeks, or the {nth} of the month"
            texts = f"every {count} weeks on {name}", f"on the {nth} {name} of the month"
            raise self.unread(what, self.since(first), *texts)
        self.next()
        raise self.unexpected("a unit or a weekday", "day")

    # Days

    def days(self, strong: bool, first: int) -> None:
        """Read days and add them to the clause."""
        self.dated = False
        found = self.day_list()
        draft = self.add("days", first, strong)
        draft.days += found
        draft.dated = draft.dated or self.dated

    def day_list(self) -> list[Days]:
        """Read days with *and* or commas between them, and the month or quarter that they are counted in."""
        found = self.day()
        while self._more_days():
            self.take(_MORE)
            prior, before, either, place = found[-1], self.peek(-2), self.peek(-1), self.peek()
            more = self.day()
            last, day, span = self.peek(-1), more[0], (place.place, self.peek(-1).end)
            numbered, alone = place.kind in ("the", "nth"), more == [Days(month_days=day.month_days)]
            if prior.weekdays and prior.month_days and alone and numbered:
                name, number = listed(prior.weekdays, WEEKDAYS), joined([f"the {counted(n)}" for n in day.month_days])
                texts = f"on {name} {number}", f"on {number} of the month"
                raise self.unread("the day may be of each weekday or of the month", span, *texts)
            if prior.weekdays and not prior.month_days and day.month_days and not day.weekdays and numbered:
                raise self.unread("a weekday and a day of the month stand together", place)
            date = prior.date
            if date and not date.year and last.kind == "nth" and alone:
                numbers, name = [ordinal(each) for each in day.month_days], MONTHS[date.month]
                texts = joined([f"{name} {each}" for each in numbers]), f"on the {joined(numbers)} of the month"
                raise self.unread("the day may be of this month or of each", span, *texts)
            if either.text == "or" and day.month_days == (-1,) and prior.month_days[-1:] > (28,):
                what = "the day or the last day may be both days or the earlier one"
                raise self.unread(what, (either.place, last.end), "and the last day of the month")
            yearly = day.date is not None and not day.date.year and last.kind == "month"
            if before.kind == "nth" and prior.month_days and yearly:
                what = "the first day may be of this month or of each"
                raise self.unread(what, before, f"{before.text} of the month")
            found += more
        return found

    def _more_days(self) -> bool:
        """Whether a separator comes and then a day."""
        before = "(and|,=(,))+ on?"
        if self.sees(f"{before} every"):
            # "every 2 weeks on Monday and every Thursday": the step is not theirs
            stepping = self.stepping or self.drafts[-1].step[0] > 1
            return not stepping and self.sees(f"{before} every (weekday|days|{_DATE})") > 0
        return self.sees(f"{before} {_DAY}") > 0

    def _days_of_month_range(self) -> list[Days]:
        """Read a range of days of one month: those of each year, or dates of the year that is named."""
        begin = self.at
        self.take(_MONTH_RANGE)
        read = self.left[begin : self.at]
        month = next(each.value for each in read if each.kind == "month")
        first, last = (each.value for each in read if each.kind in ("number", "nth"))
        year = self._year()
        for day in (first, last):
            self._real(Date(year, month, day), begin)
        if first >= last:
            raise self.unread("the range goes backwards", self.since(begin))
        if year is not None:
            return [Days(date=Date(year, month, each)) for each in range(first, last + 1)]
        self.dated = True
        return [Days(month_days=tuple(range(first, last + 1)), months=1 << month)]

    def _is_year(self, ahead: int) -> bool:
        """Whether a following token is a year."""
        return self.peek(ahead).kind == "number" and 1000 <= self.peek(ahead).value <= 9999

    def _year(self) -> int | None:
        """Read a year, with a comma before it or none; None without one."""
        comma = self.sees(", number") > 0
        if not self._is_year(comma):
            return None
        self.at += comma
        return int(self.next().value)

    def day(self) -> list[Days]:
        """Read one day, or several that share a noun: ``the first and third Monday of the month``."""
        self.take("on? every?")
        the = self.take("the")
        token = self.peek()
        if token.kind == "slashed":
            raise self._slashed()
        if self.sees(_MONTH_RANGE):
            return self._days_of_month_range()
        if self.sees(_DATE):
            return [self._date_or_months()]
        if token.kind == "weekday":
            return self._weekdays_of(self._weekday())
        if bits := self._workday_set():
            return self._weekdays_of([Days(bits)])
        if self.take("unit=day (?=number)"):
            return self._in_month(self._numbered(self._counts("number")))
        if token.kind in ("nth", "last"):
            return self._nth()
        before = self.peek(-1).kind
        if before == "every":
            raise self.unexpected("a day", "day")
        raise self.unexpected("a day", *(["1st"] if the else ["the 1st"] if before == "on" else []))

    def _workday_set(self) -> int:
        """Skip ``weekdays`` or ``business day``, and return their bits; 0 for anything else."""
        if self.take("business unit=day"):
            return WORKDAYS
        return self.next().value if self.sees("days") else 0

    def _weekday(self) -> list[Days]:
        """Read a weekday or a range of weekdays."""
        begin, first = self.at, self.next().value
        last = first
        if self.sees(f",? {_DATE}"):
            self.take(",")
            return [Days(date=self._date_on(first, begin))]
        if self.take("to weekday"):
            last = self.peek(-1).value
            if last == first:
                name, before = WEEKDAYS[first], WEEKDAYS[(first - 1) % 7]
                what = "the range begins and ends on one day"
                raise self.unread(what, self.since(begin), name, f"{name} to {before}")
        bits = sum(1 << (first + each) % 7 for each in range((last - first) % 7 + 1))
        if self.take("the nth|nth (?!month)"):
            number = self.peek(-1)
            if not 1 <= number.value <= 31:
                raise self.unread(f"no month has a day {number.value}", number, "31st")
            return [Days(bits, month_days=(number.value,))]
        while size := self.sees("(and|,) and? (weekday|days)"):
            place = self.peek(size - 1)
            again = place.value if place.kind == "days" else 1 << place.value
            if again & bits:
                break
            self.at += size - 1
            if self.take("days"):
                bits |= again
                continue
            day = self._weekday()[0]
            if day != Days(day.weekdays):
                raise self.unread("the day may be of each weekday or of the last one", self.since(begin))
            bits |= day.weekdays
        return [Days(bits)]

    def _weekdays_of(self, days: list[Days]) -> list[Days]:
        """Read the month after ``every Friday``, as in ``of March``; ``of the month`` adds nothing."""
        if size := self.sees(_OF_MONTH):
            span = self.peek(-1).end, self.peek(size - 1).end
            raise self.unread("weekdays are those of every month", span, "")
        if self.take("of (?=month)"):
            months = self.month_list()
            return [replace(each, months=months) for each in days]
        return days

    def _date_on(self, weekday: int, begin: int) -> Date:
        """Read the date after a weekday, as in ``Thursday, December 31, 2026``; refuse a date that is on another weekday."""
        date = self.date()
        span, name = self.since(begin), WEEKDAYS[weekday]
        said = self.text[self.left[begin + 1 + (self.left[begin + 1].kind == ",")].place : span[1]]
        if not date.year:
            texts = f"every {said}", f"{name} and every {said}"
            raise self.unread("a weekday and a date may be one day or two", span, *texts)
        on = civil.weekday(civil.day_of(date.year, date.month, date.day))
        if on != weekday:
            raise self.unread(f"this date is a {WEEKDAYS[on]}", span, said)
        return date

    def _counts(self, kind: str) -> list[int]:
        """Read numbers that are listed or in ranges, such as ``1, 3 and 5 through 7``."""
        found = [self.next().value]
        while True:
            if self.take(f"{_MORE} {kind} (?!month|unit)"):
                found.append(self.peek(-1).value)
            elif self.take(f"to the? {kind}"):
                last = self.peek(-1)
                if not found[-1] < last.value <= 31:
                    raise self.unread("the range goes backwards", last)
                found += range(found[-1] + 1, last.value + 1)
            else:
                return found

    def _numbered(self, numbers: Iterable[int]) -> list[Days]:
        """Return the days of the month with these numbers; days from the end one by one, as their sentence has them."""
        days = [self._day_number(each) for each in numbers]
        return [Days(month_days=(each,)) for each in days] if max(days) < 0 else [Days(month_days=tuple(days))]

    def _day_number(self, value: int) -> int:
        """Return the number of a day of the month, refusing those that no month has."""
        if not (-31 <= value <= 31 and value):
            texts = ("last day of the month", "31st") if value else ("1st",)
            raise self.unread(f"no month has a day {value}", self.peek(-1), *texts)
        return value

    def _ordinal(self) -> int:
        """Read an ordinal, such as ``1st``, ``last`` or ``second to last``; negative ones count from the end."""
        token = self.next()
        number = -1 if token.kind == "last" else int(token.value)
        # *last* belongs to the ordinal before it in ``2nd last Friday``, also in a list of these.
        of_it = f"last (?={_MORE} any? last|weekday|days|unit|business)"
        return -number if number > 0 and (self.take("to last") or self.take(of_it)) else number

    def _nth(self) -> list[Days]:
        """Read ordinals and the counted noun: a weekday, weekdays, days, or none."""
        begin = self.at
        numbers, places, breaks = [self._ordinal()], [self.left[begin]], []
        while True:
            if self.take("to the? nth"):
                last = self.peek(-1)
                if not 0 < numbers[-1] < last.value <= 31:
                    around = f"{counted(numbers[-1])} to the 31st and the 1st to the {ordinal(last.value)}"
                    raise self.unread("the range goes backwards", (places[-1].place, last.end), around)
                numbers += range(numbers[-1] + 1, last.value + 1)
            elif self.sees(f"{_MORE} the? (nth|last)"):
                self.take(_MORE)
                either, the = self.peek(-1).text == "or", self.take("the")
                token, number = self.peek(), self._ordinal()
                if either and number == -1 and numbers[-1] > 28 and self.sees("unit=day"):
                    what = "the day or the last day may be both days or the earlier one"
                    raise self.unread(what, (places[-1].end, token.place), " and the ")
                if the:
                    breaks.append(len(numbers))
                numbers.append(number)
                places.append(token)
            else:
                break
        if numbers in ([1], [-1]) and self.sees(f"number {_COUNTED}"):
            numbers = [numbers[0] * each for each in range(1, min(self.next().value, 32) + 1)]  # "the first 5 days"
        if self.sees("weekday|days|business"):
            return self._nth_weekdays(numbers, places, breaks)
        named = self.take("unit=day")
        if self.excepting and not (named or self.sees(f"month|(?!{_OF_MONTH})(of|in)")):
            self._excepted_weekdays(numbers, begin)
        if numbers[-1] == -1 and not (named or self.sees(_OF_PERIOD)):
            raise self.unread("what the last one is of is not said", self.peek(-1), "last day")
        found = self._numbered(numbers)
        every = self.peek(begin - self.at - 1)
        if every.kind == "every" and self.sees("nth (?!of|in)", -1) and 2 <= numbers[0] <= 10:
            what = f"every {ordinal(numbers[0])} may be a step, or a day of the month"
            texts = f"every {numbers[0]} days", f"on the {ordinal(numbers[0])} of the month"
            raise self.unread(what, (every.place, self.left[begin].end), *texts)
        return self._in_month(found)

    def _excepted_weekdays(self, numbers: list[int], begin: int) -> None:
        """Refuse ``every Monday except the first``, which may be a Monday or a day of the month."""
        weekdays = 0
        for each in self.drafts[-1].days:
            weekdays |= 0 if each.month_days or each.nth else each.weekdays
        single = weekdays.bit_count() == 1
        if not (single or weekdays in (WORKDAYS, WEEKEND)) or not all(abs(each) <= 5 for each in numbers):
            return
        name = WEEKDAYS[weekdays.bit_length() - 1] if single else "weekday" if weekdays == WORKDAYS else "weekend"
        said = joined([counted(each) for each in numbers])
        days = joined([f"day {each}" if each > 0 else f"the {counted(each)} day" for each in numbers])
        if self.peek().text in ("one", "ones"):
            self.next()
        self.take(_OF_MONTH)
        begin -= self.left[begin - 1].kind in ("the", "every")
        texts = f"the {said} {name}", f"{days} of the month"
        raise self.unread(
            f"the {said} may be a {name} or a day of the month", self.since(begin), *texts[weekdays == WEEKEND :]
        )

    def _nth_weekdays(self, numbers: list[int], places: list[Token], breaks: list[int]) -> list[Days]:
        """Return the days for ordinals before weekdays, such as ``first and third Monday``."""
        after = self.peek()
        if self.take("weekday"):
            bits, most, name = 1 << after.value, 5, WEEKDAYS[after.value]
            if self.peek().text != ";" and (size := self.sees(f"{_MORE} weekday")):
                beside = self.peek(size - 1)
                day, all_numbers = WEEKDAYS[beside.value], joined([counted(each) for each in numbers])
                texts = f"{all_numbers} {day}", f"every {day}"
                raise self.unread("the weekday may be counted in the month too, or stand for each", beside, *texts)
        else:
            if after.text.startswith("weekend") or not self._workday_set():
                raise self.unexpected("day")
            bits, most, name = WORKDAYS, 23, "weekday"
        span, said = (places[0].place, self.peek(-1).end), [counted(each) for each in numbers]
        if breaks and all(abs(each) <= 5 for each in numbers[:-1]) and numbers[0] > 0:
            days = [f"{each}{' day' * (number < 0)}" for each, number in zip(said, numbers, strict=True)]
            head = joined([days[0], *(f"the {each}" for each in days[1 : breaks[-1]])])
            what = f"the {said[0]} may be a {name} or a day of the month"
            raise self.unread(what, span, f"{joined(said)} {name}", f"{head} and on the {said[-1]} {name}")
        for number in numbers:
            if abs(number) > most or not number:
                both = [f"the {ordinal(number)} and on the {said[-1]} {name}"] * (len(numbers) > 1 and number <= 31)
                raise self.unread(f"no month has a {counted(number)} {name}", span, f"last {name}", *both)
        return self._in_month([Days(nth=tuple((each, bits) for each in numbers))])

    def _in_month(self, found: list[Days]) -> list[Days]:
        """Read ``of the month``, ``of each quarter``, ``of March``, which bound the days before it."""
        begin = self.at
        if self.take(_OF_MONTH):
            return found
        if self.take(_OF_QUARTER):
            return [self._of_quarter(each) for each in found]
        if self.take(_OF_YEAR):
            first = all(n > 0 for each in found for n in (*each.month_days, *(n for n, _ in each.nth)))
            month = "of January" if first else "of December"
            raise self.unread("days of the year are not counted in English", self.since(begin), month)
        if self.sees(_OF_WEEK):
            span = self.left[max(0, self.at - 2)].place, self.peek(2).end
            texts = "on Monday", "on Sunday", "Monday"
            raise self.unread("weeks begin on Monday for some and on Sunday for others", span, *texts)
        if self.take("of (?=month)") or (not self.excepting and self.take("in (?=month)")) or self.sees(_MONTH_ALONE):
            months = self.month_list()
            return [replace(each, months=months) for each in found]
        return found

    def _of_quarter(self, days: Days) -> Days:
        """Return days of the month as days of the quarter."""
        try:
            return in_quarter(days)
        except ValueError:
            raise self.unread("first and last days of a quarter stand in a rule of their own", self.peek(-1)) from None

    # Dates and months

    def _date_or_months(self) -> Days:
        """A date, or one day of several months: ``15th of March and September``."""
        begin = self.at
        date = self.date()
        if self.peek(-1).kind != "month":
            return Days(date=date)
        self.at -= 1
        months = self.month_list()
        if not date.year and months.bit_count() > 1:
            return Days(month_days=(date.day,), months=months)
        self.at = begin
        return Days(date=self.date())

    def date(self) -> Date:
        """Read a date, such as ``25 December 2027``, ``December 25th, 2027`` or ``2027-12-25``."""
        begin = self.at
        self.take("on? the?")
        self.take("weekday ,?")  # "Friday, November 27, 2026", as sentences have it
        token = self.peek()
        if token.kind == "slashed":
            raise self._slashed()
        self.next()
        if token.kind == "date":
            return self._real(token.value, begin)
        if token.kind == "month":
            month, day = token.value, self.next()
            if day.kind == "number" and 1000 <= day.value <= 9999:
                ends = (1, civil.days_in_month(day.value, month))
                texts = [f"{each} {MONTHS[month]} {day.value}" for each in ends]
                raise self.unread("the day is not said", self.since(begin), *texts)
            if day.kind not in ("number", "nth"):
                raise self.unread("the day is not said", token, f"1 {MONTHS[token.value]}")
        else:
            self.take("of")
            day, month = token, self.next().value
        if day.kind not in ("number", "nth") or not isinstance(month, int):
            self.at = begin
            raise self.unexpected("a date such as 2027-12-25", "2027-12-25")
        return self._real(Date(self._year(), month, day.value), begin)

    def _real(self, date: Date, begin: int) -> Date:
        """Return a date; refuse one that the calendar does not have, such as February 30."""
        span = self.since(begin)
        if not 1 <= date.month <= 12:
            swapped = [f"{date.year}-{date.day:02d}-{date.month:02d}"] if 1 <= date.day <= 12 else []
            raise self.unread(f"there is no month {date.month}", span, *swapped)
        longest = civil.days_in_month(date.year or 2000, date.month)
        if not 1 <= date.day <= longest or not (date.year or 1) >= 1:
            name = MONTHS[date.month]
            if date.year:
                text = f"{date.year}-{date.month:02d}-{longest}"
                raise self.unread(f"{name} {date.year} has {longest} days", span, text)
            first = begin
            while first and self.left[first - 1].kind in ("every", "on", "the"):
                first -= 1
            texts = f"on the last day of {name}", f"{longest} {name}"
            raise self.unread(f"{name} has at most {longest} days", self.since(first), *texts)
        return date

    def _slashed(self) -> Unread:
        """Return the error of a date with slashes, which can be read in two ways."""
        token = self.next()
        first, second, *rest = (int(each) for each in token.value.replace(".", "/").split("/"))
        ways = ((second, first),) if "." in token.value else ((first, second), (second, first))
        real = [(month, day) for month, day in ways if 1 <= month <= 12 and 1 <= day <= 31]
        texts = [f"{day} {MONTHS[month]}" for month, day in real]
        for year in rest:
            texts = [f"{year + 2000 * (year < 100):04d}-{month:02d}-{day:02d}" for month, day in real]
        return self.unread(f"{token.value} is read differently in different countries", token, *dict.fromkeys(texts))

    def month_list(self) -> int:
        """Read months, such as ``March``, ``June to August`` or ``January, April and July``; return them as bits."""
        found = 0
        while True:
            if not self.sees("month"):
                raise self.unexpected("a month", "January")
            first = self.next().value
            last = self.peek(-1).value if self.take("to month") else first
            for each in range((last - first) % 12 + 1):
                found |= 1 << (first + each - 1) % 12 + 1
            size = self.sees(f"{_MORE} (?=month)")
            if not size or (self.sees(_DATE, size) and not self._is_year(size + 1)):
                return found
            self.at += size

    def months_of(self, _strong: bool, first: int) -> None:
        """Read the months of a clause, with or without ``in``."""
        self.take("in")
        months = self.month_list()
        named = [each.value for each in self.left[first : self.at] if each.kind == "month"]
        if self._is_year(0):
            year = self.next().value
            if named != sorted(named):
                raise self.unread("the year of each month is not said", self.since(first))
            self.add("first", first).first = Date(year, 1, 1)
            self.add("last", first).last = Date(year, 12, 31)
        self.add("months", first).months = months

    # Times

    def time(self) -> _Time:
        """Read one time of day."""
        if self.peek().text in ("half", "quarter") or self._minutes_past():
            return self._spoken_time()
        token = self.next()
        place, end = token.place, token.end
        if token.kind == "moment":
            return _Time(token.value // HOUR_S, 0, 0, "", True, place, end)
        if token.kind == "clock":
            hour, minute, second, half, fixed = token.value
        elif token.kind == "length" and re.fullmatch(r"\d+h", token.text):
            hour, minute, second, half, fixed = int(token.text[:-1]), 0, 0, "", True
        elif token.kind == "number":
            hour, minute, second, half, fixed = token.value, 0, 0, "", token.text.startswith("0")
            if self.take("oclock"):
                end = self.peek(-1).end
            if self.take("ampm"):
                half, end = self.peek(-1).value, self.peek(-1).end
        else:
            self.at -= 1
            raise self.unexpected("a time of day", "09:00")
        if hour == 12 and not (minute or half) and self.take("moment"):
            moment = self.peek(-1)
            return _Time(moment.value // HOUR_S, 0, 0, "", True, place, moment.end)
        if token.kind == "clock" and self.peek().text in ("hours", "hrs", "h"):
            end = self.next().end
        return self._valid(
            _Time(hour, minute, second, half, fixed or (hour > 12 and not half) or hour == 0, place, end)
        )

    def _valid(self, time: _Time) -> _Time:
        """Return a time of day; refuse one that no day has, such as 25:00."""
        span = time.place, time.end
        if time.minute > 59 or time.second > 59:
            later = f"{(time.hour + 1) % 24:02d}:{time.minute % 60:02d}"
            raise self.unread("minutes and seconds go to 59", span, later, example=time.minute != 60)
        if time.half and not 1 <= time.hour <= 12:
            raise self.unread("am and pm count hours from 1 to 12", span, f"{time.hour % 24:02d}:{time.minute:02d}")
        if time.hour > 23:
            if time.hour == 24 and not time.minute:
                raise self.unread("hours go from 0 to 23, and 24:00 is 00:00 of the next day", span, "23:59")
            if not time.minute and 24 < time.hour < 60 and self.drafts[-1].interval_s:
                raise self.unread("hours go from 0 to 23", span, f"minute {time.hour}")
            raise self.unread("hours go from 0 to 23", span, "09:00", example=True)
        return time

    def _spoken_time(self) -> _Time:
        """Read a time of day such as ``half past 9``, ``quarter to 9`` or ``ten to nine``."""
        begin, word = self.at, self.next()
        minutes = word.value if word.kind == "number" else 30 if word.text == "half" else 15
        past = self.take("past")
        if past or (minutes < 30 and self.take("to=to")):
            time = self.time()
            if time.minute:
                raise self.unread("the hour has minutes", self.since(begin))
            second = (time.second_of_day() + (minutes if past else -minutes) * 60) % DAY_S
            return _Time(*civil.clock(second), "", time.fixed or bool(time.half), self.left[begin].place, time.end)
        raise self.unexpected("past or to")

    def _minutes_past(self, ahead: int = 0) -> bool:
        """Whether the next tokens are minutes past an hour, such as ``20 past 9``, or in words before it, as in ``at ten to nine``."""
        before = self.sees(f"at number=(five|ten|twenty|twenty-five) to=to {_HOUR}", ahead - 1)
        return before > 0 or self.sees(f"number past {_HOUR}", ahead) > 0

    def times(self, strong: bool, first: int) -> None:
        """Read times of day."""
        self.take("at")
        begin, found = self.at, [self.time()]
        while size := self.sees("(and=(and|&|/|plus|also)|,=(,))+ at?"):
            at = self.peek(size - 1).kind == "at"
            if not self.sees(_BARE_TIME, size):
                break
            self.at += size
            spoken = {each.text for each in self.left[begin : self.at]} & {"past", "to"}
            begin, bare = self.at, self.sees("number") and not (at or self._minutes_past())
            found.append(self.time())
            if spoken and bare and not found[-1].minute:
                raise self.unread("the minutes may be those of each hour", self.since(begin))
        if self.peek().text == "or" and self.sees(_BARE_TIME, 1):
            raise self.unread("a rule has no choice between times", self.peek(), "and")
        self.add("times", first, strong).times = self._halves(found)

    def _halves(self, found: list[_Time]) -> list[_Time]:
        """Apply the half of the day that is written after them, as in ``1, 3 and 5 pm``, where the order allows it."""
        said = any(each.half for each in found)
        of_24 = said or any(each.fixed and each.hour != 12 for each in found)
        for before, each in pairwise(found):
            if not of_24 and each.second_of_day() < before.second_of_day():
                texts = [f"{hour:02d}:{each.minute:02d}" for hour in (each.hour + 12, each.hour)]
                raise self.unread("the hours may be before or after noon", (each.place, each.end), *texts)
        for place in range(len(found) - 1, -1, -1):
            each = found[place]
            if each.half or each.fixed or not said:
                continue
            following = found[place + 1 :]
            half = next((after.half for after in following if after.half), "")
            span = each.place, each.end
            if not half:
                later, minute = f"{each.hour + 12}:{each.minute:02d}", f"{each.minute:02d}"
                if each.hour < 10:
                    texts = [later, f"{each.hour:02d}:{minute}"]  # one of 24 hours
                elif each.hour < 12:
                    texts = [f"{each.hour}:{minute}am", later]
                else:
                    texts = [f"12:{minute}pm", f"12:{minute}am"]
                if place and (before := found[place - 1]).half == "pm":  # 8pm and 10 are 20:00 and 22:00 to most
                    is_later = each.hour > before.hour % 12
                    texts.sort(key=lambda text: (text == later) != is_later)
                raise self.unread("am or pm is not said for each time", span, *texts)
            each.half = half
            if each.second_of_day() >= following[0].second_of_day():
                written = self.text[each.place : each.end]
                text = f"{written}{'am' if half == 'pm' else 'pm'}"
                raise self.unread(f"{written} may be am or {half}", span, text)
        return found

    def at_part(self, strong: bool, first: int) -> None:
        """Read what follows ``at``: times, minutes of the hour, weekends, or the end of the month."""
        if self.sees(rf"at (unit=minute|past=(\d+)|{_PAST_THE_HOUR})") and not self._minutes_past(1):
            self.minutes()
            self.add("minutes", first)
        else:
            self.times(strong, first)

    def minutes(self) -> None:
        """Read minutes of the hour."""
        self.take("at")
        of_hour = False
        if self.take("unit=minute"):
            if not self.sees("number"):
                raise self.unexpected("a minute", "30")
            numbers = self._counts("number")
            of_hour = self.take("of every unit=hour") > 0
        elif self.sees(r"past=(\d+)"):
            numbers = self._counts("past")
        else:
            numbers = [self.next().value]
            if self.take("unit=minute? past"):
                of_hour = self.take("(the|every) unit=hour") > 0
        if of_hour:
            self.drafts[-1].interval_s = self.drafts[-1].interval_s or HOUR_S
        if not all(0 <= each <= 59 for each in numbers):
            last = self.peek(-1)
            raise self.unread("minutes go to 59", last, str(max(numbers) % 60), example=60 not in numbers)
        self.drafts[-1].minutes = numbers

    def past_the_hour(self, _strong: bool, first: int) -> None:
        """Read minutes of the hour, such as ``15 and 45 minutes past the hour``."""
        self.minutes()
        self.add("minutes", first)

    def window(self, strong: bool, first: int) -> None:
        """Read ``from 9 to 17``: bounds of an interval in each day; with dates, months or days the other meanings of *from*."""
        from_ = self.take("from") > 0
        if self.sees(_MONTH_RANGE):
            self.days(strong, first)
        elif self.sees(f"(?!{_DATE}){_BARE_TIME}"):
            self._times_between(strong, first)
        elif self.sees(f"{_DATE}|slashed|weekday ,"):
            begins = self._starting(first)
            if self.take("to"):
                ends = self.drafts[-1].last = self.date()
                self.add("last", self.at - 1)
                if not (begins.year or ends.year):
                    raise self._range_of(begins, ends, self.since(first), "")
        elif (
            from_
            and self.sees("weekday to weekday")
            and self.text[: self.left[first].place].lower().endswith("midnight ")
        ):
            days = [WEEKDAYS[self.peek(ahead).value] for ahead in (2, 0)]
            self.take("weekday to weekday")
            texts = f"on {days[0]}", f"on {days[1]} and {days[0]}"
            raise self.unread("a midnight between days is the beginning of the later one", self.since(first), *texts)
        elif self.sees("month (?!to)") and not self._is_year(1):
            name = MONTHS[self.next().value]
            texts = f"starting 1 {name}", f"in {name}"
            raise self.unread("the last month of a range is not said", self.since(first), *texts)
        elif self.sees("month"):
            self.months_of(strong, first)
        elif from_ and self.take("weekday (?!to)"):
            name = WEEKDAYS[self.peek(-1).value]
            texts = f"every {name}", f"{name} to Friday"
            raise self.unread("the last day of a range is not said", self.since(first), *texts)
        elif from_ and self.sees("weekday|nth|the"):
            self.days(strong, first)
        else:
            raise self.unexpected("a time or a date", "9:00 to 17:00")

    def _times_between(self, strong: bool, first: int) -> None:
        """Read the ends of a window after ``from`` or ``starting at``."""
        begin = self.time()
        if not self.take("to|until"):
            stepped = "interval" in self.drafts[-1].parts or self.sees("every") > 0
            said = self.text[begin.place : begin.end]
            text = f"from {said} to 23:59" if stepped else f"at {said}"
            raise self.unread("a time of day has an end, too", self.since(first), text, example=not stepped)
        if not self.sees(_BARE_TIME):
            raise self.unexpected("a time of day", "17:00")
        end = self.time()
        draft = self.drafts[-1]
        if draft.last_kind == "but" and not strong:
            (place, stop), said = draft.parts["but"], self.text[slice(*self.since(first))]
            text = f"{self.text[:place].rstrip(' ,')} {said} {self.text[place:stop]}{self.text[end.end :]}"
            raise Unread("the times may be those of the exception or of the rule", self.left[first].place, (text,))
        self.add("window", first, strong).window = self._window_halves(begin, end)

    def _window_halves(self, begin: _Time, end: _Time) -> tuple[_Time, _Time]:
        """Return the ends of a window with am or pm settled; refuse a window whose hours people understand differently."""
        start, stop = begin.second_of_day(), end.second_of_day()
        loose = [each for each in (begin, end) if not each.half and not each.fixed]
        if not loose or (not begin.half and not end.half and (start < stop or begin.hour > 12 or end.fixed)):
            return begin, end
        if begin in loose and end.half:
            begin.half = end.half
            if begin.second_of_day() < stop:
                return begin, end
            begin.half = ""
        pm = (end.hour + 12) % 24 if end.hour < 12 else 12
        ends = stop if end.half or end.fixed else pm * HOUR_S + end.minute * 60
        span = begin.place, end.end
        word = self.text[begin.end : end.place].strip()
        texts = [f"{clock(start)} {word} {clock(ends)}"]
        if end in loose and not begin.half:
            texts.append(f"{clock(start)} {word} {clock(stop)}")
        raise self.unread("the hours may be before or after noon", span, *texts)

    # Bounds, exceptions, zone

    def starting(self, strong: bool, first: int) -> None:
        """Read ``starting`` or ``counted from`` with its date, or ``starting at`` with the times of a window."""
        counted = self.next().text == "counted"
        self.take("from")
        if not counted and self.sees(f"at? {_BARE_TIME}"):
            self.take("at")
            self._times_between(strong, first)
            return
        self._starting(first)
        self.drafts[-1].bounded = not counted

    def _range_of(self, first: Date, last: Date, span: tuple[int, int], days: str) -> Unread:
        """Return the error of a range of dates: one without a year may be one range, or come every year."""
        begins, ends = (f"{each.day} {MONTHS[each.month]} {each.year or ''}".rstrip() for each in (first, last))
        if first.year or last.year:
            return self.unread("the days of a range are not said", span, f"{days}from {begins} to {ends}")
        texts = [f"{days}starting {begins} until {ends}"]
        if first.day == 1 and last.day == civil.days_in_month(2001, last.month):
            months = dict.fromkeys(MONTHS[each.month] for each in (first, last))
            texts.append(f"{days}in {' to '.join(months)}")
        return self.unread("a range of dates without a year comes every year, or once", span, *texts)

    def _starting(self, first: int) -> Date:
        """Read the first date of a clause."""
        date = self.date()
        draft = self.add("first", first)
        draft.first = date
        if "times" in draft.parts and not draft.begins and self.take(f"at (?={_BARE_TIME})"):
            draft.begins = self.time().second_of_day()
        return date

    def until(self, _strong: bool, first: int) -> None:
        """Read ``until`` with its date or time."""
        draft = self.drafts[-1]
        ranged = self.next().kind == "to" and draft.last_kind == "days"
        if self.take(_MONTH_ALONE):
            month = self.peek(-1)
            text = f"{civil.days_in_month(2001, month.value)} {MONTHS[month.value]}"
            raise self.unread("the day is not said", month, text)
        if self.sees(_BARE_TIME):
            time = self.time()
            if not ("interval" in draft.parts or self.sees("every")):
                raise self.unread("a day ends the rule, and no time", self.since(first))
            text = f"from 00:00 to {self.text[time.place : time.end]}"
            raise self.unread("a time of day has a begin, too", self.since(first), text)
        date = self.date()
        place, end = draft.parts.get("days", (0, 0))
        day, span = draft.days[-1] if draft.days else Days(), (place, self.since(first)[1])
        if day.date and (ranged or all(each.date and each.date.year for each in draft.days)):
            times = self.text[end : self.left[first].place]
            every = "" if len(self.drafts) > 1 or "interval" in draft.parts else "every day "
            raise self._range_of(day.date, date, span, f"{every}{times}")
        if ranged and day.month_days and not day.months:
            text = f"on the {ordinal(day.month_days[-1])} to the {ordinal(date.day)} of {MONTHS[date.month]}"
            raise self.unread("the month of a range of days comes after it", span, text)
        self.add("last", first).last = date
        place, timed = self.peek(-1).end, {"times", "interval"} & set(draft.parts)
        minutes = self.sees(f"at? {_PAST_THE_HOUR}") and not self._minutes_past(self.sees("at"))
        if timed and not minutes and self.sees(f"{_TIME}|at {_BARE_TIME}"):
            self.take("at")
            end = self.time().end
            raise self.unread("a day ends the rule, and no time", (place, end), "")

    def except_(self, _strong: bool, first: int) -> None:
        """Read the days that are left out."""
        self.take("except not? for? from?")
        but = self._excepted(first)
        while not self.sees(",=(;)|(and|,)* every") and (self.sees(f"{_MORE} in? month") or self._more_days()):
            self.take(_MORE)
            but += self._excepted(first)
        self.add("but", first).but += but
        if self.sees("(in|from) month"):
            begin = self.at
            self.next()
            self.month_list()
            place, end = self.since(begin)
            there = self.left[first].place
            text = f"{self.text[:there].rstrip()} {self.text[place:end]} {self.text[there:place].rstrip()}{self.text[end:]}"
            raise Unread("the months may belong to the exception or to the rule", place, (text,))

    def _excepted(self, first: int) -> list[Days]:
        """Read days, months or a range of dates that are left out."""
        if self.sees(f"in month|{_MONTH_ALONE}"):
            self.take("in")
            return [Days(months=self.month_list())]
        if self.sees(_MONTH_RANGE):
            self.drafts[-1].but_range = True
            return self._days_of_month_range()
        if self.sees(_DATE) and (found := self._date_range()):
            return found
        if self.sees(f"at? {_BARE_TIME}"):
            raise self._except_times(first)
        begin = self.at
        self.take("on? every?")
        if self.peek(-1).kind == "every" and self.sees("nth") and self.peek().value > 1:
            self._nth_excepted(begin)
        if not self.sees(_DAY):
            raise self.unexpected("days or months after except", "Sundays", "25 December")
        self.at = begin
        self.excepting = True
        found = self.day_list()
        self.excepting = False
        return found

    def _nth_excepted(self, begin: int) -> None:
        """Refuse ``except every second Friday``, which may be one in two weeks, unless *of the month* tells."""
        if not self.sees(f"nth {_COUNTED}") or self.sees(_COUNTED_DAYS):
            return
        number, word = self.next().value, self.next()
        name = WEEKDAYS[word.value] if word.kind == "weekday" else "day" if word.value == "day" else "weekday"
        what = f"every {ordinal(number)} {name} may be one in {number}, or the {ordinal(number)} of the month"
        raise self.unread(what, self.since(begin), f"on the {ordinal(number)} {name} of the month")

    def _date_range(self) -> list[Days]:
        """Read ``20 December to 5 January``; return an empty list when a single date comes."""
        begin = self.at
        first = self.date()
        if not self.take("to|until"):
            self.at = begin
            return []
        last = self.date()
        self.drafts[-1].but_range = True
        if first.year and last.year:
            days = [civil.day_of(each.year or 1, each.month, each.day) for each in (first, last)]
            if not 0 < days[1] - days[0] <= MAX_EXCEPTED:
                raise self.unread(f"a range of dates has 2 to {MAX_EXCEPTED + 1} days", self.since(begin))
            return [Days(date=Date(*civil.civil(day))) for day in range(days[0], days[1] + 1)]
        if first.year or last.year or (first.month == last.month and first.day >= last.day):
            raise self.unread("the dates of a range have both a year or none, the earlier one first", self.since(begin))
        found = []
        for month in ((first.month + each - 1) % 12 + 1 for each in range((last.month - first.month) % 12 + 1)):
            begins = first.day if month == first.month else 1
            ends = last.day if month == last.month else civil.days_in_month(2000, month)
            found.append(Days(month_days=tuple(range(begins, ends + 1)), months=1 << month))
        return found

    def _except_times(self, first: int) -> Unread:
        """Refuse times that are left out."""
        self.take("at")
        self.time()
        if self.take("to|until"):
            self.time()
        return self.unread("times are not excepted: the times that stay are named", self.since(first))

    def zone_of(self, _strong: bool, first: int) -> None:
        """Read the zone of a rule."""
        self.take("in")
        token = self.next()
        self.take("time")
        span = self.since(first)
        name = known_zone(token.value)
        if name is None:
            near = get_close_matches(token.value, zone_names(), 1)
            near = [f"({each})" if token.text[0] == "(" else each for each in near]
            raise self.unread(f"{token.value!r} is not a time zone", token, *near)
        if self.zone not in (None, name):
            before = self.left[first - 1]
            texts = self.text[: before.place] + self.text[span[0] :], self.text[: before.end] + self.text[span[1] :]
            raise Unread("two zones are named", span[0], texts if before.kind == "zone" else ())
        self.zone = name


def _written(token: Token) -> str:
    """Return a token as patterns name it: a unit by its name, any other as it is written."""
    return str(token.value) if token.kind == "unit" else token.text.replace("\n", " ")


#: What begins each part, the first that fits.
_PARTS: tuple[tuple[str, Callable[[_Grammar, bool, int], None]], ...] = (
    ("every|on every other", _Grammar.every),
    ("adverb", lambda grammar, strong, first: grammar.unit(1, strong, first)),
    ("in? zone", _Grammar.zone_of),
    ("at", _Grammar.at_part),
    ("in month", _Grammar.months_of),
    ("start every|unit number", _Grammar.days),
    ("start", _Grammar.starting),
    ("edge (date|number|month|on|from|at)", _Grammar.starting),
    ("until|to (date|number month|month number|the? nth)", _Grammar.until),
    ("except", _Grammar.except_),
    ("from", _Grammar.window),
    (f"number past {_HOUR}", _Grammar.times),
    ("number unit? past", _Grammar.past_the_hour),
    (f"(clock|moment) to|number to {_HOUR}|number half", _Grammar.window),
    ("clock|moment|number (oclock|ampm|moment)|half (past|number)", _Grammar.times),
    ("on|the|weekday|days|nth|last|date|slashed|business unit", _Grammar.days),
    ("number of? month|month (number|nth)", _Grammar.days),
    ("month", _Grammar.months_of),
)
