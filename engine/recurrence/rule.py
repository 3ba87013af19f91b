"""The one interface of every rule language, and the values it answers with.

A wall-clock language implements :class:`LocalSequence` (naive integer seconds, no zone, no DST); ``zoned.py`` turns that
into a :class:`Recurrence` of UTC instants under a zone and a DST policy, once for all languages. Rules without wall
clock (``every 90s``, ``at``) are Recurrences directly.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from lodger.engine.core.protocol import Protocol
from lodger.engine.core.record import record

#: Local seconds of 1970-01-01T00:00:00 are 0; proleptic Gregorian, no leap seconds; years 1 to 9999.
LocalSeconds = int


class Kind(StrEnum):
    """The language a rule is written in."""

    RRULE = "rrule"
    CRON = "cron"
    SCHYNTAX = "schyntax"
    EVERY = "every"
    ONCE = "once"
    CHANGES = "changes"


class Gap(StrEnum):
    """What a local time becomes that a spring-forward transition skips."""

    SHIFT = "shift"  # RFC 5545: read with the offset before the gap
    NEXT = "next"  # the first instant after the gap
    SKIP = "skip"


class Fold(StrEnum):
    """Which of the two instants is meant by a local time that happens twice."""

    FIRST = "first"
    BOTH = "both"


@record
class DstPolicy:
    """None asks for the default of the language and granularity."""

    gap: Gap | None = None
    fold: Fold | None = None


@record
class RuleSpec:
    """One recurrence expression as the caller wrote it; JSON-able, kept in the ledger.

    Attributes:
        kind: language of ``text``; None lets the parser recognise it.
        text: the expression.
        dtstart: RFC 5545 local date-time or ISO instant that anchors the rule, when the text has none.
        tz: IANA zone, when the text has none; None means UTC.
    """

    text: str
    kind: Kind | None = None
    dtstart: str | None = None
    tz: str | None = None


@record
class ScheduleRules:
    """All that names a schedule's slots: union of rules, minus exclusions, inside [start, end)."""

    rules: tuple[RuleSpec, ...]
    exclusions: tuple[RuleSpec, ...] = ()
    tz: str | None = None
    dst: DstPolicy = DstPolicy()
    start: datetime | None = None
    end: datetime | None = None


@record
class Density:
    """How often a schedule fires at most.

    Attributes:
        smallest_gap_s: least distance between two neighbouring slots, seconds; None with fewer than two slots.
        most_per_day: most slots in any UTC day.
        exact: whether both are the truth; otherwise they are bounds, never laxer than it.
    """

    smallest_gap_s: float | None
    most_per_day: int
    exact: bool = False


class Recurrence(Protocol):
    """Slots of a rule or of a whole schedule. Instants in and out are aware UTC datetimes.

    Bounded work per question: typical 20 µs, worst 1 ms, however long ago the rule began.
    """

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive); None when there is none before year 10000."""

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""

    def text(self) -> str:
        """One exact English sentence."""

    def proves_never(self) -> str | None:
        """Give the reason why no slot exists before year 10000, or None when one exists."""

    def ends(self) -> bool:
        """Whether the slots are finite."""

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time."""


class Measured(Recurrence, Protocol):
    """A whole schedule's recurrence, which also knows how often it fires."""

    def density(self, since: datetime | None = None, *, gap_only: bool = False) -> Density:
        """How often it fires at most from an instant on (None: 1970).

        Costs milliseconds, for hostile rules some tenths of a second; with ``gap_only`` the fullest day need not be counted.
        """


class LocalSequence(Protocol):
    """A wall-clock rule without zone: an ascending set of naive local seconds."""

    def next_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """First member after (or at) the local second; None when there is none up to the end of year 9999."""

    def previous_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """Last member before (or at) the local second."""

    def text(self) -> str:
        """One exact English sentence, without the zone."""

    def ends(self) -> bool:
        """Whether the members are finite."""

    def default_dst(self) -> DstPolicy:
        """The language's and granularity's default: both fields set, or neither when its parts have different ones."""
