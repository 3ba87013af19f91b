"""Days × times that are moved, or widened, over midnights."""

from collections.abc import Sequence
from dataclasses import replace

from lodger.engine.recurrence.civil import DAY_S
from lodger.engine.recurrence.dial import highest, lowest
from lodger.engine.recurrence.parts import EVERY_DAY
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.shifted_days import MOST_DAYS, Later, LaterSelected

ALL = (1 << DAY_S) - 1
ANY_TIME = Block(EVERY_DAY, None, ALL)


def grown(block: Block, begin: int, end: int, slack: int) -> list[Block]:
    """Times from ``begin`` to before ``end`` seconds after members, and ``slack`` on either side, by day."""
    begin, end = begin - slack, end + slack
    if end <= begin or not block.times:
        return []
    if end > MOST_DAYS * DAY_S:
        return [ANY_TIME]
    found: list[Block] = []
    if end - begin >= DAY_S:  # all windows of a day are one stretch
        low, high = lowest(block.times) + begin, highest(block.times) + end
        day, last = low // DAY_S, (high - 1) // DAY_S
        if day == last:
            return [_on(block, day, day, _run(low - day * DAY_S, high - day * DAY_S))]
        found.append(_on(block, day, day, _run(low - day * DAY_S, DAY_S)))
        if last > day + 1:
            found.append(_on(block, day + 1, last - 1, ALL))
        found.append(_on(block, last, last, _run(0, high - last * DAY_S)))
        return found
    lead = -(begin // DAY_S) if begin < 0 else 0
    bits = dilated(block.times, end - begin) << lead * DAY_S + begin
    day = -lead
    while bits:
        if today := bits & ALL:
            found.append(_on(block, day, day, today))
        bits >>= DAY_S
        day += 1
    return found


def _on(block: Block, first: int, last: int, times: int) -> Block:
    """Times on the days so many days after the block's."""
    if first == last == 0:
        return Block(block.allowed, block.phase, times)
    if block.allowed is EVERY_DAY and block.phase is None:
        return Block(EVERY_DAY, None, times)
    if block.phase is None:
        return Block(Later(block.allowed, first, last), None, times)
    return Block(EVERY_DAY, LaterSelected(block.allowed, block.phase, first, last), times)


def _run(first: int, end: int) -> int:
    return (1 << end) - 1 >> first << first


def dilated(bits: int, length: int) -> int:
    """Each member becomes a run of so many."""
    have = 1
    while have < length:
        more = min(have, length - have)
        bits |= bits << more
        have += more
    return bits


def turned(times: int, by_s: int, ring_s: int = DAY_S) -> int:
    """Times of a day, or of another ring of seconds, so many seconds later, whichever day that is."""
    moved = times << by_s % ring_s
    return (moved | moved >> ring_s) & (1 << ring_s) - 1


def run_begins(bits: int, length: int) -> int:
    """Members with which a run of so many members begins."""
    have = 1
    while bits and have < length:
        more = min(have, length - have)
        bits &= bits >> more
        have += more
    return bits


def moved_block(block: Block, by_s: int) -> list[Block] | None:
    """The same so many seconds later; None when its steps cannot be moved."""
    step = block.step
    if step is None:
        return grown(block, by_s, by_s + 1, 0)
    if by_s % step.unit_s:
        return None
    at = by_s // step.unit_s % len(step.table)
    table = step.table[-at:] + step.table[:-at] if at else step.table
    turned = replace(step, origin=step.origin + by_s // step.unit_s, table=table)
    return [replace(each, step=turned) for each in grown(replace(block, step=None), by_s, by_s + 1, 0)]


def any_day(blocks: Sequence[Block]) -> int:
    """Times of day that any of some blocks has."""
    times = 0
    for each in blocks:
        times |= each.times
    return times
