"""Translate English into the rule language that writes the same sentence.

``every N units …`` without a comma becomes an RRULE, a time followed by days a cron expression, as in the sentences of these languages.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from lodger.engine.recurrence.english.vocabulary import (
    ADVERBS,
    AMBIGUOUS,
    AND,
    DAY_OF,
    DAY_SETS,
    MONTH_OF,
    ORDINALS,
    RANGE,
    UNITS,
    Token,
    tokens,
)
from lodger.engine.recurrence.rule import Kind, RuleSpec
from lodger.engine.recurrence.rule_errors import RuleInvalid

#: Longest text of a rule in English, in characters.
LONGEST = 500
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_SECONDS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3600}
_FIRST = {
    *("on", "the", "each", "once", *ADVERBS, *DAY_OF, *DAY_SETS, *ORDINALS),
    *("biweekly", "bimonthly", "biannually", "next", "twice"),
}
_LATER = {*DAY_OF, *DAY_SETS, *ORDINALS, "on", "at", "of", "in", "from", "other", "counted", "starting"}
_WORD = re.compile(r"[a-z]+|[0-9]+(?:st|nd|rd|th)\b|\(")
_INTERVAL = re.compile(r"(every [^,]{1,100}), (counted from|starting at) (\S{1,40})", re.IGNORECASE)
_ONCE = re.compile(r"once, at (\S{1,40})(?: \((\S{1,40})\))?", re.IGNORECASE)


def begins(text: str) -> bool:
    """Whether a text is a rule in English, and not an interval (``every 5 minutes``) or a date (``at 2027-01-01``)."""
    words = _WORD.findall(text[:LONGEST].lower())
    first = re.match(r"[a-z]+(?=[ \t,-]|\Z)|[0-9]+(?:st|nd|rd|th)\b", text, re.IGNORECASE)
    if not first:
        return False
    if first[0].lower() == "at":
        return re.match(r"at[ \t]+[0-9]{3}", text, re.IGNORECASE) is None
    if first[0].lower() == "every":
        return any(word in _LATER or not word.isalpha() for word in words) or words.count("every") > 1
    return first[0].lower() in _FIRST or first[0][0].isdigit()


def translate(text: str) -> RuleSpec:
    """Return the rule that a text means, as RRULE, cron expression, interval or one-off.

    Raises:
        RuleInvalid: ``english_unclear``, with the position, and what to write instead.
    """
    if len(text) > LONGEST:
        raise RuleInvalid("english_unclear.long", count=len(text), maximum=LONGEST, index=LONGEST)
    body = text.strip()
    if match := _INTERVAL.fullmatch(body):
        start = None if match[2].lower() == "counted from" else match[3]
        return RuleSpec(match[1], Kind.EVERY, dtstart=start)
    if match := _ONCE.fullmatch(body):
        return RuleSpec(f"at {match[1]}", Kind.ONCE, tz=match[2])
    return _Parser(tokens(text), len(text)).rule()


@dataclass(slots=True)
class _Parser:
    left: list[Token]
    end: int
    at: int = 0
    freq: str = ""
    interval: int = 1
    times: list[tuple[int, int, int]] = field(default_factory=list)
    minutes: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    weekdays: set[int] = field(default_factory=set)
    nth_weekdays: list[tuple[int, int]] = field(default_factory=list)
    month_days: list[int] = field(default_factory=list)
    months: set[int] = field(default_factory=set)
    position: int = 0
    week_start: int | None = None
    zone: str | None = None
    #: Whether a comma follows the times or the step, as in sentences of cron expressions.
    cron: bool = False

    # Tokens

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.left[place].text if place < len(self.left) else ""

    def index(self) -> int:
        return self.left[self.at].place if self.at < len(self.left) else self.end

    def take(self, *words: str) -> bool:
        """Skip these words if they come next."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def number(self, low: int, high: int, name: str) -> int:
        found = re.fullmatch(r"([0-9]{1,4})(?:st|nd|rd|th)?", self.peek())
        if found is None or not low <= int(found[1]) <= high:
            raise RuleInvalid(
                "english_unclear.number",
                word=self.peek() or "the end",
                name=name,
                low=low,
                high=high,
                index=self.index(),
            )
        self.at += 1
        return int(found[1])

    # Clauses

    def rule(self) -> RuleSpec:
        while self.at < len(self.left):
            self.clause()
        if not (self.freq or self.times or self.minutes or self._has_days()):
            raise RuleInvalid("english_unclear.nothing", index=self.index())
        if self.freq in _SECONDS and self.times:
            raise RuleInvalid("english_unclear.step_times", index=self.index())
        counted_back = any(number < -1 for number, _weekday in self.nth_weekdays)
        if self.position or counted_back or (self.freq and not self.cron):
            return RuleSpec(self._rrule(), Kind.RRULE, tz=self.zone)
        return RuleSpec(self._cron(), Kind.CRON, tz=self.zone)

    def clause(self) -> None:
        word = self.peek()
        if word in AMBIGUOUS:
            raise RuleInvalid("english_unclear.ambiguous", word=word, example=AMBIGUOUS[word], index=self.index())
        if word.startswith("("):
            self.zone = word[1:-1]
            self.at += 1
        elif word == ",":
            self.at += 1
            self.cron = self.cron or self.peek() not in {"only", "weeks"}
        elif word in ADVERBS:
            self.at += 1
            self.step(*ADVERBS[word])
        elif self.take("every") or self.take("each"):
            self.every()
        elif self.take("weeks", "beginning", "on"):
            self.week_start = self.weekday()
        elif self.take("only", "the"):
            self.position = self.ordinal()
            if not self.take("of", "these", "in", "each", "month"):
                raise RuleInvalid("english_unclear.only", index=self.index())
        elif self.take("at"):
            self.clock()
        elif self.take("from"):
            self.series()
        elif self.take("in", "hours"):
            self.hours = self.members(lambda: self.number(0, 23, "an hour"))
        elif word in {"in", "of", "during"}:
            self.at += 1
            self.of_months()
        else:
            self.take("on")
            self.days()

    def step(self, freq: str, interval: int) -> None:
        if self.freq or (self.times and (freq, interval) != ("DAILY", 1)):
            if (freq, interval) != ("DAILY", 1):
                raise RuleInvalid("english_unclear.two_steps", index=self.index())
            return
        if not self.times:
            self.freq, self.interval = freq, interval

    def every(self) -> None:
        if self.take("other"):
            count = 2
        elif self.peek().isdigit():
            count = self.number(1, 9999, "a step")
        else:
            count = 1
        unit = self.peek()
        if unit in UNITS:
            self.at += 1
            self.step(UNITS[unit], count)
        elif count == 1:
            self.days()
        elif unit in DAY_OF:
            self.step("WEEKLY", count)
            self.days()
        else:
            raise RuleInvalid("english_unclear.unit", unit=unit or "the end", index=self.index())

    def members(self, item: Callable[[], int]) -> list[int]:
        """Read ``1, 3 and 5 through 7``."""
        found = [item()]
        while self.peek() in AND | RANGE and self.peek(1)[:1].isdigit():
            through = self.peek() in RANGE
            self.at += 1
            last = item()
            if through and last <= found[-1]:
                raise RuleInvalid("english_unclear.range", index=self.index())
            found += range(found[-1] + 1, last + 1) if through else [last]
        return found

    def clock(self) -> None:
        if self.take("minute") or self.take("minutes"):
            self.minutes = self.members(lambda: self.number(0, 59, "a minute"))
            if self.take("of", "every", "hour"):
                self.cron = True
            return
        self.times.append(self.time())
        while self.peek() in AND and (self.peek(1)[:1].isdigit() or self.peek(1) in {"noon", "midnight", "at"}):
            self.at += 1
            self.take("at")
            self.times.append(self.time())

    def time(self) -> tuple[int, int, int]:
        if self.take("noon"):
            return 12, 0, 0
        if self.take("midnight"):
            return 0, 0, 0
        parts = [int(part) for part in self.peek().split(":") if part.isdigit()]
        half = self.peek(1) if self.peek(1) in {"am", "pm"} else ""
        hour, minute, second = (*parts, 0, 0, 0)[:3]
        if not parts or minute > 59 or second > 59 or not (1 <= hour <= 12 if half else hour < 24):
            raise RuleInvalid("english_unclear.time", word=self.peek() or "the end", index=self.index())
        self.at += 2 if half else 1
        return (hour % 12 + 12 * (half == "pm")) if half else hour, minute, second

    def series(self) -> None:
        """Read ``from 09:00 through 17:00`` as the times that the step makes."""
        first = self.time()
        if self.freq not in _SECONDS or self.peek() not in RANGE:
            raise RuleInvalid("english_unclear.window", index=self.index())
        self.at += 1
        last = self.time()
        begin, end = (hour * 3600 + minute * 60 + second for hour, minute, second in (first, last))
        step = _SECONDS[self.freq] * self.interval
        self.times = [(at // 3600, at // 60 % 60, at % 60) for at in range(begin, end + 1, step)]
        self.freq, self.interval, self.cron = "", 1, True

    def of_months(self) -> None:
        self.take("the") or self.take("each") or self.take("every") or self.take("a")
        if self.take("month"):
            return
        self.months |= {self.month()}
        while self.peek() in AND | RANGE and self.peek(1) in MONTH_OF:
            through = self.peek() in RANGE
            first = MONTH_OF[self.peek(-1)]
            self.at += 1
            last = self.month()
            self.months |= (
                {(first + each - 1) % 12 + 1 for each in range((last - first) % 12 + 1)} if through else {last}
            )

    def month(self) -> int:
        if self.peek() not in MONTH_OF:
            raise RuleInvalid("english_unclear.month", word=self.peek() or "the end", index=self.index())
        self.at += 1
        return MONTH_OF[self.left[self.at - 1].text]

    def weekday(self) -> int:
        if self.peek() not in DAY_OF:
            raise RuleInvalid("english_unclear.weekday", word=self.peek() or "the end", index=self.index())
        self.at += 1
        return DAY_OF[self.left[self.at - 1].text]

    def ordinal(self) -> int:
        """Read ``1st``, ``last`` or ``2nd last``; the last is -1."""
        word = self.peek()
        number = ORDINALS.get(word) or self.number(1, 31, "an ordinal")
        self.at += word in ORDINALS
        before_last = number > 0 and (self.take("to", "last") or self.take("last"))
        return -number if before_last else number

    def days(self) -> None:
        self.day()
        while self.peek() in AND and self._is_day(1 + (self.peek(1) in {"on", "the"})):
            self.at += 1
            self.take("on")
            self.day()

    def _is_day(self, ahead: int) -> bool:
        word = self.peek(ahead)
        if word in AND:  # the comma of ", and"
            word = self.peek(ahead + 1)
        return (
            word in DAY_OF
            or word in DAY_SETS
            or word in ORDINALS
            or re.fullmatch(r"[0-9]+(st|nd|rd|th)", word) is not None
        )

    def day(self) -> None:
        self.take("the")
        word = self.peek()
        if word in DAY_SETS:
            self.at += 1
            self.weekdays |= DAY_SETS[word]
        elif word in DAY_OF:
            first = self.weekday()
            last = first
            if self.peek() in RANGE and self.peek(1) in DAY_OF:
                self.at += 1
                last = self.weekday()
            self.weekdays |= {(first + each) % 7 for each in range((last - first) % 7 + 1)}
        elif word in MONTH_OF:
            self.months.add(self.month())
            self.month_days.append(self.number(1, 31, "a day"))
        elif word in {"day", "days"} and self.peek(1)[:1].isdigit():
            self.at += 1
            self.month_days += self.members(lambda: self.number(1, 31, "a day"))
        elif word in ORDINALS or re.fullmatch(r"[0-9]+(st|nd|rd|th)", word):
            self.nth(self.ordinal())
        else:
            raise RuleInvalid("english_unclear.unknown", word=word or "the end", index=self.index())

    def nth(self, number: int) -> None:
        if self.peek() in DAY_OF:
            if abs(number) > 5:
                raise RuleInvalid("english_unclear.five", index=self.index())
            self.nth_weekdays.append((number, self.weekday()))
        elif self.take("weekday"):
            self.weekdays |= DAY_SETS["weekday"]
            self.position = number
        else:
            self.take("day")
            self.month_days.append(number)

    # Translations

    def _has_days(self) -> bool:
        return bool(self.weekdays or self.nth_weekdays or self.month_days)

    def _product(self) -> tuple[list[int], list[int], list[int]]:
        """Hours, minutes and seconds that combine to the times; midnight when there are none."""
        times = set(self.times or [(0, 0, 0)])
        hours, minutes, seconds = (sorted({time[place] for time in times}) for place in range(3))
        if len(times) != len(hours) * len(minutes) * len(seconds):
            raise RuleInvalid("english_unclear.times", index=self.end)
        return hours, minutes, seconds

    def _rrule(self) -> str:
        freq = self.freq or "MONTHLY"
        if (freq == "WEEKLY" and not self.weekdays) or (freq in {"MONTHLY", "YEARLY"} and not self._has_days()):
            raise RuleInvalid("english_unclear.day_of_step", index=self.end)
        if freq == "YEARLY" and not self.months:
            raise RuleInvalid("english_unclear.month_missing", index=self.end)
        parts = {"FREQ": [freq], "INTERVAL": [str(self.interval)] if self.interval > 1 else []}
        parts["BYMONTH"] = [str(month) for month in sorted(self.months)]
        parts["BYMONTHDAY"] = [str(day) for day in self.month_days]
        parts["BYDAY"] = [_DAYS[day] for day in sorted(self.weekdays)] + [
            f"{n}{_DAYS[day]}" for n, day in self.nth_weekdays
        ]
        if freq in _SECONDS:
            parts["BYHOUR"] = [str(hour) for hour in self.hours]
            parts["BYMINUTE"] = [str(minute) for minute in self.minutes]
        else:
            for name, numbers in zip(("BYHOUR", "BYMINUTE", "BYSECOND"), self._product(), strict=True):
                parts[name] = [str(number) for number in numbers]
        parts["BYSETPOS"] = [str(self.position)] if self.position else []
        parts["WKST"] = [_DAYS[self.week_start]] if self.week_start is not None else []
        return ";".join(f"{name}={','.join(values)}" for name, values in parts.items() if values)

    def _cron(self) -> str:
        if not (self.freq or self._has_days() or self.months or self.cron):
            raise RuleInvalid("english_unclear.day_missing", index=self.end)
        if self.interval > 1 and (self.freq not in _SECONDS or 60 % self.interval or self.freq == "HOURLY"):
            raise RuleInvalid("english_unclear.step_of_60", index=self.end)
        if bool(self.weekdays) + bool(self.nth_weekdays) + bool(self.month_days) > 1:
            raise RuleInvalid("english_unclear.days_mixed", index=self.end)
        step = "*" if self.interval == 1 else f"*/{self.interval}"
        hours = _listed(self.hours)
        if self.freq == "SECONDLY":
            time = f"{step} * {hours}"
        elif self.freq == "MINUTELY":
            time = f"{step} {hours}"
        elif self.freq == "HOURLY" or self.minutes:
            time = f"{_listed(self.minutes or [0])} {hours}"
        else:
            hour, minute, second = (_listed(numbers) for numbers in self._product())
            time = f"{minute} {hour}" if second == "0" else f"{second} {minute} {hour}"
        return f"{time} {self._month_days()} {_listed(sorted(self.months))} {self._weekdays()}"

    def _month_days(self) -> str:
        return ",".join(str(day) if day > 0 else "L" if day == -1 else f"L{day + 1}" for day in self.month_days) or "*"

    def _weekdays(self) -> str:
        nth = [f"{(day + 1) % 7}{'L' if n == -1 else f'#{n}'}" for n, day in self.nth_weekdays]
        return ",".join([*nth, *(str((day + 1) % 7) for day in sorted(self.weekdays))]) or "*"


def _listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers)) or "*"
