"""Rules minus exclusions: each rule is freed of what is surely closed, and asks the exclusions only for the rest.

When a schedule is kept it is proved that such asking ends soon: that few closed slots follow one another on any day of any
year. Where neither that nor the contrary is proved the schedule is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from math import lcm

from lodger.engine.recurrence import coverage, drift, effort
from lodger.engine.recurrence.civil import MAX_LOCAL, MIN_LOCAL
from lodger.engine.recurrence.closing import Clock, Closing, closing, leaves_of, on_clock
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.freed import PATIENCE, Freed, Most, Stretches
from lodger.engine.recurrence.instants import Instants
from lodger.engine.recurrence.meter import US, spend
from lodger.engine.recurrence.once import OnceLocal
from lodger.engine.recurrence.parts import classes_of, dates_of, without
from lodger.engine.recurrence.readings import Readings
from lodger.engine.recurrence.rrule.leftover import TooMany
from lodger.engine.recurrence.rrule.remainder import Remainder
from lodger.engine.recurrence.rule import DstPolicy, Recurrence
from lodger.engine.recurrence.spread import spread
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


class Undecided(Exception):
    """Nothing is proved of the schedule's exclusions."""


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
    found: list[Freed] = []
    for leaf in leaves:
        found.append(_drifting(leaf, lasting, known) or _decided(leaf, lasting, known))
        if sum(each.most.us for each in found) > effort.MOST_US:
            raise Undecided
    return tuple(found)


def _drifting(rule: Recurrence, windows: Sequence[Windows], known: Sequence[tuple[datetime, datetime]]) -> Freed | None:
    """An interval that asks every exclusion, when its residues prove that few slots in a row are closed."""
    if not isinstance(rule, Every) or not windows:
        return None
    row = drift.longest_row(rule, windows)
    return None if row is None else _bounded(rule, rule, windows, windows, known, row)


def _decided(rule: Recurrence, windows: Sequence[Windows], known: Sequence[tuple[datetime, datetime]]) -> Freed:
    """A rule without what is surely closed, when it is proved that what it has to ask besides ends soon."""
    if isinstance(rule, Zoned) and not rule.zone.still and (soon := _beside_steps(rule, windows, known)) is not None:
        return soon  # steps in the rule's own clock would be other ones after each change
    source, asked, doubts, clock = _source(rule, windows)
    closed = _closed_dates(rule, windows)
    row = coverage.longest_row(source, doubts, clock.zone)
    found = None if row is None else _bounded(rule, source, asked, windows, [*known, *closed], row)
    if found is None and isinstance(rule, Every):
        # What closes everything for good is left in one step, but what is taken away of it leaves pieces near changes.
        row = coverage.longest_row(rule, [_all_of(closing(window, clock)) for window in windows], clock.zone)
        found = None if row is None else _bounded(rule, rule, windows, windows, known, row)
    found = found or _beside_steps(rule, windows, known)
    if found is None:
        found = _all_listed(rule, source, asked, Stretches([*known, *closed]))
    if found is None:
        raise Undecided
    return found


def _beside_steps(
    rule: Recurrence, windows: Sequence[Windows], known: Sequence[tuple[datetime, datetime]]
) -> Freed | None:
    """A wall-clock rule that intervals close single slots of: taken away is what the other exclusions surely close."""
    steps, others = drift.intervals_of(windows)
    if not steps or not isinstance(rule, Zoned):
        return None
    source, asked, doubts, clock = _source(rule, others)
    if not isinstance(source, Zoned):
        return None
    row = coverage.row_beside_steps(
        source,
        doubts,
        clock.zone,
        lambda apart_s: drift.open_among(Every(apart_s * 1_000_000), [replace(each, anchor_us=0) for each in steps]),
        # On whole seconds, on which the rule's slots are, an interval of fractions comes every so many.
        [lcm(each.period_us, 1_000_000) // 1_000_000 for each in steps],
    )
    single = [window for window in windows if window not in others]
    if row is None:
        return None
    return _bounded(rule, source, [*asked, *single], windows, [*known, *_closed_dates(rule, windows)], row)


def _bounded(
    rule: Recurrence,
    source: Recurrence,
    asked: Sequence[Windows],
    windows: Sequence[Windows],
    known: Sequence[tuple[datetime, datetime]],
    row: coverage.Row,
) -> Freed | None:
    """The rule, when what a question finds closed at most costs no more than a question may."""
    walking = effort.walked_us(source, asked, row.slots)
    # The rule as it is and every exclusion may be laid out sooner than what is left of it.
    ways = (
        [way for way in (spread(source, asked), spread(rule, windows)) if way is not None]
        if row.slots > PATIENCE
        else []
    )
    whole = min(ways, key=lambda way: way.effort_us, default=None)
    if whole is not None:
        leaping = effort.walked_us(source, asked, PATIENCE) + row.leaps * (whole.effort_us + effort.rule_us(source))
        if leaping < walking:
            most = Most(PATIENCE + 1 + row.leaps, row.leaps, leaping)
            return Freed(rule, source, asked, Stretches(known), whole, most) if leaping <= effort.MOST_US else None
    if walking > effort.MOST_US:
        return None
    return Freed(rule, source, asked, Stretches(known), None, Most(row.slots + 1, 0, walking))


def _closed_dates(rule: Recurrence, windows: Sequence[Windows]) -> list[tuple[datetime, datetime]]:
    """Those of the slots that a rule names one by one at which an exclusion is closed."""
    return [(slot, slot) for slot in _dates(rule) if any(window.covering(slot) for window in windows)]


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
    return replace(there, doubt=(*there.doubt, *surely))


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
    cost = US * effort.first_us(window.opens)
    opened = window.opens.next_after(FIRST, inclusive=True)
    while opened is not None:
        spend(cost)
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


def _all_listed(rule: Recurrence, source: Recurrence, asked: Sequence[Windows], listed: Stretches) -> Freed | None:
    """The free slots one by one, when the source has few."""
    most = _WALKED if rule.ends() else _WALKED_ON
    many = len(classes_of(source.local)) if isinstance(source, Zoned) else 1
    free: list[datetime] = []
    cost = US * (effort.first_us(source) + sum(effort.first_us(each.opens) for each in asked))
    slot = source.next_after(FIRST, inclusive=True)
    for _ in range(most // max(1, many)):
        if slot is None:
            return Freed(
                rule, Instants(free), (), Stretches([]), None, Most(1, 0, effort.walked_us(Instants(free), (), 0))
            )
        spend(cost)
        closed = [end for each in asked if (end := each.closed_until(slot)) is not None]
        if not closed and listed.at(slot) < 0:
            free.append(slot)
        after = max(closed, default=slot)
        slot = source.next_after(after, inclusive=after > slot)
    return None
