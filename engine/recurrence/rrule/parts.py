"""The values of one RRULE or EXRULE, as written and as filled in from DTSTART."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.rrule.moments import Moment


class Freq(IntEnum):
    """FREQ; a greater value repeats more often."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


#: Length in seconds of the unit that a sub-daily FREQ counts.
UNIT_S = {Freq.DAILY: 86_400, Freq.HOURLY: 3600, Freq.MINUTELY: 60, Freq.SECONDLY: 1}


@dataclass(frozen=True, slots=True)
class Rule:
    """The parts of a rule; an empty tuple is an absent part. Numbers are sorted and distinct.

    Attributes:
        byday: (ordinal, weekday) pairs, ordinal 0 when there is none, weekday 0 for Monday.
        until: last moment; a DATE covers its whole day.
        wkst: weekday that begins a week.
    """

    freq: Freq
    interval: int = 1
    count: int | None = None
    until: Moment | None = None
    wkst: int = 0
    bymonth: tuple[int, ...] = ()
    byweekno: tuple[int, ...] = ()
    byyearday: tuple[int, ...] = ()
    bymonthday: tuple[int, ...] = ()
    byday: tuple[tuple[int, int], ...] = ()
    byhour: tuple[int, ...] = ()
    byminute: tuple[int, ...] = ()
    bysecond: tuple[int, ...] = ()
    bysetpos: tuple[int, ...] = ()

    def names_times(self) -> bool:
        """Whether the rule names times of day, or moments closer than days."""
        return self.freq > Freq.DAILY or bool(self.byhour or self.byminute or self.bysecond)

    def filled(self, start: int) -> "Rule":
        """Add the parts that the rule derives from DTSTART (RFC 5545 §3.3.10).

        YEARLY with BYWEEKNO alone takes DTSTART's weekday; YEARLY with BYMONTHDAY expands over every month.
        """
        day, second = civil.split(start)
        _, month, dom = civil.civil(day)
        time = civil.clock(second)
        chooses_days = bool(self.byyearday or self.bymonthday or self.byday)
        derived: dict[str, Any] = {}
        if self.freq is Freq.YEARLY and not chooses_days:
            if self.byweekno:
                derived["byday"] = ((0, civil.weekday(day)),)
            else:
                derived |= {"bymonth": self.bymonth or (month,), "bymonthday": (dom,)}
        elif self.freq is Freq.MONTHLY and not chooses_days and not self.byweekno:
            derived["bymonthday"] = (dom,)
        elif self.freq is Freq.WEEKLY and not chooses_days and not self.byweekno:
            derived["byday"] = ((0, civil.weekday(day)),)
        clock = zip((Freq.HOURLY, Freq.MINUTELY, Freq.SECONDLY), ("byhour", "byminute", "bysecond"), time, strict=True)
        derived |= {name: (value,) for freq, name, value in clock if self.freq < freq and not getattr(self, name)}
        return replace(self, **derived)
