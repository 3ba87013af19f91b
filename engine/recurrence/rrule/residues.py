"""Days whose number, modulo something, is one of some: every n-th day or week, and the days that long steps meet.

Looking at year after year is enough for nearly every rule. What is still not found after :data:`_PATIENCE` years may
drift slowly (every 365th day in March) or never come: then 400 years at once are one ``and`` of two integers, and which
of the 25 times 400 years have a day is found when the rule is read; days that come hardly ever are listed then.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from math import gcd

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.meter import spend
from lodger.engine.recurrence.year_kinds import EVERY_DAY, KindMasks

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without importing typing
if TYPE_CHECKING:
    from lodger.engine.recurrence.rrule.spans import Spans

#: Up to this modulus a year's pattern is kept as one integer; above it as a sorted list.
_WIDE = 4096
_PATIENCE = 40
#: Rules whose days are rarer than one in so many are prepared for a long search when they are read.
_RARE = 12
#: And those of which one of these years has none.
_PROBED = range(2000, 2007)


class Listed:
    """Days that are so rare that all of them are listed when the rule is read."""

    def __init__(self) -> None:
        self._listed: dict[KindMasks, array[int]] = {}

    def listed(self, allowed: KindMasks) -> array[int]:
        """The days that are allowed too, ascending."""
        found = self._listed.get(allowed)
        if found is None:
            spend(self._many() // 4)
            days = self._days(civil.MIN_DAY, civil.MAX_DAY + 1)
            if allowed.total() < civil.CYCLE_DAYS:
                flags = allowed.cycle().to_bytes(civil.CYCLE_DAYS // 8 + 1, "little")
                begin, cycle = civil.year_start(400), civil.CYCLE_DAYS
                places = ((day, (day - begin) % cycle) for day in days)
                days = (day for day, at in places if flags[at >> 3] >> (at & 7) & 1)
            found = self._listed[allowed] = array("i", days)
        return found

    def _days(self, first: int, end: int) -> Iterator[int]:
        """Its days in [first, end), ascending."""
        raise NotImplementedError

    def _many(self) -> int:
        """How many they are up to the calendar's end, about."""
        raise NotImplementedError


def listed_year_from(days: array[int], year: int) -> int | None:
    """Year of the first of the days from January 1 of a year on."""
    i = bisect_left(days, civil.year_start(year))
    return civil.civil(days[i])[0] if i < len(days) else None


def listed_year_to(days: array[int], year: int) -> int | None:
    """Year of the last of the days up to December 31 of a year."""
    i = bisect_left(days, civil.year_start(year + 1))
    return civil.civil(days[i - 1])[0] if i else None


