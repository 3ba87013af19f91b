"""A wall-clock rule under a zone and a DST policy: the one place where local seconds become instants.

Local → UTC is not monotone around a transition, so each stretch of constant offset is asked for two *pieces*: the
local times that exist in it, and those that the gap at its beginning swallowed. In the whole database neighbouring
transitions lie at least 90 times their own jump apart, so a local time is concerned by one transition at most.
"""

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime
from math import gcd

from lodger.engine.recurrence.calendar.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, instant_of, utc_floor
from lodger.engine.recurrence.calendar.zones import FAR, Segment, Zone
from lodger.engine.recurrence.duration import SECOND_US
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalSequence, Pace, Recurrence
from lodger.engine.recurrence.search import SAVE_STEPS, OutOfSteps, Steps

_GAP_WORDS = {Gap.SHIFT: "read with the offset before the change", Gap.NEXT: "at the change", Gap.SKIP: "left out"}
_FOLD_WORDS = {Fold.FIRST: "only the first time", Fold.BOTH: "both times"}


class Zoned(Recurrence):
    """Recurrence of a LocalSequence in a zone.

    Args:
        last: UTC second after which it has no slot.
        without: UTC seconds that are no slots, few of them.
    """

    def __init__(
        self,
        local: LocalSequence,
        zone: Zone,
        dst: DstPolicy | None = None,
        *,
        last: int | None = None,
        without: Iterable[int] = (),
    ) -> None:
        default = local.default_dst()
        self._asked = dst or DstPolicy()
        self.local = local
        self.zone = zone
        self.gap = self._asked.gap or default.gap or Gap.SHIFT
        self.fold = self._asked.fold or default.fold or Fold.FIRST
        self._last = MAX_LOCAL if last is None else last
        self._without = frozenset(without)
        self._here = zone.segment(0)

    # -- the interface

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        """First slot at or after an instant."""
        utc, whole = utc_floor(instant)
        try:
            found = self.next_utc(utc if whole else utc + 1, steps)
        except OutOfSteps as out:
            raise OutOfSteps(_instant(out.reached)) from None
        return None if found is None else instant_of(found)

    def text(self) -> str:
        """Rule's sentence with its zone; a policy that is not the default is said."""
        default = self.local.default_dst()
        words = f"{self.local.text()} ({self.zone.key})"
        if self._asked.gap not in (None, default.gap):
            words += f", times skipped by DST: {_GAP_WORDS[self.gap]}"
        if self._asked.fold not in (None, default.fold):
            words += f", times repeated by DST: {_FOLD_WORDS[self.fold]}"
        return words

    def never_reason(self) -> str | None:
        """Reason why no slot exists, where that is known."""
        words = self.local.never_reason()
        if words:
            return words
        try:
            if self.next_utc(MIN_LOCAL, Steps(SAVE_STEPS)) is not None:
                return None
            if self.local.next_from(MIN_LOCAL, Steps(SAVE_STEPS)) is not None:
                return f"every local time that the rule names is skipped by DST in {self.zone.key}"
        except OutOfSteps:
            return None
        return "no date and time before year 10000 fulfils all its parts"

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return self.local.ends()

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time."""
        local = self.zone.local(utc_floor(slot)[0])
        try:
            return self.local.next_from(local, Steps()) != local
        except OutOfSteps:
            return True

    def pace(self) -> Pace:
        """How close together the slots can be; near a change of the clock no closer than the granule."""
        local, change = self.local.pace(), self.zone.largest_change * SECOND_US
        gap, per_day = local.min_gap_us, local.max_per_day
        if change and gap is not None:
            repeated = min(per_day, -(-change // gap))
            per_day += self._more_per_day(local.times, self.zone.largest_change, repeated)
            # A change moves slots by its size; what is farther apart stays apart.
            gap = gap - change if gap > 2 * change else min(gap, local.granule_us)
            gap = min(gap, change) if self.fold is Fold.BOTH else gap
        clock = (self.zone.key, self.gap, self.fold) if not change else None
        granule = gcd(local.granule_us, self.zone.granule_s * SECOND_US)
        return Pace(None if gap is None else max(gap, granule), per_day, granule, local.times, clock)

    def _more_per_day(self, times: tuple[int, ...] | None, change: int, repeated: int) -> int:
        """Return how many more slots a UTC day may have than a day of the wall clock.

        Args:
            times: of a day, where they are listed.
            change: the largest change of offset, seconds.
            repeated: most slots in that time.
        """
        if times is None:
            return repeated
        lowest, highest = min(self.zone.offsets), max(self.zone.offsets)
        moving = sum((time - lowest) // DAY_S != (time - highest) // DAY_S for time in times)
        if self.fold is Fold.FIRST:
            return moving
        days = (*times, *(time + DAY_S for time in times))
        return moving + max(bisect_left(days, time + change) - i for i, time in enumerate(times))

    @property
    def zone_key(self) -> str:
        """Return the name of the rule's zone."""
        return self.zone.key

    # -- integers

    def next_utc(self, utc: int, steps: Steps) -> int | None:
        """First slot at or after a UTC second."""
        found = self._search_next(max(utc, MIN_LOCAL), steps)
        while found is not None and found in self._without:
            steps.take(found)
            found = self._search_next(found + 1, steps)
        return None if found is None or found > self._last else found

    def _search_next(self, utc: int, steps: Steps) -> int | None:
        """Search the first slot at or after a UTC second from one stretch of constant offset to the next."""
        here = self._here
        if not here.start <= utc < here.end:
            self._here = here = self.zone.segment(utc)
        while utc <= MAX_LOCAL:
            best, later = self._first(here, utc, steps)
            if best is not None and best < here.end:
                return best if best <= MAX_LOCAL else None
            if here.end >= FAR:
                return None
            # Nothing in this stretch: the next one may repeat local times already past (fold), or hold the image of
            # a gap; beyond it nothing can lie before the next member, so jump there.
            following = self.zone.segment(here.end)
            best, later = self._first(following, following.start, steps)
            if best is not None and best < following.end:
                return best if best <= MAX_LOCAL else None
            if later is None:
                return None
            utc = max(following.end, later - following.offset - 2 * DAY_S)
            steps.take(utc)
            here = self.zone.segment(utc)
        return None

    # -- one stretch of constant offset

    def _first(self, here: Segment, utc: int, steps: Steps) -> tuple[int | None, int | None]:
        """First slot at or after ``utc`` that the stretch yields, and the first member not before its local time."""
        jump = here.offset - here.before
        local = utc + here.offset
        image = None
        if jump > 0:
            if utc < here.start + jump and self.gap is not Gap.SKIP:
                image = self._first_image(here, utc, jump, steps)
        elif jump < 0 and self.fold is Fold.FIRST:
            local = max(local, here.start + here.before)  # what comes before was shown already
        try:
            member = self.local.next_from(local, steps)
        except OutOfSteps as out:
            reached = out.reached - here.offset
            if image is not None and image <= reached:
                return image, None
            if reached > here.end:
                # The next stretch shows some local times of this one again, or moves some into its beginning.
                again = utc >= here.end - abs(here.offset - here.after)
                reached = here.end if again else max(here.end, reached - 2 * DAY_S)
            raise OutOfSteps(max(utc, reached)) from None
        found = None if member is None else member - here.offset
        if image is not None and (found is None or image < found):
            found = image
        return found, member

    def _first_image(self, here: Segment, utc: int, jump: int, steps: Steps) -> int | None:
        """Return the first slot at or after ``utc`` for a member in the ``jump`` seconds that the clock skips before this stretch;
        None without any."""
        opens = here.start + here.before
        local = opens if self.gap is Gap.NEXT else utc + here.before
        if self.gap is Gap.NEXT and utc > here.start:
            return None
        try:
            member = self.local.next_from(local, steps)
        except OutOfSteps as out:
            if out.reached >= opens + jump:
                return None
            raise OutOfSteps(utc if self.gap is Gap.NEXT else max(utc, out.reached - here.before)) from None
        if member is None or member >= opens + jump:
            return None
        return here.start if self.gap is Gap.NEXT else member - here.before


def _instant(utc: int) -> datetime:
    """Return a UTC second as an instant, cut to the supported range of years."""
    return instant_of(min(max(utc, MIN_LOCAL), MAX_LOCAL))
