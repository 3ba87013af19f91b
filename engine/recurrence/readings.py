"""What the wall clock of an exclusion tells: at which of its readings the exclusion may be open."""

from datetime import datetime

from lodger.engine.recurrence import civil
from lodger.engine.recurrence.rrule.remainder import Remainder
from lodger.engine.recurrence.zones import Zone


class Readings:
    """Local seconds of a zone at which an exclusion may be open; at all others it is closed for sure."""

    def __init__(self, open_times: Remainder, zone: Zone) -> None:
        self._open, self._zone = open_times, zone

    def open_from(self, instant: datetime) -> datetime:
        """First whole second at or after the instant that may be open, or an instant before it."""
        utc, whole = civil.utc_floor(instant)
        if not whole:
            return instant
        here = self._zone.segment(utc)
        local = self._open.next_local(utc + here.offset, inclusive=True)
        end = civil.MAX_LOCAL if local is None else local - here.offset
        if end > here.end:
            # Nothing is open up to the change, and neither is it beyond when no reading that comes again is open.
            local = self._open.next_local(utc + here.offset - self._zone.largest_change, inclusive=True)
            end = max(here.end, civil.MAX_LOCAL if local is None else local - max(self._zone.offsets))
        return civil.instant_of(min(end, civil.MAX_LOCAL))

    def open_to(self, instant: datetime) -> datetime:
        """The second after the last one before the instant that may be open, or an instant after it."""
        utc, whole = civil.utc_floor(instant)
        if not whole:
            return instant
        here = self._zone.segment(utc - 1)
        local = self._open.previous_local(utc - 1 + here.offset, inclusive=True)
        begin = civil.MIN_LOCAL if local is None else local - here.offset + 1
        if begin < here.start:
            local = self._open.previous_local(utc - 1 + here.offset + self._zone.largest_change, inclusive=True)
            begin = min(here.start, civil.MIN_LOCAL if local is None else local - min(self._zone.offsets) + 1)
        return civil.instant_of(max(begin, civil.MIN_LOCAL))
