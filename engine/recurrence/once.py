"""One-offs: ``at`` a point in time or ``in`` a length of time, at any distance up to year 9999.

``at`` with an offset is an instant; without one it is a local time, one member on the wall clock, which a
zone and its DST policy turn into an instant like every other local time. ``in`` is relative to the moment
of asking and therefore resolved once, when the schedule is saved (:func:`lodger.engine.recurrence.parse.resolved`).
"""

import re
from datetime import datetime, timedelta
from itertools import pairwise
from math import gcd

from lodger.engine.recurrence.calendar.civil import DAY_S, local_of
from lodger.engine.recurrence.calendar.min_spacing import of_times
from lodger.engine.recurrence.duration import parse_duration
from lodger.engine.recurrence.instant import MICROSECOND, format_instant, instant_us, parse_time
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalSeconds, Pace, Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import Listed

_AMAZON = re.compile(r"[ \t\r\n]*at[ \t]*\(([^()]*)\)[ \t\r\n]*", re.IGNORECASE)
_HEAD = re.compile(r"[ \t\r\n]*(?:(at|in)[ \t]+)?", re.IGNORECASE)


class Instants(Listed[datetime], Recurrence):
    """Slots at instants named one by one."""

    def text(self) -> str:
        """Return the rule as one exact English sentence."""
        return f"Once, at {', '.join(map(format_instant, self.members))}"

    def never_reason(self) -> str | None:
        """Return why there is no slot, None if there is one."""
        return None if self.members else "it names no instant"

    def ends(self) -> bool:
        """Return true: the last instant is the last slot."""
        return True

    def pace(self) -> Pace:
        """Return bounds of the distance between the instants."""
        apart = min((b - a for a, b in pairwise(self.members)), default=None)
        gap = None if apart is None else apart // MICROSECOND
        return Pace(gap, len(self.members), gcd(DAY_S * 1_000_000, *map(instant_us, self.members)))


class OnceAt(Instants):
    """The single slot at an instant."""

    def __init__(self, instant: datetime) -> None:
        super().__init__([instant])
        self.instant = instant


class OnceLocal(Listed[LocalSeconds]):
    """The single member at a local time (a LocalSequence)."""

    def __init__(self, written: datetime) -> None:
        super().__init__([local_of(written)])
        self._written = written

    def text(self) -> str:
        """Return the rule as one exact English sentence, without the zone."""
        return f"Once, at {self._written.isoformat(timespec='seconds')}"

    def ends(self) -> bool:
        """Return true: there is one slot."""
        return True

    def default_dst(self) -> DstPolicy:
        """Return the default DST policy: a one-off is never lost; in a gap it has the offset before, in a fold it is the first time."""
        return DstPolicy(Gap.SHIFT, Fold.FIRST)

    def never_reason(self) -> str | None:
        """Return None: there is a member."""
        return None

    def pace(self) -> Pace:
        """Return the pace of a single slot."""
        return of_times([self.members[0] % DAY_S])


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
    amazon = _AMAZON.fullmatch(text)
    text = amazon[1] if amazon else text
    head = _HEAD.match(text)
    word, at = (head[1], head.end()) if head else (None, 0)
    body = text[at:].rstrip(" \t\r\n")
    if word is not None and word.lower() == "in":
        if now is None:
            raise RuleInvalid("once_without_now", text=text[:40], index=0)
        try:
            return OnceAt(now + timedelta(microseconds=parse_duration(body, at)))
        except OverflowError:
            raise RuleInvalid("time_invalid.after", body=body[:40], index=at) from None
    when = parse_time(body, at)
    if when.tzinfo is not None:
        return OnceAt(when)
    if when.microsecond:
        raise RuleInvalid("time_invalid.fraction", body=body, index=at)
    return OnceLocal(when)
