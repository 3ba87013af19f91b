"""One-offs: ``at`` a point in time or ``in`` a length of time, at any distance up to year 9999.

``at`` with an offset is an instant; without one it is a local time, one member on the wall clock, which a
zone and its DST policy turn into an instant like every other local time. ``in`` is relative to the moment
of asking and therefore resolved once, when the schedule is saved (:func:`resolved`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lodger.engine.recurrence.civil import local_of
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.recurrence.errors import RuleInvalid
from lodger.engine.recurrence.instant import format_instant, parse_time
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalSeconds

_HEAD = re.compile(r"[ \t\r\n]*(?:(at|in)[ \t]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OnceAt:
    """The single slot at an instant (a Recurrence)."""

    instant: datetime

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Give the slot when it lies after the instant (or at it, when inclusive)."""
        return self.instant if self.instant > instant or (inclusive and self.instant == instant) else None

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Give the slot when it lies before the instant (or at it, when inclusive)."""
        return self.instant if self.instant < instant or (inclusive and self.instant == instant) else None

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Give the slot when it lies in [start, end)."""
        if start <= self.instant < end:
            yield self.instant

    def text(self) -> str:
        """One exact English sentence."""
        return f"Once, at {format_instant(self.instant)}"

    def proves_never(self) -> str | None:
        """Give None: it has its slot."""
        return None

    def ends(self) -> bool:
        """With its slot."""
        return True

    def shifted(self, slot: datetime) -> bool:
        """No: it has no wall clock."""
        return False


@dataclass(frozen=True, slots=True)
class OnceLocal:
    """The single member at a local second (a LocalSequence)."""

    at: LocalSeconds
    written: datetime

    @classmethod
    def of(cls, written: datetime) -> "OnceLocal":
        """Make it of a naive time."""
        return cls(local_of(written), written)

    def next_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """Give the member when it lies after (or at) the local second."""
        return self.at if self.at > local or (inclusive and self.at == local) else None

    def previous_local(self, local: LocalSeconds, *, inclusive: bool = False) -> LocalSeconds | None:
        """Give the member when it lies before (or at) the local second."""
        return self.at if self.at < local or (inclusive and self.at == local) else None

    def text(self) -> str:
        """One exact English sentence, without the zone."""
        return f"Once, at {self.written.isoformat(timespec='seconds')}"

    def ends(self) -> bool:
        """With its member."""
        return True

    def default_dst(self) -> DstPolicy:
        """A one-off is never lost: in a gap it has the offset before; in a fold it is the first time."""
        return DstPolicy(Gap.SHIFT, Fold.FIRST)


def is_relative(text: str) -> bool:
    """Whether the text counts from the moment of asking."""
    head = _HEAD.match(text)
    return head is not None and head[1] is not None and head[1].lower() == "in"


def parse_once(text: str, now: datetime | None) -> OnceAt | OnceLocal:
    """Read ``at <time>``, ``in <length>`` or a bare time.

    Args:
        text: the rule.
        now: aware instant that ``in`` counts from.

    Raises:
        RuleInvalid: for a time that is none, one beyond year 9999, or ``in`` without a moment to count from.
    """
    head = _HEAD.match(text)
    word, at = (head[1], head.end()) if head else (None, 0)
    body = text[at:].rstrip(" \t\r\n")
    if word is not None and word.lower() == "in":
        if now is None:
            raise RuleInvalid(
                "once_without_now",
                f"{text[:40]!r} does not say from when it counts",
                why="A relative time has a meaning only at the moment of asking.",
                fix="Write at and the time.",
                index=0,
            )
        try:
            return OnceAt(now + timedelta(microseconds=parse_duration(body, at)))
        except OverflowError:
            raise RuleInvalid(
                "time_invalid",
                f"{body[:40]!r} from now lies beyond year 9999",
                why="The calendar ends there.",
                fix="Write a shorter length.",
                index=at,
            ) from None
    when = parse_time(body, at)
    if when.tzinfo is not None:
        return OnceAt(when)
    if when.microsecond:
        raise RuleInvalid(
            "time_invalid",
            f"{body!r} is a local time with a fraction",
            why="The wall clock has whole seconds.",
            fix="Leave the fraction out, or give the offset (Z or +02:00).",
            index=at,
        )
    return OnceLocal.of(when)
