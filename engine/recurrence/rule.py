"""The one interface of every rule language, and the values it answers with.

A wall-clock language implements :class:`LocalSequence` (naive integer seconds, no zone, no DST); ``calendar/zoned.py`` turns
that into a :class:`Recurrence` of UTC instants under a zone and a DST policy, once for all languages. Rules without wall
clock (``every 90s``, ``at``) are Recurrences directly.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from lodger.engine.recurrence.instant import FIRST, MICROSECOND
from lodger.engine.recurrence.rule_errors import SearchEnded
from lodger.engine.recurrence.search import MAX_STEPS, OutOfSteps, SearchedTo, Steps

#: Local seconds of 1970-01-01T00:00:00 are 0; proleptic Gregorian, no leap seconds; years 1 to 9999.
LocalSeconds = int

#: The answer of a question: a slot, None when there is none before year 10000, or how far the search came.
Answer = datetime | SearchedTo | None

#: Questions of :meth:`Recurrence.between` that may pass without a slot.
_QUESTIONS = 50
#: The first stretch before an instant that is searched for the slot before it, and steps of its first question.
_SPAN, _SHARE = timedelta(milliseconds=1), 20


class Kind(StrEnum):
    """The language a rule is written in."""

    RRULE = "rrule"
    CRON = "cron"
    SCHYNTAX = "schyntax"
    ENGLISH = "english"
    EVERY = "every"
    ONCE = "once"
    CHANGES = "changes"


class Gap(StrEnum):
    """Treatment of a local time that DST skips."""

    SHIFT = "shift"  # RFC 5545: read with the offset before the gap
    NEXT = "next"  # the first instant after the gap
    SKIP = "skip"


class Fold(StrEnum):
    """Treatment of a local time that DST repeats."""

    FIRST = "first"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class DstPolicy:
    """None asks for the default of the language and granularity."""

    gap: Gap | None = None
    fold: Fold | None = None


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One recurrence expression as the caller wrote it; JSON-able, kept in the ledger.

    Attributes:
        kind: language of ``text``; None lets the parser recognise it.
        text: the expression.
        dtstart: RFC 5545 local date-time or ISO instant that anchors the rule, when the text has none.
        tz: IANA zone, when the text has none; None means UTC.
        counted_from: instant or date that an interval without ``dtstart`` counts from: when its schedule was created.
    """

    text: str
    kind: Kind | None = None
    dtstart: str | None = None
    tz: str | None = None
    counted_from: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleRules:
    """Definition of a schedule's slots: the union of its rules minus its exclusions, inside [start, end)."""

    rules: tuple[RuleSpec, ...]
    exclusions: tuple[RuleSpec, ...] = ()
    tz: str | None = None
    dst: DstPolicy = DstPolicy()
    start: datetime | None = None
    end: datetime | None = None

    @property
    def names_zone(self) -> bool:
        """Whether the schedule or one of its rules has a zone beside its text."""
        return self.tz is not None or any(each.tz for each in self.rules)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the operations that take rules, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: The clock of a rule before its zone.
WALL = ("", Gap.SHIFT, Fold.FIRST)


@dataclass(frozen=True, slots=True)
class Pace:
    """Bounds of the distance between slots of a rule; the true distance is never smaller.

    Attributes:
        min_gap_us: least distance of two slots, microseconds; None with fewer than two slots.
        max_per_day: most slots in any UTC day.
        granule_us: slots of this rule and of others with granules lie apart by a multiple of their common divisor.
        times: the seconds of the day at which the wall clock can show a slot, when they are few; else None.
        clock: the zone and DST policy of that wall clock, :data:`WALL` before it has a zone; rules with equal ones can be laid over
            each other.
    """

    min_gap_us: int | None
    max_per_day: int
    granule_us: int
    times: tuple[int, ...] | None = None
    clock: tuple[str, Gap, Fold] | None = None


@dataclass(frozen=True, slots=True)
class Density:
    """Bounds of how often a schedule fires.

    Attributes:
        smallest_gap_s: least distance between two neighbouring slots, seconds; None with fewer than two slots.
        max_per_day: largest number of slots in any UTC day.
        exact: whether both are the truth; otherwise they are bounds, never laxer than it.
    """

    smallest_gap_s: float | None
    max_per_day: int
    exact: bool = False


