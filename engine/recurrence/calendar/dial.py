"""The times of day that a rule names, as three sets: hours, minutes, seconds.

A set is an integer in which bit *n* is set if *n* is a member, so the neighbour of any time of day is found with a
constant number of shifts.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

ALL_HOURS = (1 << 24) - 1
ALL_MINUTES = (1 << 60) - 1
ALL_SECONDS = (1 << 60) - 1


def lowest(bits: int) -> int:
    """Smallest member of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def highest(bits: int) -> int:
    """Largest member of a set that is not empty."""
    return bits.bit_length() - 1


def members(bits: int) -> list[int]:
    """Return the numbers of the set bits, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def of_values(values: Iterable[int]) -> int:
    """Return the set of these distinct numbers as bits."""
    return sum(1 << value for value in values)


def stride(first: int, stop: int, step: int) -> int:
    """Set of first, first + step, ... below stop; built by doubling, so a long one costs few operations."""
    count = -(-(stop - first) // step)
    if count <= 0:
        return 0
    pattern, have = 1, 1
    while have < count:
        more = min(have, count - have)
        pattern |= (pattern & ((1 << more * step) - 1)) << have * step
        have += more
    return pattern << first


@dataclass(frozen=True, slots=True)
class Dial:
    """The times of day with hour, minute and second in the three sets."""

    hours: int
    minutes: int
    seconds: int

    def is_empty(self) -> bool:
        """Whether the dial has no time of day."""
        return not (self.hours and self.minutes and self.seconds)

    def count(self) -> int:
        """Number of times of day."""
        return self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()

    def first(self) -> int:
        """Earliest second of the day; the dial must not be empty."""
        return lowest(self.hours) * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds)

    def last(self) -> int:
        """Latest second of the day; the dial must not be empty."""
        return highest(self.hours) * 3600 + highest(self.minutes) * 60 + highest(self.seconds)

    def at_or_after(self, second_of_day: int) -> int | None:
        """First member at or after the second of the day; None when the day has no more."""
        minute_of_day, second = divmod(second_of_day, 60)
        hour, minute = divmod(minute_of_day, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                left = self.seconds >> second
                if left:
                    return second_of_day + lowest(left)
            left = self.minutes >> minute + 1
            if left:
                return hour * 3600 + (minute + 1 + lowest(left)) * 60 + lowest(self.seconds)
        left = self.hours >> hour + 1
        if left:
            return (hour + 1 + lowest(left)) * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds)
        return None

    def rank(self, second: int) -> int:
        """Number of members before the second of the day."""
        minute_of_day, second = divmod(second, 60)
        hour, minute = divmod(minute_of_day, 60)
        per_minute = self.seconds.bit_count()
        found = (self.hours & (1 << hour) - 1).bit_count() * self.minutes.bit_count() * per_minute
        if self.hours >> hour & 1:
            found += (self.minutes & (1 << minute) - 1).bit_count() * per_minute
            if self.minutes >> minute & 1:
                found += (self.seconds & (1 << second) - 1).bit_count()
        return found

    def nth(self, index: int) -> int:
        """Return the time of day with this 0-based number, in seconds."""
        rest, second = divmod(index, self.seconds.bit_count())
        hour, minute = divmod(rest, self.minutes.bit_count())
        return members(self.hours)[hour] * 3600 + members(self.minutes)[minute] * 60 + members(self.seconds)[second]

    def bits(self, unit_s: int) -> int:
        """Members as one integer, a bit for each unit of the day; all of them begin a unit of 1, 60 or 3600 seconds."""
        minutes = _copies(self.minutes, self.seconds, 60) if unit_s == 1 else self.minutes
        return _copies(self.hours, minutes, 3600 // unit_s) if unit_s < 3600 else self.hours

    def all(self) -> list[int]:
        """Return all times of day in seconds, ascending; at most 86 400."""
        minutes, seconds = members(self.minutes), members(self.seconds)
        return [h * 3600 + m * 60 + s for h in members(self.hours) for m in minutes for s in seconds]


def _copies(places: int, each: int, width: int) -> int:
    """Return the set ``each``, at most ``width`` bits wide, copied to each member of ``places``, shifted by ``width`` bits a place."""
    return sum(each << place * width for place in members(places))


@dataclass(frozen=True, slots=True)
class TimeList:
    """Seconds listed one by one: what BYSETPOS leaves of a day or a shorter unit."""

    seconds: tuple[int, ...]

    def first(self) -> int:
        """Return the earliest time of day."""
        return self.seconds[0]

    def last(self) -> int:
        """Return the latest time of day."""
        return self.seconds[-1]

    def at_or_after(self, second: int) -> int | None:
        """Return the first time of day at or after a second of the day; None when there is none."""
        i = bisect_left(self.seconds, second)
        return self.seconds[i] if i < len(self.seconds) else None

    def count(self) -> int:
        """Return the number of times of day."""
        return len(self.seconds)

    def rank(self, second: int) -> int:
        """Return the number of times of day before a second of the day."""
        return bisect_left(self.seconds, second)

    def nth(self, index: int) -> int:
        """Return the time of day with this 0-based number, in seconds."""
        return self.seconds[index]


Times = Dial | TimeList
