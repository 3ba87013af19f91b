"""Rules minus exclusions: each rule is freed of what is surely closed, and asks the exclusions only for the rest.

When a schedule is kept it is proved that such asking ends soon: that few closed slots follow one another on any day of any
year. Where neither that nor the contrary is proved the schedule is refused.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lodger.engine.recurrence.civil import MAX_LOCAL, MIN_LOCAL
from lodger.engine.recurrence.closing import Clock, Closing, closing, leaves_of, on_clock
from lodger.engine.recurrence.coverage import MOST_IN_A_ROW, few_in_a_row
from lodger.engine.recurrence.drift import longest_row
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.once import OnceLocal
from lodger.engine.recurrence.parts import classes_of, dates_of, without
from lodger.engine.recurrence.readings import Readings
from lodger.engine.recurrence.rrule.leftover import TooMany
from lodger.engine.recurrence.rrule.remainder import Remainder
from lodger.engine.recurrence.rule import DstPolicy, Recurrence
from lodger.engine.recurrence.stretched import ANY_TIME
from lodger.engine.recurrence.union import FIRST, LAST, Union
from lodger.engine.recurrence.window import Windows
from lodger.engine.recurrence.zoned import Zoned
from lodger.engine.recurrence.zones import zone

#: Windows that an exclusion may have in all to be listed.
_LISTED = 1200
#: Slots that are walked through when nothing is proved on days and times.
_WALKED = 6000
#: The same for a rule without an end, of which hardly anything may be left all the same.
_WALKED_ON = 400
_FAR = datetime(9000, 1, 1, tzinfo=FIRST.tzinfo)


class Undecided(Exception):
    """Nothing is proved of the schedule's exclusions."""


class Stretches:
    """Closed stretches that are listed, each from one instant up to another: the last one inside when it is single."""

    def __init__(self, windows: Sequence[tuple[datetime, datetime]]) -> None:
        self.begins: list[datetime] = []
        self.ends: list[datetime] = []
        for begin, end in sorted(windows):
            if self.ends and begin < self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            elif not self.begins or begin > self.begins[-1]:
                self.begins.append(begin)
                self.ends.append(end)

    def at(self, instant: datetime) -> int:
        """Index of the stretch that closes an instant; -1 when none does."""
        i = bisect_right(self.begins, instant) - 1
        return i if i >= 0 and (instant < self.ends[i] or instant == self.begins[i]) else -1


class Freed:
    """The slots of one rule at which no exclusion is closed.

    Args:
        rule: as it is without exclusions.
        source: the same with what is surely closed left out.
        asked: exclusions that may close more.
        listed: closed stretches that are known one by one.
    """

    def __init__(self, rule: Recurrence, source: Recurrence, asked: Sequence[Windows], listed: Stretches) -> None:
        self.rule, self.source, self.asked = rule, source, tuple(asked)
        self._listed = listed
        count = len(listed.begins)
        #: For each listed stretch the slot before and after it and all that follow without a free slot between.
        self._before: list[datetime | None] = [None] * count
        self._after: list[datetime | None] = [None] * count
        for i in range(count - 1, -1, -1):
            single = listed.ends[i] == listed.begins[i]
            slot = source.next_after(listed.ends[i], inclusive=not single)
            at = -1 if slot is None else listed.at(slot)
            self._after[i] = slot if at < 0 else self._after[at]
        for i in range(count):
            slot = source.previous_before(listed.begins[i])
            at = -1 if slot is None else listed.at(slot)
            self._before[i] = slot if at < 0 else self._before[at]

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        slot = self.source.next_after(instant, inclusive=inclusive)
        while slot is not None:
            if (at := self._listed.at(slot)) >= 0:
                slot = self._after[at]
                if slot is None:
                    return None
            closed = [end for each in self.asked if (end := each.closed_until(slot)) is not None]
            if not closed:
                return slot
            latest = max(closed)
            slot = self.source.next_after(latest, inclusive=latest > slot)
        return None

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        slot = self.source.previous_before(instant, inclusive=inclusive)
        while slot is not None:
            if (at := self._listed.at(slot)) >= 0:
                slot = self._before[at]
                if slot is None:
                    return None
            closed = [begin for each in self.asked if (begin := each.closed_from(slot)) is not None]
            if not closed:
                return slot
            slot = self.source.previous_before(min(closed))
        return None

    def ends(self) -> bool:
        """Whether its slots are finite: by the rule, or because from some day on everything is closed."""
        return self.rule.ends() or self.next_after(_FAR) is None


def freed(schedule: Union) -> tuple[Freed, ...]:
    """The rules of a schedule without what its exclusions close.

    Raises:
        Undecided: it is not proved that a question about them is short.
    """
    known: list[tuple[datetime, datetime]] = []
    lasting = []
    for window in schedule.exclusions:
        windows, all_of_them = _listed(window)
        known += windows
        if not all_of_them:
            lasting.append(window)
    for window in lasting:
        if window.readings is None:
            window.readings = _readings(window)
    leaves = [leaf for rule in schedule.rules for leaf in leaves_of(rule)]
    return tuple(_drifting(leaf, lasting, known) or _decided(leaf, lasting, known) for leaf in leaves)