class Residues(Listed):
    """Days whose number, modulo ``modulus``, is one of ``residues``."""

    def __init__(self, modulus: int, residues: list[int]) -> None:
        super().__init__()
        self.modulus = modulus
        self.residues = sorted(residues)
        self._set = frozenset(residues)
        self.years = 400 * modulus // gcd(civil.CYCLE_DAYS, modulus)
        self._pattern = 0
        self._long: int | None = None
        self._spans: dict[KindMasks, Spans] = {}
        if modulus <= _WIDE:
            self._pattern = self._tiled(modulus + 366)

    def _tiled(self, length: int) -> int:
        """Selected days from day 0 on, at least so many days, a bit each."""
        if len(self.residues) < 64:
            pattern = sum(1 << residue for residue in self.residues)
        else:
            flags = bytearray(self.modulus)
            for residue in self.residues:
                flags[residue] = 1
            pattern = int(flags[::-1].translate(_DIGITS), 2)
        width = self.modulus
        while width < length:
            pattern |= pattern << width
            width *= 2
        return pattern

    def on(self, day: int) -> bool:
        """Whether the day's residue is selected."""
        return day % self.modulus in self._set

    def mask(self, year: int) -> int:
        """The year's selected days."""
        at = civil.year_start(year) % self.modulus
        if self._pattern:
            return self._pattern >> at & EVERY_DAY
        days, residues = 0, self.residues
        for i in range(bisect_left(residues, at), len(residues)):
            if residues[i] - at >= 366:
                return days
            days |= 1 << residues[i] - at
        for residue in residues:
            if residue + self.modulus - at >= 366:
                return days
            days |= 1 << residue + self.modulus - at
        return days

    def prepare(self, allowed: KindMasks) -> None:
        """Make what a long search needs, when the rule is read: such a search may be the first question."""
        if self.modulus > civil.CYCLE_DAYS:
            self.listed(allowed)
        elif self.modulus >= 180 or allowed.total() * _RARE < civil.CYCLE_DAYS or self._misses(allowed):
            self._far(allowed)

    def _misses(self, allowed: KindMasks) -> bool:
        return not all(allowed.mask(year) & self.mask(year) for year in _PROBED)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with a selected day that is allowed."""
        if self.modulus > civil.CYCLE_DAYS:
            return listed_year_from(self.listed(allowed), year)
        if allowed not in self._spans:
            last = min(civil.MAX_YEAR, year + _PATIENCE)
            while year <= last:
                if allowed.mask(year) & self.mask(year):
                    return year
                year += 1
        return None if year > civil.MAX_YEAR else self._far(allowed).year_from(year)

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with a selected day that is allowed."""
        if self.modulus > civil.CYCLE_DAYS:
            return listed_year_to(self.listed(allowed), year)
        if allowed not in self._spans:
            first = max(civil.MIN_YEAR, year - _PATIENCE)
            while year >= first:
                if allowed.mask(year) & self.mask(year):
                    return year
                year -= 1
        return None if year < civil.MIN_YEAR else self._far(allowed).year_to(year)

    def _far(self, allowed: KindMasks) -> Spans:
        if (found := self._spans.get(allowed)) is None:
            from lodger.engine.recurrence.rrule.spans import Spans  # few rules have days so rare

            if self._long is None:
                self._long = self._tiled(self.modulus + civil.CYCLE_DAYS)
            long, modulus, cycle = self._long, self.modulus, allowed.cycle()
            found = self._spans[allowed] = Spans(lambda year: long >> civil.year_start(year) % modulus & cycle)
        return found

    def _days(self, first: int, end: int) -> Iterator[int]:
        begins = range(first - first % self.modulus, end, self.modulus)
        days = (begin + residue for begin in begins for residue in self.residues)
        return (day for day in days if first <= day < end)

    def _many(self) -> int:
        return (civil.MAX_DAY // self.modulus + 2) * len(self.residues)


class Turning:
    """Days given as bits that repeat after ``modulus`` of them, more than could be listed as residues."""

    def __init__(self, modulus: int, flags: bytearray) -> None:
        self.modulus = modulus
        self.years = 400 * modulus // gcd(civil.CYCLE_DAYS, modulus)
        bits, self._have = int(flags[::-1].translate(_DIGITS), 2), modulus
        while self._have < civil.CYCLE_DAYS:
            bits |= bits << self._have
            self._have *= 2
        self._data = bits.to_bytes(-(-self._have // 8), "little")
        self._spans: dict[KindMasks, Spans] = {}

    def window(self, first: int, length: int) -> int:
        """So many days from a day on, a bit each."""
        found = done = 0
        while done < length:
            begin = (first + done) % self.modulus
            take = min(length - done, self._have - begin)
            piece = int.from_bytes(self._data[begin >> 3 : (begin + take + 7) >> 3], "little") >> (begin & 7)
            found |= (piece & (1 << take) - 1) << done
            done += take
        return found

    def on(self, day: int) -> bool:
        """Whether the day is selected."""
        at = day % self.modulus
        return bool(self._data[at >> 3] >> (at & 7) & 1)

    def mask(self, year: int) -> int:
        """The year's selected days."""
        return self.window(civil.year_start(year), 366)

    def prepare(self, allowed: KindMasks) -> None:
        """Lay out the calendar: a search may go through all of it."""
        self._far(allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with a selected day that is allowed."""
        return None if year > civil.MAX_YEAR else self._far(allowed).year_from(year)

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with a selected day that is allowed."""
        return None if year < civil.MIN_YEAR else self._far(allowed).year_to(year)

    def _far(self, allowed: KindMasks) -> Spans:
        if (found := self._spans.get(allowed)) is None:
            from lodger.engine.recurrence.rrule.spans import Spans  # few rules have days so rare

            cycle = allowed.cycle()

            def days(year: int) -> int:
                return self.window(civil.year_start(year), civil.CYCLE_DAYS) & cycle

            found = self._spans[allowed] = Spans(days)
        return found


class LongSteps(Listed):
    """Days on which a step of several weeks or more comes, at an allowed position of the day."""

    years = 400 * civil.MAX_YEAR  # they do not repeat before the calendar ends

    def __init__(self, table: bytes, n: int, origin: int) -> None:
        super().__init__()
        self._table, self._n, self._origin, self._units = table, n, origin, len(table)

    def on(self, day: int) -> bool:
        """Whether an allowed step comes on the day."""
        unit = day * self._units
        unit += (self._origin - unit) % self._n
        return unit < (day + 1) * self._units and bool(self._table[unit % self._units])

    def _days(self, first: int, end: int) -> Iterator[int]:
        unit, units, table, n = first * self._units, self._units, self._table, self._n
        steps = range(unit + (self._origin - unit) % n, end * units, n)
        return (each // units for each in steps if table[each % units])

    def _many(self) -> int:
        return civil.MAX_DAY * self._units // self._n

    def mask(self, year: int) -> int:
        """The year's days with a step."""
        start, end = civil.year_start(year), civil.year_start(year + 1)
        return sum(1 << day - start for day in self._days(start, end))

    def prepare(self, allowed: KindMasks) -> None:
        """List the allowed days with a step."""
        self.listed(allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with an allowed day."""
        return listed_year_from(self.listed(allowed), year)

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with an allowed day."""
        return listed_year_to(self.listed(allowed), year)


_DIGITS = bytes(48 + min(value, 1) for value in range(256))
