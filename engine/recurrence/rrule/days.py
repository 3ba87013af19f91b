"""The allowed days of selected periods, asked by seeking: year masks first, arithmetic over whole calendars after that."""

from lodger.engine.core.protocol import Protocol
from lodger.engine.recurrence import civil
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.rrule.phase import Phase, year_from, year_to
from lodger.engine.recurrence.year_kinds import KindMasks

#: Years that are looked at one by one before the calendar as a whole is.
_NEAR = 8
_PROBED = (2000, 2001, 2003, 2004)


class DaySet(Protocol):
    """A set of days that seeks."""

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is a member."""

    def contains(self, day: int) -> bool:
        """Whether the day is a member."""

    def next(self, day: int) -> int | None:
        """First member from this day on."""

    def previous(self, day: int) -> int | None:
        """Last member up to this day."""


class Days:
    """Allowed days that the phase selects; a phase of None selects every day."""

    def __init__(self, allowed: KindMasks, phase: Phase | None) -> None:
        self.allowed = allowed
        self.phase = phase
        if phase is not None:
            phase.prepare(allowed)
        elif not all(allowed.mask(year) for year in _PROBED):
            allowed.years()  # rare days: the first question may have to look far

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is a member."""
        if self.phase is None:
            return self.allowed.mask(year)
        return self.allowed.mask(year) & self.phase.mask(year)

    def contains(self, day: int) -> bool:
        """Whether the day is a member."""
        year = civil.civil(day)[0]
        if not self.allowed.mask(year) >> (day - civil.year_start(year)) & 1:
            return False
        return self.phase is None or self.phase.on(day)

    def next(self, day: int) -> int | None:
        """First member from this day on."""
        if day > civil.MAX_DAY:
            return None
        day = max(day, civil.MIN_DAY)
        year = civil.civil(day)[0]
        bits = self.mask(year) >> (day - civil.year_start(year))
        if bits:
            return day + lowest(bits)
        for each in range(year + 1, min(year + _NEAR, civil.MAX_YEAR) + 1):
            bits = self.mask(each)
            if bits:
                return civil.year_start(each) + lowest(bits)
        found = year_from(self.phase, year + _NEAR + 1, self.allowed)
        return None if found is None else civil.year_start(found) + lowest(self.mask(found))

    def previous(self, day: int) -> int | None:
        """Last member up to this day."""
        if day < civil.MIN_DAY:
            return None
        day = min(day, civil.MAX_DAY)
        year = civil.civil(day)[0]
        bits = self.mask(year) & (2 << (day - civil.year_start(year))) - 1
        if bits:
            return civil.year_start(year) + highest(bits)
        for each in range(year - 1, max(year - _NEAR, civil.MIN_YEAR) - 1, -1):
            bits = self.mask(each)
            if bits:
                return civil.year_start(each) + highest(bits)
        found = year_to(self.phase, year - _NEAR - 1, self.allowed)
        return None if found is None else civil.year_start(found) + highest(self.mask(found))
