"""How often a schedule fires at most: bounds proved from days, times and changes of clocks, not sampled.

Approaches tried and dropped: looking at the first slots of each rule misses a burst that comes once a year; walking all
slots up to year 9999 takes hours. Here the days of a year are split into classes that the same rules share, each class
has one set of times, and each kind of clock change (how far, at what time of day) is laid over those times. Exclusions,
DTSTART and UNTIL only take slots away and are left out, so the bound may be wider than the truth, never narrower. Where
a clock change would decide and few slots are concerned, the real slots around every such change are looked at.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from math import gcd

from lodger.engine.recurrence import timeset
from lodger.engine.recurrence.civil import CYCLE_YEARS, DAY_S, MAX_LOCAL, days_in_year, naive_of
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.once import OnceAt, OnceLocal
from lodger.engine.recurrence.pattern import Pattern, dates_of, patterns_of
from lodger.engine.recurrence.rule import Density, DstPolicy, Fold, Gap, Recurrence
from lodger.engine.recurrence.union import FIRST, LAST, Union
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import FAR, Segment, Zone

_DAY_US = DAY_S * 1_000_000
#: Patterns of one zone that are told apart; more are taken as one that has all their times every day.
_TOLD_APART = 40
#: Kinds of days that are told apart; more are taken in the same way.
_CLASSES = 3000
#: Slots around one kind of clock change up to which the real ones are looked at.
_REAL = 64
_CYCLE = range(2000, 2000 + CYCLE_YEARS)


@dataclass(frozen=True, slots=True)
class _Change:
    """A kind of clock change: the jump, the local second of the day at which it comes, and the offset before."""

    jump: int
    second: int
    before: int


class Clock:
    """Wall-clock rules of one zone and one DST policy."""

    def __init__(self, zone: Zone, gap: Gap, fold: Fold) -> None:
        self.zone, self.gap, self.fold = zone, gap, fold
        self.rules: list[Zoned] = []
        self.patterns: list[Pattern] = []
        self._changes: dict[_Change, list[Segment]] | None = None

    @property
    def times(self) -> int:
        """Times of day that any rule has."""
        found = 0
        for pattern in self.patterns:
            found |= pattern.times
        return found

    def changes(self) -> dict[_Change, list[Segment]]:
        """Every change of the clocks since 1970, by its kind; after 400 years they repeat."""
        if self._changes is None:
            self._changes = {}
            here = self.zone.segment(0)
            while here.end < min(FAR, MAX_LOCAL, self.zone.stored_to + (CYCLE_YEARS + 2) * 366 * DAY_S):
                here = self.zone.segment(here.end)
                kind = _Change(here.offset - here.before, (here.start + here.before) % DAY_S, here.before)
                self._changes.setdefault(kind, []).append(here)
        return self._changes

    def utc_times(self) -> int:
        """Seconds of the UTC day at which a slot can be, by any offset that the zone has had since 1970."""
        times, found = self.times, 0
        for change in self.changes():
            if self.gap is Gap.NEXT and change.jump > 0:
                found |= 1 << (change.second - change.before) % DAY_S
        for offset in self._offsets():
            at = -offset % DAY_S
            found |= (times << at | times >> DAY_S - at) & ((1 << DAY_S) - 1)
        return found

    def _offsets(self) -> set[int]:
        offsets = {self.zone.segment(0).offset}
        for change in self.changes():
            offsets |= {change.before, change.before + change.jump}
        return offsets

    # -- days

    def _years(self) -> set[int]:
        """Years that hold every pair of neighbouring days there is."""
        years = set(_CYCLE)
        for pattern in self.patterns:
            if pattern.named is not None:
                years |= set(range(pattern.named[0] - 1, pattern.named[1] + 1))
        return years

    def _classes(self) -> set[tuple[tuple[bool, ...], tuple[bool, ...]]] | None:
        """Which patterns a day has and which the day after it, for every day of the calendar; None when they are too many."""
        rows = set()
        for year in self._years():
            length = days_in_year(year)
            rows.add(
                (length, *(pattern.days(year) | (pattern.days(year + 1) & 1) << length for pattern in self.patterns))
            )
        found: set[int] = set()
        for length, *masks in rows:
            parts = {1: (1 << length) - 1}
            for mask in (*masks, *(mask >> 1 for mask in masks)):
                split = {}
                for key, days in parts.items():
                    if here := days & mask:
                        split[key << 1 | 1] = here
                    if left := days & ~mask:
                        split[key << 1] = left
                parts = split
            found |= parts.keys()
            if len(found) > _CLASSES:
                return None
        size = len(self.patterns)
        told = (tuple(bit == "1" for bit in f"{key:b}"[1:]) for key in found)
        return {(each[:size], each[size:]) for each in told}

    def _days_apart(self) -> int:
        """Least distance greater than 1 of two days that have slots."""
        apart, rows = 366, set()
        for year in self._years():
            days = 0
            for pattern in self.patterns:
                days |= pattern.days(year) | pattern.days(year + 1) << days_in_year(year)
            rows.add(days)
        for days in rows:
            for each in range(2, apart):
                if days & days >> each:
                    apart = each
                    break
        return apart

    # -- bounds

    def bound(self, best: int) -> tuple[int, int]:
        """Least distance of two slots in seconds (at most ``best``), and most slots of a UTC day."""
        classes = self._classes() if len(self.patterns) <= _TOLD_APART else None
        if classes is None:
            times = self.times
            whole = Pattern(lambda _year: (1 << 366) - 1, times, 1, times.bit_count())
            self.patterns = [whole]
            classes = self._classes() or set()
        steady = [not pattern.stepping for pattern in self.patterns]
        most = 0
        joins: dict[tuple[int, int], None] = {}
        for today, tomorrow in classes:
            joins[self._together(today, steady), self._together(tomorrow, steady)] = None
        for pattern in self.patterns:
            if pattern.stepping:
                best = min(best, max(pattern.apart_s, _product_gap(pattern.times)))
        told: set[tuple[int, int]] = set()
        for today, tomorrow in classes:
            for i, pattern in enumerate(self.patterns):
                if pattern.stepping and pattern.times:
                    best = self._beside(i, today, tomorrow, best, told)
        for first, second in joins:
            best = min(best, timeset.smallest_gap(first) or best)
            if first and second:
                best = min(best, DAY_S + timeset.lowest(second) - (first.bit_length() - 1))
        times = self.times
        if times and steady != [False]:
            best = min(best, self._days_apart() * DAY_S + timeset.lowest(times) - (times.bit_length() - 1))
        stepped = sum(pattern.most for pattern in self.patterns if pattern.stepping)
        for first, second in joins:
            for offset in self._offsets():
                at = offset % DAY_S
                most = max(most, (first >> at).bit_count() + (second & ((1 << at) - 1)).bit_count())
        return self._over_changes(best, most + stepped)

    def _together(self, member: tuple[bool, ...], steady: Sequence[bool]) -> int:
        found = 0
        for pattern, here, plain in zip(self.patterns, member, steady, strict=True):
            if here and plain:
                found |= pattern.times
        return found

    def _beside(
        self, i: int, today: tuple[bool, ...], tomorrow: tuple[bool, ...], best: int, told: set[tuple[int, int]]
    ) -> int:
        """Distance of a stepping pattern from the others on the same day and on the ones beside it; ``told`` are known."""
        mine = self.patterns[i].times
        for j, pattern in enumerate(self.patterns):
            if j == i or not pattern.times:
                continue
            if today[i] and today[j] and (i, j) not in told:
                told |= {(i, j), (j, i)}
                best = timeset.smallest_between(mine, pattern.times, best)
            if today[i] and tomorrow[j]:
                best = min(best, DAY_S + timeset.lowest(pattern.times) - (mine.bit_length() - 1))
            if tomorrow[i] and today[j]:
                best = min(best, DAY_S + timeset.lowest(mine) - (pattern.times.bit_length() - 1))
        return best

    def _over_changes(self, best: int, most: int) -> tuple[int, int]:
        times, more = self.times, most
        around = times | times << DAY_S | times << 2 * DAY_S | times << 3 * DAY_S
        for change, segments in self.changes().items():
            gap = 0 if best > DAY_S else timeset.smallest_gap(self._laid_over(around, change, best))
            if best > 1 and gap is not None and gap < best:
                # So many real slots there are at most around one change, unless the change itself brings them together.
                concerned = (2 * best + abs(change.jump)) // best * len(self.rules)
                best = gap if concerned > _REAL else self._real_gap(change, segments, best)
            extra = self._repeated(times, change)
            if extra and most + extra > more:
                more = most + extra if most + extra > _REAL else self._real_count(segments, more)
        return best, more

    def _laid_over(self, around: int, change: _Change, best: int) -> int:
        """What the clock before the change would show for all slots near it, from ``best`` seconds before on."""
        at, jump = DAY_S + change.second, change.jump
        before = around & (1 << at) - 1
        if jump > 0:
            after = around >> at + jump << at
            skipped = around >> at & (1 << jump) - 1
            if self.gap is Gap.SHIFT:
                after |= skipped << at
            elif self.gap is Gap.NEXT and skipped:
                after |= 1 << at
        elif self.fold is Fold.BOTH:
            after = around >> at + jump << at
        else:
            after = around >> at << at - jump
        near = min(best, DAY_S)
        return (before | after) >> at - near & (1 << 2 * near + abs(jump)) - 1

    def _repeated(self, times: int, change: _Change) -> int:
        """How many times of day a UTC day with this change can have twice."""
        if change.jump < 0:
            if self.fold is Fold.FIRST:
                return 0
            begin, length = (change.second + change.jump) % DAY_S, -change.jump
        else:
            begin, length = change.before % DAY_S, change.jump
        return ((times | times << DAY_S) >> begin & (1 << length) - 1).bit_count()

    def _real_gap(self, change: _Change, segments: list[Segment], best: int) -> int:
        for here in segments:
            slots = self._slots(here.start - best, here.start + abs(change.jump) + best)
            for one, other in pairwise(slots):
                best = min(best, other - one)
        return best

    def _real_count(self, segments: list[Segment], least: int) -> int:
        for here in segments:
            day = here.start // DAY_S * DAY_S
            least = max(least, len(self._slots(day, day + DAY_S - 1)))
        return least

    def _slots(self, first: int, last: int) -> list[int]:
        found = set()
        for rule in self.rules:
            slot = rule.next_utc(first, inclusive=True)
            while slot is not None and slot <= last:
                found.add(slot)
                slot = rule.next_utc(slot)
        return sorted(found)


def _product_gap(times: int) -> int:
    """Least distance when every day has the times."""
    if not times:
        return DAY_S
    wrap = DAY_S + timeset.lowest(times) - (times.bit_length() - 1)
    return min(wrap, timeset.smallest_gap(times) or wrap)


def bound_us(clocks: Sequence[Clock], intervals: Sequence[Every]) -> tuple[int | None, int]:
    """Least distance of two slots in microseconds and most slots in a UTC day, over all of them together."""
    best: int | None = None
    most = 0
    for clock in clocks:
        gap, count = clock.bound(366 * DAY_S)
        best = min(gap * 1_000_000, best or gap * 1_000_000)
        most += count
    for interval in intervals:
        best = min(interval.period_us, best or interval.period_us)
        most += -(-_DAY_US // interval.period_us)
    if best is None:
        return None, most
    shown = [clock.utc_times() for clock in clocks] if len(clocks) + len(intervals) > 1 else []
    for i, one in enumerate(shown):
        for other in shown[i + 1 :]:
            below = -(-best // 1_000_000)
            best = min(best, timeset.smallest_between(one, other, below, around=True) * 1_000_000)
    for i, interval in enumerate(intervals):
        for later in intervals[i + 1 :]:
            best = _beside_class(interval.anchor_us, later.anchor_us, gcd(interval.period_us, later.period_us), best)
        step = gcd(interval.period_us, _DAY_US)
        for times in shown:
            for at in timeset.listed(times):
                best = _beside_class(at * 1_000_000, interval.anchor_us, step, best)
    return best, most


def _beside_class(one: int, other: int, step: int, best: int) -> int:
    """Least distance greater than 0 of members of two residue classes of one step."""
    rest = (one - other) % step
    return min(best, rest, step - rest) if rest else min(best, step)


class Load:
    """All rules of a schedule by what they can be bounded with."""

    def __init__(self) -> None:
        self._clocks: dict[tuple[str, Gap, Fold], Clock] = {}
        self._intervals: dict[Every, None] = {}
        self._instants: set[datetime] = set()

    def add(self, rule: Recurrence) -> None:
        """Take in a rule, or every rule of a union."""
        if isinstance(rule, Union):
            for each in rule.rules:
                self.add(each)
        elif isinstance(rule, Every):
            self._intervals[rule] = None
        elif isinstance(rule, OnceAt):
            self._instants.add(rule.instant)
        elif isinstance(rule, Zoned):
            self._add_zoned(rule)
        else:
            raise TypeError(f"{type(rule).__name__} has no bound")

    def _add_zoned(self, rule: Zoned) -> None:
        patterns = patterns_of(rule.local)
        if patterns:
            # Rules of a zone without changes share a clock whatever their policy.
            key = (
                (rule.zone.key, rule.gap, rule.fold) if rule.zone.changes() else (rule.zone.key, Gap.SHIFT, Fold.FIRST)
            )
            clock = self._clocks.setdefault(key, Clock(rule.zone, rule.gap, rule.fold))
            clock.rules.append(rule)
            clock.patterns += patterns
        for local in dates_of(rule.local):
            single = Zoned(OnceLocal(local, naive_of(local)), rule.zone, DstPolicy(rule.gap, rule.fold))
            self._instants.update(single.between(FIRST, LAST))

    def density(self, whole: Union) -> Density:
        """Bound the schedule; single instants are compared with their real neighbours."""
        best, most = bound_us(list(self._clocks.values()), list(self._intervals))
        gap = None if best is None else timedelta(microseconds=best)
        per_day: Counter[date] = Counter()
        for instant in self._instants:
            if whole.next_after(instant, inclusive=True) != instant:
                continue
            per_day[instant.date()] += 1
            for near in (whole.previous_before(instant), whole.next_after(instant)):
                if near is not None and (gap is None or abs(instant - near) < gap):
                    gap = abs(instant - near)
        most += max(per_day.values(), default=0)
        if gap is None:
            return Density(None, most)
        return Density(gap.total_seconds(), min(most, -(-timedelta(days=1) // gap)))