class Recurrence(ABC):
    """Slots of a rule or of a whole schedule. Instants in and out are aware UTC datetimes.

    A question takes at most :data:`~lodger.engine.recurrence.search.MAX_STEPS` steps, however long ago the rule began.
    """

    __slots__ = ()

    @abstractmethod
    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after an instant; None when there is none before year 10000.

        Raises:
            OutOfSteps: with an instant.
        """

    @abstractmethod
    def text(self) -> str:
        """Return the rule as one exact English sentence."""

    def never_reason(self) -> str | None:
        """Reason why no slot exists before year 10000, where that is known; else None."""
        return None

    @abstractmethod
    def ends(self) -> bool:
        """Whether the number of slots is finite."""

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time; never without a wall clock."""
        return False

    @abstractmethod
    def pace(self) -> Pace:
        """Return bounds of the distance between slots."""

    @property
    def zone_key(self) -> str | None:
        """Name of the zone of its wall clock; None when it has none."""
        return None

    def next_after(self, instant: datetime, *, inclusive: bool = False, limit: int = MAX_STEPS) -> Answer:
        """First slot after the instant (or at it, when inclusive), in at most ``limit`` steps."""
        try:
            return self.next_from(instant if inclusive else instant + MICROSECOND, Steps(limit))
        except OutOfSteps as out:
            return SearchedTo(out.reached)
        except OverflowError:  # after the last instant of the calendar
            return None

    def previous_before(self, instant: datetime, *, inclusive: bool = False, limit: int = MAX_STEPS) -> Answer:
        """Last slot before the instant (or at it, when inclusive); nothing lies after ``SearchedTo.instant``.

        It is found by questions forward, from ever earlier instants.
        """
        steps, span = Steps(limit), _SPAN
        try:
            last = end = instant if inclusive else instant - MICROSECOND
        except OverflowError:
            return None
        while True:
            begin = last - span if last - FIRST > span else FIRST
            try:
                found = self.last_between(begin, end, steps)
            except OutOfSteps:
                return SearchedTo(end)
            if found is not None or begin == FIRST:
                return found
            end, span = begin - MICROSECOND, span * 8

    def last_between(self, begin: datetime, end: datetime, steps: Steps) -> datetime | None:
        """Last slot from one instant up to another.

        Raises:
            OutOfSteps: with an instant.
        """
        found = self._first_between(begin, end, steps)
        while found is not None and found < end:
            later = self._first_between(found + MICROSECOND, end, steps)
            if later is None:
                break
            middle = later + (end - later) // 2
            found = self._first_between(middle, end, steps)
            if found is None:
                found, end = later, middle - MICROSECOND
        return found

    def _first_between(self, begin: datetime, end: datetime, steps: Steps) -> datetime | None:
        """First slot from one instant up to another; little is searched beyond."""
        size = _SHARE
        while True:
            share = Steps(min(size, steps.left))
            steps.left -= share.left
            try:
                found = self.next_from(begin, share)
            except OutOfSteps as out:
                steps.left += share.left
                if out.reached > end:
                    return None
                if steps.left <= 0:
                    raise
                begin, size = out.reached, size * 2
            else:
                steps.left += share.left
                return found if found is not None and found <= end else None

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily.

        Raises:
            SearchEnded: no slot was found in so many questions.
        """
        at = start
        while True:
            try:
                found = self.next_from(at, Steps(_QUESTIONS * MAX_STEPS)) if at < end else None
            except OutOfSteps as out:
                raise SearchEnded(out.reached) from None
            if found is None or found >= end:
                return
            yield found
            at = found + MICROSECOND


class LocalSequence(Protocol):
    """A wall-clock rule without zone: an ascending set of naive local seconds."""

    def next_from(self, local: LocalSeconds, steps: Steps) -> LocalSeconds | None:
        """First member at or after the local second; None when there is none up to the end of year 9999."""

    def text(self) -> str:
        """Return the rule as one exact English sentence, without the zone."""

    def ends(self) -> bool:
        """Whether the number of members is finite."""

    def default_dst(self) -> DstPolicy:
        """The language's and granularity's default: both fields set, or neither when its parts have different ones."""

    def never_reason(self) -> str | None:
        """Reason why there is no member, where that is known; else None."""

    def pace(self) -> Pace:
        """Return bounds of the distance between members."""