def _drifting(rule: Recurrence, windows: Sequence[Windows], known: Sequence[tuple[datetime, datetime]]) -> Freed | None:
    """An interval that asks every exclusion, when its residues prove that few slots in a row are closed."""
    if not isinstance(rule, Every) or not windows:
        return None
    row = longest_row(rule, windows)
    return Freed(rule, rule, windows, Stretches(known)) if row is not None and row <= MOST_IN_A_ROW else None


def _decided(rule: Recurrence, windows: Sequence[Windows], known: Sequence[tuple[datetime, datetime]]) -> Freed:
    """A rule without what is surely closed, when it is proved that what it has to ask besides ends soon."""
    source, asked, doubts, clock = _source(rule, windows)
    closed = [(slot, slot) for slot in _dates(rule) if any(window.covering(slot) for window in windows)]
    each = Freed(rule, source, asked, Stretches([*known, *closed]))
    if not few_in_a_row(source, doubts, clock.zone) and not _walked(each):
        raise Undecided
    return each


def _dates(rule: Recurrence) -> list[datetime]:
    """Slots that a rule names one by one."""
    if not isinstance(rule, Zoned):
        return []
    found = []
    policy = DstPolicy(rule.gap, rule.fold)
    for local in dates_of(rule.local):
        one = Zoned(OnceLocal(local, FIRST), rule.zone, policy)
        found += [slot for slot in one.between(FIRST, LAST) if rule.next_after(slot, inclusive=True) == slot]
    return found


#: What to ask instead of a rule, the exclusions that it has to ask, what these may close, and on whose clock.
_Source = tuple[Recurrence, Sequence[Windows], list[Closing], Clock]


def _source(rule: Recurrence, windows: Sequence[Windows]) -> _Source:
    """A rule without what is surely closed."""
    zoned = on_clock(rule) if isinstance(rule, Every) else rule
    if not isinstance(zoned, Zoned):
        clock = _common_clock(windows) or Clock(zone("UTC"))
        return rule, windows, [_all_of(closing(window, clock)) for window in windows], clock
    clock = Clock(zoned.zone, zoned.gap, zoned.fold)
    closings = [closing(window, clock) for window in windows]
    taken = [each for there in closings for each in there.surely]
    local = without(zoned.local, taken) if taken else zoned.local
    if local is None:
        return rule, windows, [_all_of(there) for there in closings], clock
    asked = [window for window, there in zip(windows, closings, strict=True) if there.doubtful]
    return zoned.with_members(local), asked, [there for there in closings if there.doubtful], clock


def _all_of(there: Closing) -> Closing:
    """The same, when nothing has been taken away."""
    surely = tuple(each.block or ANY_TIME for each in there.surely)
    return replace(there, doubt=(*there.doubt, *surely), rare=False)


def _common_clock(windows: Sequence[Windows]) -> Clock | None:
    """The clock of all exclusions when they have one."""
    zones = {leaf.zone.key for window in windows for leaf in leaves_of(window.opens) if isinstance(leaf, Zoned)}
    return Clock(zone(next(iter(zones), "UTC"))) if len(zones) < 2 else None


def _listed(window: Windows) -> tuple[list[tuple[datetime, datetime]], bool]:
    """Windows of an exclusion that are known one by one, and whether these are all."""
    found = [(opened, window.end(opened)) for leaf in leaves_of(window.opens) for opened in _dates(leaf)]
    if not window.opens.ends():
        return found, False
    every: list[tuple[datetime, datetime]] = []
    opened = window.opens.next_after(FIRST, inclusive=True)
    while opened is not None:
        every.append((opened, window.end(opened)))
        if len(every) > _LISTED:
            return found, False
        opened = window.opens.next_after(opened)
    return every, True


def _readings(window: Windows) -> Readings | None:
    """What its own wall clock tells of an exclusion."""
    opens = window.opens
    if not isinstance(opens, Zoned):
        return None
    taken = closing(window, Clock(opens.zone)).surely
    try:
        left = Remainder((ANY_TIME,), _Seconds(), MIN_LOCAL, MAX_LOCAL, taken)
    except TooMany:
        return None
    return Readings(left, opens.zone) if taken else None


class _Seconds:
    """Every second there is."""

    def next(self, local: int) -> int | None:
        return max(local, MIN_LOCAL) if local <= MAX_LOCAL else None

    def previous(self, local: int) -> int | None:
        return min(local, MAX_LOCAL) if local >= MIN_LOCAL else None


def _walked(rule: Freed) -> bool:
    """Whether all slots are few, and few closed ones among them follow one another."""
    most = _WALKED if rule.rule.ends() else _WALKED_ON
    row, slot = 0, rule.source.next_after(FIRST, inclusive=True)
    many = len(classes_of(rule.source.local)) if isinstance(rule.source, Zoned) else 1
    for _ in range(most // max(1, many)):
        if slot is None:
            return True
        closed = [end for each in rule.asked if (end := each.closed_until(slot)) is not None]
        row = row + 1 if closed else 0
        if row > MOST_IN_A_ROW:
            return False
        after = max(closed, default=slot)
        slot = rule.source.next_after(after, inclusive=after > slot)
    return False
