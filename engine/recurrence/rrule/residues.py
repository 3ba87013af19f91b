"""Days whose number, modulo something, is one of some: every n-th day or week, and the days that long steps meet.

Looking at year after year is enough for nearly every rule. What is still not found after :data:`_PATIENCE` years may
drift slowly (every 365th day in March) or never come: then 400 years at once are one ``and`` of two integers, and days
that come hardly ever are listed when the rule is read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from math import gcd

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.year_kinds import EVERY_DAY, KindMasks

#: Up to this modulus a year's pattern is kept as one integer; above it as a sorted list.
_WIDE = 4096
_PATIENCE = 40
#: Rules whose days are rarer than one in so many are prepared for a long search when they are read.
_RARE = 12


class Listed:
    """Days that are so rare that all of them are listed when the rule is read."""

    def __init__(self) -> None:
        self._listed: tuple[KindMasks, array[int]] | None = None

    def list(self, allowed: KindMasks, days: Iterable[int]) -> None:
        """Keep the allowed ones of ascending days."""
        found, year, start, bits = array("i"), 0, 0, 0
        after = civil.MIN_DAY
        for day in days:
            if day >= after:
                year = civil.civil(day)[0]
                start, after, bits = civil.year_start(year), civil.year_start(year + 1), allowed.mask(year)
            if bits >> day - start & 1:
                found.append(day)
        self._listed = (allowed, found)

    def listed(self, allowed: KindMasks) -> array[int] | None:
        """The days that are allowed too; None when they are not listed."""
        return self._listed[1] if self._listed is not None and self._listed[0] is allowed else None


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

    def day_from(self, day: int) -> int:
        """First selected day from this one on; it may lie beyond the calendar."""
        at = day % self.modulus
        i = bisect_left(self.residues, at)
        return day - at + (self.residues[i] if i < len(self.residues) else self.residues[0] + self.modulus)

    def day_to(self, day: int) -> int:
        """Last selected day up to this one."""
        at = day % self.modulus
        i = bisect_right(self.residues, at)
        return day - at + (self.residues[i - 1] if i else self.residues[-1] - self.modulus)

    def prepare(self, allowed: KindMasks) -> None:
        """Make what a long search needs, when the rule is read: such a search may be the first question."""
        if self.modulus > civil.CYCLE_DAYS:
            self.list(allowed, self._days())
        elif self.modulus >= 180 or allowed.total() * _RARE < civil.CYCLE_DAYS:
            self._block(0, allowed)

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with a selected day that is allowed."""
        if (listed := self.listed(allowed)) is not None:
            return listed_year_from(listed, year)
        if self.modulus > civil.CYCLE_DAYS:
            day = self.day_from(max(civil.year_start(year), civil.MIN_DAY))
            while day <= civil.MAX_DAY:
                if allowed.contains(day):
                    return civil.civil(day)[0]
                day = self.day_from(day + 1)
            return None
        last = min(civil.MAX_YEAR, year + _PATIENCE)
        while year <= last:
            if self.modulus > 366:
                day = self.day_from(civil.year_start(year))
                if day > civil.MAX_DAY:
                    return None
                year = civil.civil(day)[0]
            if allowed.mask(year) & self.mask(year):
                return year
            year += 1
        return self._far_from(year, allowed)

    def _far_from(self, year: int, allowed: KindMasks) -> int | None:
        if year > civil.MAX_YEAR:
            return None
        for block in range(year // 400, min(civil.MAX_YEAR // 400, year // 400 + self.years // 400) + 1):
            begin = civil.year_start(block * 400)
            bits = self._block(block, allowed)
            if block == year // 400:
                skipped = civil.year_start(year) - begin
                bits = bits >> skipped << skipped
            if bits:
                day = begin + lowest(bits)
                return civil.civil(day)[0] if day <= civil.MAX_DAY else None
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with a selected day that is allowed."""
        if (listed := self.listed(allowed)) is not None:
            return listed_year_to(listed, year)
        if self.modulus > civil.CYCLE_DAYS:
            day = self.day_to(min(civil.year_start(year + 1) - 1, civil.MAX_DAY))
            while day >= civil.MIN_DAY:
                if allowed.contains(day):
                    return civil.civil(day)[0]
                day = self.day_to(day - 1)
            return None
        first = max(civil.MIN_YEAR, year - _PATIENCE)
        while year >= first:
            if self.modulus > 366:
                day = self.day_to(civil.year_start(year + 1) - 1)
                if day < civil.MIN_DAY:
                    return None
                year = civil.civil(day)[0]
            if allowed.mask(year) & self.mask(year):
                return year
            year -= 1
        return self._far_to(year, allowed)

    def _far_to(self, year: int, allowed: KindMasks) -> int | None:
        if year < civil.MIN_YEAR:
            return None
        for block in range(year // 400, max(0, year // 400 - self.years // 400) - 1, -1):
            begin = civil.year_start(block * 400)
            bits = self._block(block, allowed)
            if block == year // 400:
                bits &= (1 << civil.year_start(year + 1) - begin) - 1
            if bits:
                day = begin + highest(bits)
                return civil.civil(day)[0] if day >= civil.MIN_DAY else None
        return None

    def _block(self, block: int, allowed: KindMasks) -> int:
        """Selected and allowed days of 400 years, of which the first is 0 modulo 400."""
        if self._long is None:
            self._long = self._tiled(self.modulus + civil.CYCLE_DAYS)
        return self._long >> civil.year_start(block * 400) % self.modulus & allowed.cycle()

    def _days(self) -> Iterator[int]:
        day = self.day_from(civil.MIN_DAY)
        while day <= civil.MAX_DAY:
            yield day
            day = self.day_from(day + 1)


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
        allowed.cycle()

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with a selected day that is allowed."""
        while year <= civil.MAX_YEAR:
            begin = civil.year_start(year - year % 400)
            bits = self.window(begin, civil.CYCLE_DAYS) & allowed.cycle()
            skipped = civil.year_start(year) - begin
            if bits := bits >> skipped << skipped:
                day = begin + lowest(bits)
                return civil.civil(day)[0] if day <= civil.MAX_DAY else None
            year += 400 - year % 400
        return None

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with a selected day that is allowed."""
        while year >= civil.MIN_YEAR:
            begin = civil.year_start(year - year % 400)
            bits = self.window(begin, civil.CYCLE_DAYS) & allowed.cycle()
            if bits := bits & (1 << civil.year_start(year + 1) - begin) - 1:
                day = begin + highest(bits)
                return civil.civil(day)[0] if day >= civil.MIN_DAY else None
            year -= year % 400 + 1
        return None


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
        for each in range(unit + (self._origin - unit) % n, end * units, n):
            if table[each % units]:
                yield each // units

    def mask(self, year: int) -> int:
        """The year's days with a step."""
        start, end = civil.year_start(year), civil.year_start(year + 1)
        return sum(1 << day - start for day in self._days(start, end))

    def prepare(self, allowed: KindMasks) -> None:
        """List the allowed days with a step."""
        self.list(allowed, self._days(civil.MIN_DAY, civil.MAX_DAY + 1))

    def year_from(self, year: int, allowed: KindMasks) -> int | None:
        """First year from this one on with an allowed day."""
        if self.listed(allowed) is None:
            self.prepare(allowed)
        return listed_year_from(self.listed(allowed) or array("i"), year)

    def year_to(self, year: int, allowed: KindMasks) -> int | None:
        """Last year up to this one with an allowed day."""
        if self.listed(allowed) is None:
            self.prepare(allowed)
        return listed_year_to(self.listed(allowed) or array("i"), year)


_DIGITS = bytes(48 + min(value, 1) for value in range(256))
