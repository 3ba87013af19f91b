"""The slots of a stretch of time as one integer, a bit for each second: what no walk from slot to slot can do in bounded work.

A day of a rule by the second and a day of one that hardly ever comes cost the same few operations on integers of some hundred
thousand bits. Wall-clock rules are laid out day by day and each stretch of one offset is moved to where it lies in UTC; what a
change skips, or shows twice, is a slice of the same bits.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Protocol

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import (
    DAY_S,
    MAX_DAY,
    MAX_LOCAL,
    MIN_DAY,
    MIN_LOCAL,
    civil,
    instant_of,
    utc_floor,
    year_start,
)
from lodger.engine.recurrence.cron.rule import CronRule
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.grid import Grid
from lodger.engine.recurrence.instants import Instants
from lodger.engine.recurrence.once import OnceLocal
from lodger.engine.recurrence.parts import Reduced
from lodger.engine.recurrence.rrule.blocks import of_positions, second_bits
from lodger.engine.recurrence.rrule.clock_steps import ClockSteps
from lodger.engine.recurrence.rrule.days import Days
from lodger.engine.recurrence.rrule.remainder import Remainder
from lodger.engine.recurrence.rrule.rule_set import SetSequence
from lodger.engine.recurrence.rrule.sequence import RuleSequence
from lodger.engine.recurrence.rrule.set_positions import SetPositions
from lodger.engine.recurrence.rrule.unit_times import UnitTimes
from lodger.engine.recurrence.rule import Fold, Gap, LocalSequence, Recurrence
from lodger.engine.recurrence.schyntax.rule import SchyntaxRule
from lodger.engine.recurrence.stretched import dilated
from lodger.engine.recurrence.union import Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned

#: So few units of a day are laid out one by one.
_FEW = 24
#: Parts of a rule that are laid out for each day.
_MANY_PARTS = 24
#: So few windows are laid out one by one.
_FEW_WINDOWS = 6


class Seconds(Protocol):
    """Slots that are known by the second."""

    #: What looking at two days costs at most, microseconds.
    effort_us: int

    def bits(self, first: int, length: int) -> int:
        """Slots from a UTC second on, for so many seconds: bit n is second ``first + n``."""
        ...


class _Unknown(Exception):
    """A rule whose slots of a day are not known at once."""


def seconds_of(rule: Recurrence) -> Seconds | None:
    """The slots of a rule by the second; None when they are not on whole seconds, or not known at once."""
    try:
        return _of(rule)
    except _Unknown:
        return None


def _of(rule: Recurrence) -> Seconds:
    if isinstance(rule, Union) and rule.start is None and rule.end is None and not rule.exclusions:
        return _All([_of(each) for each in rule.rules])
    if isinstance(rule, Zoned):
        return _OnClock(rule)
    if isinstance(rule, Instants) and not rule.instants:
        return _All(())
    if isinstance(rule, Every) and not rule.period_us % 1_000_000 and not rule.anchor_us % 1_000_000:
        return _Steps(rule)
    raise _Unknown


class _All:
    def __init__(self, each: Sequence[Seconds]) -> None:
        self._each, self.effort_us = each, sum(part.effort_us for part in each)

    def bits(self, first: int, length: int) -> int:
        found = 0
        for each in self._each:
            found |= each.bits(first, length)
        return found


class _Steps:
    """An interval of whole seconds."""

    def __init__(self, rule: Every) -> None:
        self._period, self._anchor = rule.period_us // 1_000_000, rule.anchor_us // 1_000_000
        self._starts, self.effort_us = rule.starts, 20

    def bits(self, first: int, length: int) -> int:
        begin = max(first, self._anchor) if self._starts else first
        end = min(first + length, MAX_LOCAL + 1)
        return stride(begin - first + (self._anchor - begin) % self._period, end - first, self._period)


class _OnClock:
    """A wall-clock rule in its zone."""

    def __init__(self, rule: Zoned) -> None:
        self._rule, self._local = rule, _Local(rule.local)
        self.effort_us = 15 + self._local.effort_us

    def bits(self, first: int, length: int) -> int:
        rule, at, end, found = self._rule, max(first, MIN_LOCAL), min(first + length, MAX_LOCAL + 1), 0
        single = rule.without
        if rule.last is not None:
            end = min(end, rule.last + 1)
        while at < end:
            here = rule.zone.segment(at)
            stop = min(end, here.end)
            jump, begin = here.offset - here.before, at + here.offset
            if jump < 0 and rule.fold is Fold.FIRST:
                begin = max(begin, here.start + here.before)  # what comes before was shown already
            if begin < stop + here.offset:
                found |= self._local.bits(begin, stop + here.offset) << begin - here.offset - first
            if jump > 0 and rule.gap is not Gap.SKIP and at < here.start + jump:
                found |= self._images(here.start, here.before, jump, at, stop) << at - first
            at = stop
        for utc in single:
            if first <= utc < first + length:
                found &= ~(1 << utc - first)
        return found

    def _images(self, start: int, before: int, jump: int, at: int, stop: int) -> int:
        """Slots from ``at`` on that the gap moved there."""
        opens = start + before
        if self._rule.gap is Gap.NEXT:
            return int(at == start and bool(self._local.bits(opens, opens + jump)))
        end = min(stop, start + jump)
        return self._local.bits(at + before, end + before)


@dataclass(frozen=True, slots=True)
class _Part:
    """Members on some days between two local seconds, both inside; with steps only those of the times that a step meets."""

    on: Callable[[int], bool]
    times: int
    steps: ClockSteps | None
    inside: int
    first: int
    last: int

    def of_day(self, day: int) -> int:
        """Seconds of a day."""
        begin = day * DAY_S
        if begin > self.last or begin + DAY_S <= self.first or not self.on(day):
            return 0
        found = self.times if self.steps is None else self._stepped(self.steps, day)
        if begin < self.first:
            found = found >> self.first - begin << self.first - begin
        if begin + DAY_S > self.last:
            found &= (2 << self.last - begin) - 1
        return found

    def _stepped(self, steps: ClockSteps, day: int) -> int:
        unit_s = DAY_S // steps.units
        units = stride((steps.origin - day * steps.units) % steps.n * unit_s, DAY_S, steps.n * unit_s)
        if self.inside == 1:
            return units & self.times
        if steps.n * _FEW < steps.units:
            return units * self.inside & self.times  # units do not overlap: a product sets every bit once
        found = 0
        for unit in timeset.listed(units):
            found |= self.inside << unit
        return found & self.times


class _Local:
    """Members of a wall-clock rule by the local second."""

    def __init__(self, local: LocalSequence) -> None:
        self._parts: list[_Part] = []
        #: Members that are named one by one, and ranges without any, ascending.
        self._dates: Sequence[int] = ()
        self._firsts: Sequence[int] = ()
        self._lasts: Sequence[int] = ()
        if isinstance(local, CronRule):
            self._add(local.grid, MIN_LOCAL, MAX_LOCAL)
        elif isinstance(local, SchyntaxRule):
            for group in local.groups:
                self._add(group.grid, MIN_LOCAL, MAX_LOCAL)
        elif isinstance(local, RuleSequence):
            self._sequence(local)
            self._dates = local.head
        elif isinstance(local, SetSequence):
            self._set(local)
        elif isinstance(local, Reduced):
            self._remainders(local.remainders)
        elif isinstance(local, OnceLocal):
            self._dates = (local.at,)
        else:
            raise _Unknown

    @property
    def effort_us(self) -> int:
        """What laying out two days costs at most, microseconds."""
        return sum(12 if part.steps is None else 70 if part.inside == 1 else 130 for part in self._parts)

    def bits(self, begin: int, end: int) -> int:
        """Members from a local second up to another."""
        found = 0
        for day in range(max(begin // DAY_S, MIN_DAY), min((end - 1) // DAY_S, MAX_DAY) + 1):
            here = 0
            for part in self._parts:
                here |= part.of_day(day)
            at = day * DAY_S - begin
            found |= here << at if at >= 0 else here >> -at
        found &= (1 << end - begin) - 1
        for local in self._dates[bisect_left(self._dates, begin) : bisect_left(self._dates, end)]:
            found |= 1 << local - begin
        for i in range(max(0, bisect_right(self._firsts, begin) - 1), bisect_left(self._firsts, end)):
            if self._lasts[i] >= begin:
                low = max(self._firsts[i] - begin, 0)
                found &= ~((2 << self._lasts[i] - begin) - 1 >> low << low)
        return found

    def _sequence(self, rule: RuleSequence) -> None:
        if rule.base is not None and rule.start <= rule.until:
            self._add(rule.base, rule.start, rule.until)

    def _set(self, local: SetSequence) -> None:
        if local.remainders:
            self._remainders(local.remainders)
            self._dates = local.dates
        else:
            for rule in local.included:
                self._sequence(rule)
            self._dates = sorted({*local.dates, *(each for rule in local.included for each in rule.head)})
        self._firsts, self._lasts = local.removed

    def _remainders(self, remainders: Iterable[Remainder]) -> None:
        for remainder in remainders:
            for stretch in remainder.stretches:
                if stretch.loose:
                    raise _Unknown
                if stretch.whole is not None:
                    self._add(stretch.whole, stretch.first, stretch.last)
                for piece in stretch.pieces:
                    self._add(piece.source, stretch.first, stretch.last)

    def _add(self, source: object, first: int, last: int) -> None:
        if isinstance(source, Grid):
            days, times = source.days, source.times()
            if times:
                self._parts.append(
                    _Part(lambda day: _on(days.of_year, day), times, None, 0, first, last),
                )
        elif isinstance(source, UnitTimes):
            steps = source.steps
            if isinstance(steps, ClockSteps):
                every = second_bits(timeset.of_flags(steps.table), steps.units, source.times)
                self._parts.append(_Part(steps.days.contains, every, steps, source.times.bits(), first, last))
            else:
                self._parts.append(_Part(steps.contains, source.times.bits(), None, 0, first, last))
        elif isinstance(source, SetPositions):
            blocks = of_positions(source)
            if blocks is None:
                raise _Unknown
            for block in blocks:
                self._parts.append(_Part(Days(block.allowed, block.phase).contains, block.times, None, 0, first, last))
        else:
            raise _Unknown
        if len(self._parts) > _MANY_PARTS:
            raise _Unknown


def _on(of_year: Callable[[int], int], day: int) -> bool:
    year = civil(day)[0]
    return bool(of_year(year) >> day - year_start(year) & 1)


class Shut:
    """What an exclusion closes, by the second."""

    def __init__(self, window: Windows, opens: Seconds) -> None:
        self._window, self._opens = window, opens
        self.effort_us = opens.effort_us + (0 if window.instants_only else 55)

    def bits(self, first: int, length: int) -> int:
        """Seconds at which it is closed from a UTC second on, for so many seconds."""
        window, opened = self._window, self._opens.bits(first, length)
        if window.instants_only:
            return opened
        found, covered = 0, window.covering(instant_of(first))
        if covered is not None:
            found = (1 << min(utc_floor(covered[1])[0] - first, length)) - 1
        if not window.whole_days and opened.bit_count() > _FEW_WINDOWS:
            found |= dilated(opened, min(window.length_s or 1, length))
            return found & (1 << length) - 1
        at = 0
        while left := opened >> at:
            at += timeset.lowest(left)
            end = utc_floor(window.end(instant_of(first + at)))[0] - first
            found |= (1 << min(end, length)) - 1 >> at << at
            at = max(at + 1, end) if window.whole_days else at + 1
        return found


class Spread:
    """Free slots of a rule by the second."""

    def __init__(self, source: Seconds, shut: Sequence[Shut]) -> None:
        self._source, self._shut = source, tuple(shut)
        #: What looking at a stretch of two days costs at most, microseconds.
        self.effort_us = source.effort_us + sum(each.effort_us for each in shut)

    def free(self, first: int, length: int) -> int:
        """Slots at which nothing is closed from a UTC second on, for so many seconds."""
        found = self._source.bits(first, length)
        for each in self._shut:
            if not found:
                return 0
            found &= ~each.bits(first, length)
        return found


def spread(source: Recurrence, windows: Sequence[Windows]) -> Spread | None:
    """Free slots of a rule without what exclusions close; None when they are not known by the second."""
    slots = seconds_of(source)
    opens = [seconds_of(_met(each)) for each in windows]
    if slots is None or None in opens:
        return None
    return Spread(slots, [Shut(window, each) for window, each in zip(windows, opens, strict=True) if each is not None])


def _met(window: Windows) -> Recurrence:
    """What opens an exclusion, of an interval of fractions that closes single instants only those on whole seconds."""
    opens = window.opens
    if not isinstance(opens, Every) or not window.instants_only:
        return opens
    common = gcd(opens.period_us, 1_000_000)
    if opens.anchor_us % common:
        return Instants(())
    turns = 1_000_000 // common
    first = -(opens.anchor_us // common) * pow(opens.period_us // common, -1, turns) % turns
    return replace(opens, period_us=opens.period_us * turns, anchor_us=opens.anchor_us + first * opens.period_us)
