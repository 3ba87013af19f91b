"""The times inside one unit (a day, an hour, a minute): a product of hours, minutes and seconds, never listed.

A day can hold 86 400 times; the product answers next, previous, count and k-th by three table look-ups.
"""

from bisect import bisect_left, bisect_right

from lodger.engine.core.protocol import Protocol
from lodger.engine.recurrence import timeset


class Times(Protocol):
    """Ascending second offsets inside a unit; never empty."""

    size: int
    first: int
    last: int

    def at_or_after(self, offset: int) -> int | None:
        """Smallest member not below the offset."""

    def at_or_before(self, offset: int) -> int | None:
        """Greatest member not above the offset."""

    def up_to(self, offset: int) -> int:
        """How many members are not above the offset."""

    def nth(self, index: int) -> int:
        """Member by 0-based index."""

    def bits(self) -> int:
        """All members as one integer, a bit each."""


class _Field:
    """One clock field: sorted values, and for each position the neighbour to go to."""

    def __init__(self, values: tuple[int, ...], size: int) -> None:
        self.values = values
        self.first, self.last = values[0], values[-1]
        self.up = [-1] * (size + 1)  # smallest value >= i, or -1
        self.down = [-1] * (size + 1)  # greatest value < i, or -1
        here = -1
        present = set(values)
        for i in range(size - 1, -1, -1):
            if i in present:
                here = i
            self.up[i] = here
        here = -1
        for i in range(size + 1):
            self.down[i] = here
            if i in present:
                here = i


class ClockSet:
    """Hours × minutes × seconds."""

    def __init__(self, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self._h, self._m, self._s = _Field(hours, 24), _Field(minutes, 60), _Field(seconds, 60)
        self._per_minute = len(seconds)
        self._per_hour = len(minutes) * len(seconds)
        self.size = len(hours) * self._per_hour
        self._first_in_hour = self._m.first * 60 + self._s.first
        self._last_in_hour = self._m.last * 60 + self._s.last
        self.first = self._h.first * 3600 + self._first_in_hour
        self.last = self._h.last * 3600 + self._last_in_hour

    def at_or_after(self, offset: int) -> int | None:
        """Smallest member not below the offset."""
        if offset <= self.first:
            return self.first
        if offset > self.last:
            return None
        hour, rest = divmod(offset, 3600)
        if self._h.up[hour] == hour and rest <= self._last_in_hour:
            minute, second = divmod(rest, 60)
            if self._m.up[minute] == minute and second <= self._s.last:
                return hour * 3600 + minute * 60 + self._s.up[second]
            later = self._m.up[minute + (self._m.up[minute] == minute)]
            return hour * 3600 + later * 60 + self._s.first
        return self._h.up[hour + (self._h.up[hour] == hour)] * 3600 + self._first_in_hour

    def at_or_before(self, offset: int) -> int | None:
        """Greatest member not above the offset."""
        if offset >= self.last:
            return self.last
        if offset < self.first:
            return None
        hour, rest = divmod(offset, 3600)
        if self._h.up[hour] == hour and rest >= self._first_in_hour:
            minute, second = divmod(rest, 60)
            if self._m.up[minute] == minute and second >= self._s.first:
                return hour * 3600 + minute * 60 + self._s.down[second + 1]
            return hour * 3600 + self._m.down[minute] * 60 + self._s.last
        return self._h.down[hour] * 3600 + self._last_in_hour

    def up_to(self, offset: int) -> int:
        """How many members are not above the offset."""
        found = self.at_or_before(offset)
        if found is None:
            return 0
        hour, rest = divmod(found, 3600)
        minute, second = divmod(rest, 60)
        return (
            bisect_left(self._h.values, hour) * self._per_hour
            + bisect_left(self._m.values, minute) * self._per_minute
            + bisect_left(self._s.values, second)
            + 1
        )

    def nth(self, index: int) -> int:
        """Member by 0-based index."""
        hour, rest = divmod(index, self._per_hour)
        minute, second = divmod(rest, self._per_minute)
        return self._h.values[hour] * 3600 + self._m.values[minute] * 60 + self._s.values[second]

    def bits(self) -> int:
        """All members as one integer, a bit each."""
        hours, minutes, seconds = (sum(1 << value for value in field.values) for field in (self._h, self._m, self._s))
        return timeset.product(hours, minutes, seconds)


class TimeList:
    """Listed offsets: what BYSETPOS leaves of a unit."""

    def __init__(self, offsets: tuple[int, ...]) -> None:
        self._offsets = offsets
        self.size, self.first, self.last = len(offsets), offsets[0], offsets[-1]

    def at_or_after(self, offset: int) -> int | None:
        """Smallest member not below the offset."""
        i = bisect_left(self._offsets, offset)
        return self._offsets[i] if i < self.size else None

    def at_or_before(self, offset: int) -> int | None:
        """Greatest member not above the offset."""
        i = bisect_right(self._offsets, offset)
        return self._offsets[i - 1] if i else None

    def up_to(self, offset: int) -> int:
        """How many members are not above the offset."""
        return bisect_right(self._offsets, offset)

    def nth(self, index: int) -> int:
        """Member by 0-based index."""
        return self._offsets[index]

    def bits(self) -> int:
        """All members as one integer, a bit each."""
        return sum(1 << offset for offset in self._offsets)


def positions(bysetpos: tuple[int, ...], size: int) -> list[int]:
    """0-based indices that BYSETPOS picks from a set of that size, ascending and distinct."""
    picked = {p - 1 if p > 0 else size + p for p in bysetpos if abs(p) <= size}
    return sorted(picked)
