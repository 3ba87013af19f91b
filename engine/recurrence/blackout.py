"""The save-time proof that a schedule's exclusions leave it free slots at short distances, or leave it none at all."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from math import gcd

from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, instant_of
from lodger.engine.recurrence.coverage import MOST_IN_A_ROW, Cover, instants, verdict
from lodger.engine.recurrence.dial import stride
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.pattern import Pattern, dates_of, patterns_of
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.union import FIRST, Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import FAR, Segment, Zone, zone

_ALL = (1 << DAY_S) - 1
_FULL_YEAR = (1 << 366) - 1
#: Windows that an exclusion may have in all without being looked at any further.
_FEW = 500
#: Slots and windows that are walked through when nothing is proved on patterns, and for how long.
_WALKED = 20_000
_CYCLE = timedelta(days=146_097)


class Openness(Enum):
    """What exclusions leave of a schedule."""

    OPEN = "free slots come at short distances"
    NEVER = "no slot is left"
    UNDECIDED = "neither is proved"


def openness(schedule: Union) -> Openness:
    """Decide it without walking where patterns tell, else by walking one cycle of the calendar.

    Rules of which exclusions leave nothing are taken out of what the schedule asks (:attr:`Union.live`).
    """
    lasting = [window for window in schedule.exclusions if not _is_few(window)]
    if not lasting:
        return Openness.OPEN
    live: list[tuple[Recurrence, datetime | None]] = []
    undecided = False
    for rule in schedule.rules:
        found = [each for leaf in _leaves(rule) for each in _decided(leaf, lasting)]
        if found and all(isinstance(each, int) and each is not True for each in found):
            cut = max(each for each in found if each is not None)
            if cut > MIN_LOCAL:
                live.append((rule, instant_of(min(cut + 2 * DAY_S, MAX_LOCAL))))
        else:
            undecided = undecided or any(each is not True for each in found)
            live.append((rule, None))
    schedule.live = tuple(live)
    if not live:
        return Openness.NEVER
    return _walk(schedule) if undecided else Openness.OPEN


def _leaves(rule: Recurrence) -> list[Recurrence]:
    return [leaf for each in rule.rules for leaf in _leaves(each)] if isinstance(rule, Union) else [rule]


def _is_few(window: Windows) -> bool:
    slot: datetime | None = FIRST
    if not window.opens.ends():
        return False
    for _ in range(_FEW):
        slot = window.opens.next_after(slot) if slot is not None else None
    return slot is None


def _decided(rule: Recurrence, lasting: Sequence[Windows]) -> list[bool | int | None]:
    """Verdict on each pattern of a rule; ``MIN_LOCAL`` when nothing is left of it at all."""
    if isinstance(rule, Every):
        zones = {window.opens.zone.key for window in lasting if isinstance(window.opens, Zoned)}
        there = zone(next(iter(zones))) if len(zones) == 1 else zone("UTC")
        stretch = -(-rule.period_us // 1_000_000)
        patterns = [Pattern(lambda _year: _FULL_YEAR, _ALL, 1, DAY_S, stretch_s=stretch)]
        covers = [cover for window in lasting for cover in _covers(window, there, None)]
    elif isinstance(rule, Zoned):
        patterns = patterns_of(rule.local)
        covers = [cover for window in lasting for cover in _covers(window, rule.zone, rule)]
    else:
        return [True]  # a single instant
    found: list[bool | int | None] = []
    for pattern in patterns:
        each = verdict(pattern, covers)
        found.append(MIN_LOCAL if each is not True and each is not None and each <= pattern.first else each)
    return found + [True] * bool(isinstance(rule, Zoned) and dates_of(rule.local))


def _covers(window: Windows, there: Zone, rule: Zoned | None) -> list[Cover]:
    """What a window closes on the wall clock of a zone: surely, and at most."""
    opens = window.opens
    if not isinstance(opens, Zoned):
        return [_interval(opens, there, single=window.length_s is None)]
    here = opens.zone
    foreign = here.key != there.key
    found = []
    for pattern in patterns_of(opens.local):
        base = instants(pattern)
        if window.whole_days:
            days = (-1, 1) if foreign else (0, 0)
            sure = base.sure and not foreign and not _midnight_repeats(here)
            found.append(_piece(base, _ALL, days, sure=sure, steps=1))
        elif window.length_s is None and not foreign:
            found.append(_piece(base, base.times, (0, 0), sure=False, steps=base.steps))
            if base.sure and rule is not None:
                alike = (rule.gap, rule.fold) == (opens.gap, opens.fold)
                steady = base.times if alike else base.times & ~_changing(here)
                found.append(_piece(base, steady, (0, 0), sure=True, steps=0))
        else:
            slack = max(_largest_change(here), _largest_change(there))
            found += _long(base, window.length_s or 1, slack + (26 * 3600 if foreign else 0))
    return found


def _interval(opens: Recurrence, there: Zone, *, single: bool) -> Cover:
    """Instants of an interval on the wall clock of a zone."""
    everything = Cover(lambda _year: _FULL_YEAR, _ALL, DAY_S, False, 0)
    if not isinstance(opens, Every) or not single:
        return everything
    step, fraction = divmod(gcd(opens.period_us, DAY_S * 1_000_000), 1_000_000)
    if fraction or not step or opens.anchor_us % 1_000_000:
        return everything
    firsts = {(opens.anchor_us // 1_000_000 + offset) % step for offset in _offsets(there)}
    times = 0
    for first in firsts:
        times |= stride(first, DAY_S, step)
    sure = len(firsts) == 1 and not opens.starts and opens.period_us == step * 1_000_000
    return Cover(lambda _year: _FULL_YEAR, times, times.bit_count(), sure, MIN_LOCAL)


def _offsets(here: Zone) -> set[int]:
    return {here.segment(0).offset, *(segment.offset for segment in _segments(here))}


def _changing(here: Zone) -> int:
    """Times of day that some change of the clocks skips, repeats or names twice."""
    found = 0
    for segment in _segments(here):
        jump = abs(segment.offset - segment.before)
        begin = (segment.start + segment.before - jump) % DAY_S
        found |= (1 << min(2 * jump + 1, DAY_S)) - 1 << begin
    return (found | found >> DAY_S) & _ALL


def _long(base: Cover, length_s: int, slack: int) -> list[Cover]:
    """Windows of a length: the day on which they open, the whole days after it, and the last."""
    if not base.times:
        return []
    first, last = (base.times & -base.times).bit_length() - 1, base.times.bit_length() - 1
    opening = _dilated(base.times, min(length_s + slack, DAY_S)) & _ALL
    pieces = [_piece(base, opening, (0, 0), sure=False, steps=base.steps)]
    whole, rest = divmod(last + length_s + slack, DAY_S)
    if whole > 1:
        pieces.append(_piece(base, _ALL, (1, whole - 1), sure=False, steps=1))
    if whole:
        pieces.append(_piece(base, (1 << rest) - 1, (whole, whole), sure=False, steps=1))
    if base.sure and length_s > slack:
        certain = _dilated(base.times, min(length_s - slack, DAY_S)) & _ALL
        pieces.append(_piece(base, certain, (0, 0), sure=True, steps=0))
        whole, rest = divmod(first + length_s - slack, DAY_S)
        if whole > 1:
            pieces.append(_piece(base, _ALL, (1, whole - 1), sure=True, steps=0))
        if whole:
            pieces.append(_piece(base, (1 << rest) - 1, (whole, whole), sure=True, steps=0))
    return pieces


def _piece(base: Cover, times: int, later: tuple[int, int], *, sure: bool, steps: int) -> Cover:
    first = base.first + max(0, later[1]) * DAY_S
    return Cover(base.days, times, steps, sure, first, base.cycle_years, base.named, later)


def _dilated(bits: int, length: int) -> int:
    have = 1
    while have < length:
        more = min(have, length - have)
        bits |= bits << more
        have += more
    return bits


def _segments(here: Zone) -> list[Segment]:
    """Stretches of one offset from 1970 until the changes repeat from year to year."""
    found, segment = [], here.segment(0)
    while segment.end < min(FAR, MAX_LOCAL, here.stored_to + 800 * DAY_S):
        segment = here.segment(segment.end)
        found.append(segment)
    return found


def _largest_change(here: Zone) -> int:
    return max((abs(segment.offset - segment.before) for segment in _segments(here)), default=0)


def _midnight_repeats(here: Zone) -> bool:
    """Whether a change takes the clock back over midnight, or moves a time before midnight behind it."""
    for segment in _segments(here):
        jump = segment.offset - segment.before
        if (jump < 0 and (segment.start + segment.before) % DAY_S < -jump) or (
            jump > 0 and (segment.start + segment.offset) % DAY_S <= jump
        ):
            return True
    return False


def _walk(schedule: Union) -> Openness:
    """Look at every excluded slot of one calendar cycle, or of all time when the rules end sooner."""
    begin = max(schedule.start or FIRST, datetime(1970, 1, 1, tzinfo=FIRST.tzinfo))
    slot: datetime | None = schedule.candidate(begin, inclusive=True)
    row, free = 0, False
    for _ in range(_WALKED):
        if slot is None:
            return Openness.OPEN if free else Openness.NEVER
        if slot - begin > _CYCLE:
            return Openness.OPEN if free else Openness.UNDECIDED
        closed = schedule.closed_until(slot)
        row = 0 if closed is None else row + 1
        free = free or closed is None
        if row > MOST_IN_A_ROW:
            return Openness.UNDECIDED
        slot = (
            schedule.candidate(slot, inclusive=False)
            if closed is None
            else schedule.candidate(closed, inclusive=closed > slot)
        )
    return Openness.UNDECIDED
