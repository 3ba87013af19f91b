"""Days that come so many days after, or before, the days of a set, and days near no change of the clocks."""

from collections.abc import Mapping
from math import lcm

from lodger.engine.recurrence.civil import MAX_YEAR, civil, days_in_year, year_start
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.year_masks import span
from lodger.engine.recurrence.year_kinds import EVERY_DAY, KindMasks
from lodger.engine.recurrence.zones import Zone

#: Further than that nothing is said about days.
MOST_DAYS = 300


def _shifted(before: int, here: int, after: int, year: int, first: int, last: int) -> int:
    """Bits of a year's days that lie ``first`` to ``last`` days after those of three years."""
    length, earlier = days_in_year(year), days_in_year(year - 1)
    days = before | here << earlier | after << earlier + length
    width, have = last - first + 1, 1
    while have < width:
        more = min(have, width - have)
        days |= days << more
        have += more
    at = earlier - first
    return (days >> at if at >= 0 else days << -at) & (1 << length) - 1


class Later(KindMasks):
    """The days ``first`` to ``last`` days after those of a set; negative numbers are before them."""

    def __init__(self, days: KindMasks, first: int, last: int) -> None:
        super().__init__()
        self._days, self._first, self._last = days, first, last

    def _compute(self, year: int) -> int:
        before, here, after = (self._days.mask(each) for each in (year - 1, year, year + 1))
        return _shifted(before, here, after, year, self._first, self._last)


class LaterSelected:
    """The same of the days of a set that a phase selects, as a phase."""

    def __init__(self, days: KindMasks, phase: Phase, first: int, last: int) -> None:
        self._days, self._phase, self._first, self._last = days, phase, first, last
        self.years = phase.years
        #: What a look at a year is: each year is looked at once for three.
        self.work: int = 7 + getattr(phase, "work", 1)
        within = named_years(phase)
        #: Years outside of which it has no day, when these are known; at most.
        self.named = None if within is None else (within[0] + first // 365 - 1, within[1] + last // 365 + 1)
        #: Of the last years that were asked for: each is needed for three.
        self._kept: dict[int, int] = {}

    def mask(self, year: int) -> int:
        """The year's days."""
        years = (year - 1, year, year + 1)
        before, here, after = (self._selected(each) for each in years)
        return _shifted(before, here, after, year, self._first, self._last)

    def _selected(self, year: int) -> int:
        found = self._kept.get(year)
        if found is None:
            if len(self._kept) > 64:
                self._kept.clear()
            found = self._kept[year] = self._days.mask(year) & self._phase.mask(year)
        return found

    def on(self, day: int) -> bool:
        """Whether the day is one of them."""
        raise NotImplementedError

    def prepare(self, allowed: KindMasks) -> None:
        """Nothing is to be made."""

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is moved."""
        raise NotImplementedError

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is moved."""
        raise NotImplementedError


class Both:
    """Days that two phases select; the second only leaves out some."""

    def __init__(self, one: Phase | None, other: Phase) -> None:
        self._one, self._other = one, other
        self.work: int = getattr(one, "work", 1) + getattr(other, "work", 1)
        self.years = other.years if one is None else lcm(one.years, other.years)
        #: Years outside of which it has no day, when these are known.
        self.named = named_years(other) or named_years(one)

    def mask(self, year: int) -> int:
        """The year's days."""
        return self._other.mask(year) if self._one is None else self._one.mask(year) & self._other.mask(year)

    def on(self, day: int) -> bool:
        """Whether both select the day."""
        return self._other.on(day) and (self._one is None or self._one.on(day))

    def prepare(self, allowed: KindMasks) -> None:
        """Nothing is to be made."""

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is selected twice."""
        raise NotImplementedError

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is selected twice."""
        raise NotImplementedError


class Near(KindMasks):
    """Days from ``before`` days before to ``after`` days after the changes of a zone's clocks, in years that repeat."""

    def __init__(self, zone: Zone, before: int, after: int) -> None:
        super().__init__()
        self._zone, self._before, self._after = zone, before, after

    def _compute(self, year: int) -> int:
        found = 0
        for day in self._zone.yearly_changes(year):
            at = day - year_start(year)
            found |= span(at - self._before, at + self._after + 1)
        return found


class Far(KindMasks):
    """Days of a set that are not among those of another."""

    def __init__(self, days: KindMasks, others: KindMasks) -> None:
        super().__init__()
        self._days, self._others = days, others

    def _compute(self, year: int) -> int:
        return self._days.mask(year) & ~self._others.mask(year)


class InYears:
    """Days of years one by one, as a phase that only leaves out some; of other years all or none.

    Args:
        days: bits of the days of some years.
        others: those of every other year.
    """

    def __init__(self, days: Mapping[int, int], others: int = 0) -> None:
        self.years = 400 * MAX_YEAR  # such years do not repeat
        self.by_year, self._others = dict(days), others
        #: Years outside of which it has no day, when these are known.
        self.named = (min(days), max(days)) if days and not others else None

    def mask(self, year: int) -> int:
        """The year's days."""
        return self.by_year.get(year, self._others)

    def on(self, day: int) -> bool:
        """Whether the day is one of them."""
        year = civil(day)[0]
        return bool(self.mask(year) >> day - year_start(year) & 1)

    def prepare(self, allowed: KindMasks) -> None:
        """Nothing is to be made."""

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is chosen so."""
        raise NotImplementedError

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Never asked: only what is taken away is chosen so."""
        raise NotImplementedError


def near_once(zone: Zone, before: int, after: int) -> InYears:
    """Days near a change that the zone's clocks made in a year with rules of its own."""
    near: dict[int, int] = {}
    for change in zone.changes_once():
        for day in range(change - before, change + after + 1):
            year = civil(day)[0]
            near[year] = near.get(year, 0) | 1 << day - year_start(year)
    return InYears(near)


def far_once(zone: Zone, before: int, after: int) -> InYears:
    """The other days."""
    near = near_once(zone, before, after)
    return InYears({year: EVERY_DAY & ~days for year, days in near.by_year.items()}, EVERY_DAY)


def named_years(phase: object) -> tuple[int, int] | None:
    """Years outside of which a phase has no day, when these are known."""
    found: tuple[int, int] | None = getattr(phase, "named", None)
    return found
