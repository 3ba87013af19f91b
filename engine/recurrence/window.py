"""Exclusions: instants and stretches of time in which a schedule does not fire.

An exclusion is a rule whose slots open a window. A rule with a time of day and no duration excludes exactly its own
instants; an RRULE set with ``DURATION`` excludes from each slot on for that long (blackout windows); one whose DTSTART
is a DATE excludes whole local days (holiday lists), as RFC 5545 §3.6.1 reads an event without duration.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rule import Recurrence
from lodger.engine.recurrence.zoned import Zoned

if TYPE_CHECKING:
    from lodger.engine.recurrence.readings import Readings


class Windows:
    """The stretches that one exclusion rule opens.

    Args:
        opens: slots that open a window.
        length_s: how long each is; None for exactly the slot's instant.
        whole_days: each lasts to the end of its local day instead (``opens`` must be Zoned).
    """

    def __init__(self, opens: Recurrence, length_s: int | None = None, *, whole_days: bool = False) -> None:
        self.opens = opens
        self._length = None if length_s is None else timedelta(seconds=length_s)
        self._zone = opens.zone if whole_days and isinstance(opens, Zoned) else None
        #: Readings of a wall clock at which it may be open, once they are known; None when nothing is known.
        self.readings: Readings | None = None

    @property
    def length_s(self) -> int | None:
        """Length of each window in seconds, when it has one of its own."""
        return None if self._length is None else int(self._length.total_seconds())

    @property
    def whole_days(self) -> bool:
        """Whether each lasts to the end of its local day."""
        return self._zone is not None

    @property
    def instants_only(self) -> bool:
        """Whether each window is a single instant."""
        return self._length is None and self._zone is None

    @property
    def last(self) -> datetime:
        """Last instant at which the wall clock of its zone still has a date: east of Greenwich year 10000 begins earlier."""
        opens = self.opens
        ahead = opens.zone.offset(civil.MAX_LOCAL) if isinstance(opens, Zoned) else 0
        return civil.instant_of(civil.MAX_LOCAL - max(ahead, 0)).replace(microsecond=999_999)

    def covering(self, instant: datetime) -> tuple[datetime, datetime] | None:
        """Begin (inclusive) and end (exclusive; equal to begin for a single instant) of the window over an instant."""
        opened = self.opens.previous_before(instant, inclusive=True)
        if opened is None:
            return None
        closes = self.end(opened)
        if instant < closes or instant == opened:
            return opened, closes
        return None

    def closed_until(self, instant: datetime) -> datetime | None:
        """An instant up to which it is closed from this one on (not closed at it, for single instants); None when it is open.

        It is not always the last such instant, but what follows at once is jumped over where :attr:`readings` tell it.
        """
        window = self.covering(instant)
        if window is None:
            return None
        end = window[1]
        return end if self.readings is None else max(end, self.readings.open_from(max(end, instant)))

    def closed_from(self, instant: datetime) -> datetime | None:
        """An instant from which it is closed up to this one; None when it is open."""
        window = self.covering(instant)
        if window is None:
            return None
        begin = window[0]
        return begin if self.readings is None else min(begin, self.readings.open_to(begin))

    def end(self, opened: datetime) -> datetime:
        """When a window that opens then closes: exclusive, or the same instant for a single one."""
        if self._zone is not None:
            utc, _ = civil.utc_floor(opened)
            midnight = (self._zone.local(utc) // civil.DAY_S + 1) * civil.DAY_S
            found = self._zone.instants(midnight)
            end = found[0] if found else midnight - self._zone.offset(utc)
            return civil.instant_of(min(end, civil.MAX_LOCAL))
        if self._length is None:
            return opened
        try:
            return opened + self._length
        except OverflowError:
            return civil.instant_of(civil.MAX_LOCAL)

    def text(self) -> str:
        """Say when it is closed."""
        words = self.opens.text()
        if self._zone is not None:
            return f"the whole day: {words}"
        return words if self._length is None else f"{_span(self._length)} from: {words}"


def _span(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}{'s' if seconds != size else ''}"
    return f"{seconds} seconds"
