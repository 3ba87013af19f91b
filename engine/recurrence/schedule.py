"""A whole schedule as one Recurrence: the union of its rules, minus its exclusions, inside [start, end)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from lodger.engine.recurrence.calendar import civil
from lodger.engine.recurrence.calendar.zones import Zone
from lodger.engine.recurrence.duration import DAY_US, SECOND_US, duration_in_words
from lodger.engine.recurrence.instant import EPOCH, FIRST, LAST, MICROSECOND, format_instant
from lodger.engine.recurrence.rule import Answer, Density, Recurrence
from lodger.engine.recurrence.rule_errors import RuleNeverFires
from lodger.engine.recurrence.search import MAX_STEPS, SAVE_STEPS, OutOfSteps, SearchedTo, Steps, union_of
from lodger.engine.recurrence.union import Union

#: A local day is at most so long, changes of the clock included.
_DAY = timedelta(days=1, hours=26)

#: The time in the sentence of days, which says nothing of a whole day.
_MIDNIGHT = re.compile(r"^At 00:00, |(?<=; and) at 00:00,| at 00:00\b")
#: Changes of the clock come before this second of the day.
_NIGHT_S = 5 * 3600
#: Most steps of the search for the window over an instant, of one exclusion and of all.
_WINDOW_STEPS, _ALL_WINDOWS_STEPS = 64, 1000
#: A schedule without a slot for so many years is refused when it is saved.
_NO_TIME = "its rule has no time in these years"
_MIN_YEARS = 5
#: Slots that are compared with a bound of how often a schedule fires.
_COMPARED = 1000


class Windows:
    """The windows that one exclusion closes.

    A rule that names days and no time of day excludes whole local days, an RRULE set with a DATE as DTSTART too (RFC 5545 §3.6.1);
    one with ``DURATION`` excludes that long from each slot on; any other rule excludes exactly its own instants.

    Args:
        opens: slots that open a window.
        days: calendar days of a window on the wall clock of the zone; 0 with no seconds for exactly the slot's instant.
        seconds: exact seconds that are added to the days.
        to_midnight: the days end at midnight and not at the slot's time of day.
    """

    def __init__(
        self, opens: Recurrence, *, days: int = 0, seconds: int = 0, zone: Zone | None = None, to_midnight: bool = False
    ) -> None:
        self._opens = opens
        self._days, self._seconds = days, seconds
        self._zone, self._to_midnight = zone, to_midnight
        #: No window is longer.
        self._length = timedelta(seconds=seconds) + (timedelta(days=days) + _DAY if days else timedelta())

    def over(self, instant: datetime, steps: Steps, limit: int) -> tuple[datetime, datetime] | None:
        """Return beginning and end of the closed window over an instant, both the instant itself for a single one; None when it is
        open.

        An instant is closed as well when its window cannot be found in so many steps.
        """
        share = Steps(limit - 1)
        begin = instant - self._length if instant - FIRST > self._length else FIRST
        try:
            opened = self._opens.next_from(begin, share)
            if opened is not None and opened < instant:
                opened = self._opens.last_between(opened, instant, share)
        except OutOfSteps as out:
            steps.left -= limit
            return None if out.reached > instant else (instant, instant)
        steps.left -= limit - share.left
        if opened is None or opened > instant:
            return None
        end = self._end(opened)
        return (opened, end) if instant < end or instant == opened else None

    def misses(self, rules: Sequence[Recurrence]) -> bool:
        """Whether it closes no slot of these rules, because it names other times of the same wall clock."""
        times, key = self._opens.pace().times, self._opens.zone_key
        if self._length or not times or key is None or any(rule.zone_key != key for rule in rules):
            return False
        others: set[int] = set()
        for rule in rules:
            if not (named := rule.pace().times):
                return False
            others.update(named)
        # DST may move times of the night onto each other.
        return others.isdisjoint(times) and max(min(others), min(times)) > _NIGHT_S

    def _end(self, opened: datetime) -> datetime:
        """Return when a window that opens at an instant ends: exclusive, or the same instant for a single one."""
        try:
            end = opened
            if self._days and self._zone is not None:
                utc = civil.utc_floor(opened)[0]
                local = self._zone.local(utc)
                if self._to_midnight:
                    local -= local % civil.DAY_S
                local += self._days * civil.DAY_S
                end = civil.instant_of(self._zone.instant(local))
            return end + timedelta(seconds=self._seconds)
        except OverflowError:
            return LAST

    def text(self) -> str:
        """Return in words when the exclusion closes the schedule."""
        words = self._opens.text()
        if self._to_midnight:
            return f"the whole day: {_MIDNIGHT.sub('', words)}"
        length = [duration_in_words(self._days * DAY_US)] if self._days else []
        length += [duration_in_words(self._seconds * SECOND_US, days=False)] if self._seconds else []
        return f"{' '.join(length)} from: {words}" if length else words


class CompiledSchedule(Union):
    """Slots of several rules that no exclusion closes.

    Args:
        rules: the rules, united.
        exclusions: what they lack.
        start, end: no slot lies before the one, or at or after the other.
    """

    def __init__(
        self,
        rules: Sequence[Recurrence],
        exclusions: Sequence[Windows] = (),
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        super().__init__(rules)
        self._exclusions = tuple(exclusions)
        self._start = start
        self._end = end
        # The same in every question, so that all of them find the same windows.
        self._window_steps = min(_WINDOW_STEPS, _ALL_WINDOWS_STEPS // max(1, len(self._exclusions)))

    def _is_within(self, instant: datetime) -> bool:
        """Whether an instant lies between the schedule's start and end."""
        return (self._start is None or instant >= self._start) and (self._end is None or instant < self._end)

    def is_open(self, instant: datetime) -> bool:
        """Whether an instant lies between the schedule's start and end and no exclusion covers it."""
        return self._is_within(instant) and not self._windows_over(instant, Steps())

    def next_after(self, instant: datetime, *, inclusive: bool = False, limit: int = MAX_STEPS) -> Answer:
        """First slot after the instant (or at it, when inclusive), in at most ``limit`` steps."""
        closings: Counter[int] = Counter()
        try:
            return self._next(instant if inclusive else instant + MICROSECOND, Steps(limit), closings)
        except OutOfSteps as out:
            return SearchedTo(out.reached, self._main_exclusion(closings))
        except OverflowError:  # after the last instant of the calendar
            return None

    def _windows_over(self, instant: datetime, steps: Steps) -> list[tuple[int, tuple[datetime, datetime]]]:
        """Return the closed windows over an instant, each with the number of its exclusion."""
        found = ((i, each.over(instant, steps, self._window_steps)) for i, each in enumerate(self._exclusions))
        return [(i, window) for i, window in found if window is not None]

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after an instant."""
        return self._next(instant, steps, None)

    def _next(self, instant: datetime, steps: Steps, closings: Counter[int] | None) -> datetime | None:
        """Return the first slot at or after an instant; counts the slots that each exclusion has removed, by its number."""
        if self._start is not None and instant < self._start:
            instant = self._start
        asked, union, exclusions = instant, union_of(self.rules, instant), len(self._exclusions)
        while True:
            try:
                found = union.next_from(instant, steps)
            except OutOfSteps as out:
                if self._is_within(out.reached):
                    raise
                return None
            if found is None or not self._is_within(found):
                return None
            if found == LAST or not exclusions:  # the last instant is the slot of a rule without a clock
                return found
            if found > asked and steps.left < self._window_steps * exclusions:
                raise OutOfSteps(found)
            windows = self._windows_over(found, steps)
            if not windows:
                return found
            which, (_, closed) = max(windows, key=lambda each: each[1][1])
            if closings is not None:
                closings[which] += 1
            if closed >= LAST:
                return None
            instant = closed if closed > found else found + MICROSECOND
            steps.take(instant)

    def text(self) -> str:
        """Return the schedule's rules and exclusions as one exact English sentence."""
        words = super().text()
        for exclusion in self._exclusions:
            closed = exclusion.text()
            words += f"; but never {closed[0].lower()}{closed[1:]}"
            if exclusion.misses(self.rules):
                words += ", which closes none of its slots"
        if self._start is not None:
            words += f"; from {format_instant(self._start)}"
        if self._end is not None:
            words += f"; before {format_instant(self._end)}"
        return words

    def first_slot(self, since: datetime) -> datetime | SearchedTo:
        """First slot at or after an instant, by a longer search than a question; how far it came when it found none.

        Raises:
            RuleNeverFires: there is no slot, or none for many years.
        """
        closings: Counter[int] = Counter()
        try:
            found = self._next(since, Steps(SAVE_STEPS), closings)
        except OutOfSteps as out:
            years = (out.reached - since).days // 365
            if years < _MIN_YEARS:
                return SearchedTo(out.reached)
            if reason := self.rules_reason():
                raise RuleNeverFires("rule_never_fires", reason=reason) from None
            raise RuleNeverFires(
                "rule_never_fires.years", years=years, reason=self._main_exclusion(closings) or _NO_TIME
            ) from None
        if found is not None:
            return found
        raise RuleNeverFires("rule_never_fires", reason=self.never_reason() or self._reason_since(since, closings))

    def _main_exclusion(self, closings: Counter[int]) -> str | None:
        """Return the words that name the exclusion which removed most slots; None if none did."""
        if not closings:
            return None
        (which, count), *_ = closings.most_common(1)
        return f"exclusion {which + 1} ({self._exclusions[which].text()}) removes the most slots: {count}"

    def _reason_since(self, since: datetime, closings: Counter[int]) -> str:
        """Why no slot is left from an instant on."""
        before = self.previous_before(since)
        if isinstance(before, datetime):
            return f"its last slot was before {since:%Y-%m-%d %H:%M:%S} UTC"
        words = self._main_exclusion(closings)
        if words is not None:
            return f"its exclusions cover every slot: {words}"
        return "no slot of its rules lies between its start and its end"

    def rules_reason(self) -> str | None:
        """Reason why the rules name no slot, whatever the exclusions leave; None if it is not known."""
        return super().never_reason() if self.rules else "the schedule has no rule"

    def never_reason(self) -> str | None:
        """Reason why no slot exists, where that is known."""
        reason = self.rules_reason()
        if reason is not None:
            return reason
        closings: Counter[int] = Counter()
        try:
            if self._next(FIRST, Steps(SAVE_STEPS), closings) is not None:
                return None
        except OutOfSteps:
            return None
        if not closings:
            return "no slot of its rules lies between its start and its end"
        return f"its exclusions cover every slot: {self._main_exclusion(closings)}"

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return self._end is not None or super().ends()

    def smallest_gap_s(self, since: datetime, limit_s: float) -> float | None:
        """A distance of two neighbouring slots that is shorter than a limit, seconds; None when none is found.

        Nothing is searched when the rules cannot name such slots; otherwise the first slots from an instant on are.
        """
        bound_us = self.pace().min_gap_us
        if bound_us is None or bound_us >= limit_s * 1e6:
            return None
        shortest = None
        for before, slot in pairwise(self._first_slots(since)):
            gap_s = (slot - before).total_seconds()
            if gap_s < limit_s and (shortest is None or gap_s < shortest):
                shortest = gap_s
                if gap_s * 1e6 <= bound_us:
                    break
        return shortest

    def density(self, since: datetime | None = None) -> Density:
        """Return bounds of how often the schedule fires from an instant on (None: 1970).

        Both are bounds from the rules' times of day, and exact where the first slots reach them.
        """
        pace = self.pace()
        slots = list(self._first_slots(EPOCH if since is None else max(since, EPOCH)))
        gap_s = min(((b - a).total_seconds() for a, b in pairwise(slots)), default=None)
        per_day = max(Counter(slot.date() for slot in slots).values(), default=0)
        if len(slots) < _COMPARED and self.ends():
            return Density(gap_s, per_day, exact=True)
        bound = Density(None if pace.min_gap_us is None else pace.min_gap_us / 1e6, pace.max_per_day)
        return replace(bound, exact=bound == Density(gap_s, per_day))

    def _first_slots(self, since: datetime) -> Iterator[datetime]:
        """Yield the first slots from an instant on, up to a bounded number."""
        slot = self.next_after(since, inclusive=True)
        for _ in range(_COMPARED):
            if not isinstance(slot, datetime):
                return
            yield slot
            slot = self.next_after(slot)
