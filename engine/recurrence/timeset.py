"""Sets of whole seconds as integers, one bit each: a day's times as 86 400 bits, and the distances between them."""

from bisect import bisect_left, bisect_right
from itertools import pairwise

from lodger.engine.recurrence.civil import DAY_S

#: From so many members on, distances are found by shifting the whole set instead of by listing it.
_MANY = 1500


def product(hours: int, minutes: int, seconds: int) -> int:
    """Every time of day whose hour, minute and second are in the three sets."""
    return _spread(hours, _spread(minutes, seconds, 60), 3600)


def _spread(members: int, each: int, width: int) -> int:
    """Copy ``each``, at most ``width`` bits wide, to the place of each member."""
    found = at = 0
    while members >> at:
        if members >> at & 1:
            found |= each << at * width
        at += 1
    return found


def of_flags(flags: bytes) -> int:
    """Set of the positions whose byte is 1."""
    return int(flags[::-1].translate(_DIGITS), 2)


def flags_of(bits: int, size: int) -> bytes:
    """One byte per position, 1 for members."""
    return f"{bits:0{size}b}".encode().translate(_VALUES)[::-1]


_VALUES = bytes(value & 1 for value in range(256))
_DIGITS = bytes(48 + min(value, 1) for value in range(256))


def listed(bits: int) -> list[int]:
    """All members, ascending; linear in the set's width."""
    digits = bin(bits)[:1:-1]
    found, at = [], digits.find("1")
    while at >= 0:
        found.append(at)
        at = digits.find("1", at + 1)
    return found


def lowest(bits: int) -> int:
    """Smallest member of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def smallest_gap(bits: int) -> int | None:
    """Least distance of two members; None with fewer than two."""
    count = bits.bit_count()
    if count < 2:
        return None
    if count < _MANY:
        members = listed(bits)
        return min(b - a for a, b in pairwise(members))
    gap = 1
    while not bits & bits >> gap:
        gap += 1
    return gap


def smallest_between(one: int, other: int, below: int, *, around: bool = False) -> int:
    """Least distance greater than 0 between members of two sets of times; at most ``below``.

    ``around`` reads the sets on the day's circle, as if every day had them.
    """
    if not one or not other:
        return below
    turned = other | other << DAY_S | other << 2 * DAY_S if around else other << DAY_S
    one <<= DAY_S
    if min(one.bit_count(), other.bit_count()) >= _MANY:
        for gap in range(1, min(below, DAY_S)):
            if one & (turned >> gap | turned << gap):
                return gap
        return below
    few, many = sorted((listed(one), listed(turned)), key=len)
    for at in few:
        i = bisect_right(many, at)
        if i < len(many):
            below = min(below, many[i] - at)
        i = bisect_left(many, at)
        if i:
            below = min(below, at - many[i - 1])
    return below
