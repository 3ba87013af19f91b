"""The times of day that a rule names, as three sets: hours, minutes, seconds.

A set is an integer whose bit *n* says that *n* belongs to it, so the neighbour of any time of day is found
with a handful of shifts: no loop, whatever the sets hold.
"""

from lodger.engine.core.record import record

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
    """All members, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


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


@record
class Dial:
    """Every time of day whose hour, minute and second are in the three sets."""

    hours: int
    minutes: int
    seconds: int

    def is_empty(self) -> bool:
        """Whether it names no time of day."""
        return not (self.hours and self.minutes and self.seconds)

    def count(self) -> int:
        """How many times a day it names."""
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

    def at_or_before(self, second_of_day: int) -> int | None:
        """Last member at or before the second of the day; None when the day has none so early."""
        minute_of_day, second = divmod(second_of_day, 60)
        hour, minute = divmod(minute_of_day, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                left = self.seconds & ((2 << second) - 1)
                if left:
                    return minute_of_day * 60 + highest(left)
            left = self.minutes & ((1 << minute) - 1)
            if left:
                return hour * 3600 + highest(left) * 60 + highest(self.seconds)
        left = self.hours & ((1 << hour) - 1)
        if left:
            return highest(left) * 3600 + highest(self.minutes) * 60 + highest(self.seconds)
        return None
