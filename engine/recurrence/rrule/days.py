"""The allowed days of selected periods, asked by seeking: year masks first, modular arithmetic for sparse rules.

A search looks at whole years, one ``and`` of two integers each, and only at years that can have a selected day. When it
has gone through :data:`_PATIENCE` of them in vain it asks how many allowed days the 400-year cycle has at all: none is
a proof, few are tried one by one in each cycle. Otherwise it goes on, at most as far as phase and calendar repeat.
"""

from typing import Protocol

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.phase import Phase
from lodger.engine.recurrence.rrule.year_masks import KIND_OF

_PATIENCE = 48
_FEW = 200


class Allowed(Protocol):
    """Day masks per year that repeat every 400 years."""

    def mask(self, year: int) -> int:
        """Bit n: day n of the year is allowed."""
        ...

    def total(self) -> int:
        """Allowed days in 400 years."""
        ...


class Days:
    """Allowed days that the phase selects; a phase of None selects every day."""

    def __init__(self, allowed: Allowed, phase: Phase | None) -> None:
        self.allowed = allowed
        self.phase = phase
        self._cycle: list[int] | None = None

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
        phase = self.phase
        year = civil.civil(day)[0]
        start = civil.year_start(year)
        bits = self.mask(year) >> (day - start)
        if bits:
            return day + (bits & -bits).bit_length() - 1
        last = min(civil.MAX_YEAR, year + (400 if phase is None else phase.years))
        patience = _PATIENCE
        year += 1
        while year <= last:
            if phase is not None:
                year = phase.year_from(year)
                if year > last:
                    return None
            bits = self.mask(year)
            if bits:
                return civil.year_start(year) + (bits & -bits).bit_length() - 1
            year += 1
            patience -= 1
            if not patience:
                total = self.allowed.total()
                if total <= _FEW:
                    return self._next_few(civil.year_start(year)) if total else None
        return None

    def previous(self, day: int) -> int | None:
        """Last member up to this day."""
        if day < civil.MIN_DAY:
            return None
        day = min(day, civil.MAX_DAY)
        phase = self.phase
        year = civil.civil(day)[0]
        bits = self.mask(year) & (2 << (day - civil.year_start(year))) - 1
        if bits:
            return civil.year_start(year) + bits.bit_length() - 1
        last = max(civil.MIN_YEAR, year - (400 if phase is None else phase.years))
        patience = _PATIENCE
        year -= 1
        while year >= last:
            if phase is not None:
                year = phase.year_to(year)
                if year < last:
                    return None
            bits = self.mask(year)
            if bits:
                return civil.year_start(year) + bits.bit_length() - 1
            year -= 1
            patience -= 1
            if not patience:
                total = self.allowed.total()
                if total <= _FEW:
                    return self._previous_few(civil.year_start(year + 1) - 1) if total else None
        return None

    def _few(self) -> list[int]:
        """Allowed days of years 1 to 400."""
        if self._cycle is None:
            self._cycle = []
            empty = {kind for kind in set(KIND_OF) if not self.allowed.mask(KIND_OF.index(kind) + 400)}
            for year in range(1, 401):
                if KIND_OF[year % 400] in empty:
                    continue
                bits, start = self.allowed.mask(year), civil.year_start(year)
                while bits:
                    low = bits & -bits
                    self._cycle.append(start + low.bit_length() - 1)
                    bits ^= low
        return self._cycle

    def _next_few(self, day: int) -> int | None:
        phase = self.phase
        base = (day - civil.MIN_DAY) // civil.CYCLE_DAYS * civil.CYCLE_DAYS
        while base <= civil.MAX_DAY - civil.MIN_DAY:
            for each in self._few():
                found = each + base
                if found > civil.MAX_DAY:
                    return None
                if found >= day and (phase is None or phase.on(found)):
                    return found
            base += civil.CYCLE_DAYS
        return None

    def _previous_few(self, day: int) -> int | None:
        phase = self.phase
        base = (day - civil.MIN_DAY) // civil.CYCLE_DAYS * civil.CYCLE_DAYS
        while base >= 0:
            for each in reversed(self._few()):
                found = each + base
                if found <= day and (phase is None or phase.on(found)):
                    return found
            base -= civil.CYCLE_DAYS
        return None
