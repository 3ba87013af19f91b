"""A wall-clock rule under a zone and a DST policy: the one place where local seconds become instants.

Local → UTC is not monotone around a transition, so each stretch of constant offset is asked for two *pieces*: the
local times that exist in it, and those that the gap at its beginning swallowed. In the whole database neighbouring
transitions lie at least 90 times their own jump apart, so a local time is concerned by one transition at most.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MIN_LOCAL, instant_of, utc_floor
from lodger.engine.recurrence.rule import DstPolicy, Fold, Gap, LocalSequence
from lodger.engine.recurrence.zones import FAR, Segment, Zone


class Zoned:
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
        dst = dst or DstPolicy()
        self.local = local
        self.zone = zone
        self._asked = dst
        self.gap = dst.gap or default.gap or Gap.SHIFT
        self.fold = dst.fold or default.fold or Fold.FIRST
        self._here = zone.segment(0)
        # What was proved once stays true: no slot from / up to this second, and none between a question and its answer.
        self._ends_at = last
        self._none_from = MAX_LOCAL + 1 if last is None else last + 1
        self._none_to = MIN_LOCAL - 1
        self._known = (1, 0)
        # The member found last, on the way ahead and back: both sides of a change of the clock ask for the same.
        self._ahead, self._behind = (1, 0), (0, 1)
        self._far: Zoned | None = None
        #: Excluded instants, and the slot after and before each row of them.
        self._without = frozenset(without)
        self._over: dict[int, int | None] = {}
        self._under: dict[int, int | None] = {}
        for utc in sorted(self._without, reverse=True):
            after = self._search_next(utc + 1)
            self._over[utc] = after if after is None else self._over.get(after, after)
        for utc in sorted(self._without):
            before = self._search_previous(utc - 1)
            self._under[utc] = before if before is None else self._under.get(before, before)

    @property
    def plain(self) -> bool:
        """Whether every member is a slot: no instants are left out, and none is the last."""
        return not self._without and self._ends_at is None

    @property
    def last(self) -> int | None:
        """UTC second after which it has no slot."""
        return self._ends_at

    @property
    def without(self) -> frozenset[int]:
        """UTC seconds that are no slots."""
        return self._without

    @property
    def single(self) -> tuple[int, ...]:
        """UTC seconds that it leaves out, or after which it has no slot."""
        return tuple(self._without) if self._ends_at is None else (*self._without, self._ends_at)

    def with_members(self, local: LocalSequence) -> "Zoned":
        """The same zone, policy and bounds over other members."""
        policy = DstPolicy(self.gap, self.fold)
        return Zoned(local, self.zone, policy, last=self._ends_at, without=self._without)

    # -- the interface

    def next_after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """First slot after the instant (or at it, when inclusive)."""
        utc, whole = utc_floor(instant)
        found = self.next_utc(utc, inclusive=inclusive and whole)
        return None if found is None else instant_of(found)

    def previous_before(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Last slot before the instant (or at it, when inclusive)."""
        utc, whole = utc_floor(instant)
        found = self.previous_utc(utc, inclusive=inclusive or not whole)
        return None if found is None else instant_of(found)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Slots in [start, end), ascending, lazily."""
        slot = self.next_after(start, inclusive=True)
        while slot is not None and slot < end:
            yield slot
            slot = self.next_after(slot)

    def text(self) -> str:
        """Give the rule's sentence with its zone unless it is UTC; a policy that is not the default is said."""
        default = self.local.default_dst()
        words = self.local.text()
        if self.zone.key != "UTC":
            words += f" ({self.zone.key})"
        if self._asked.gap not in (None, default.gap):
            words += f", times skipped by DST: {_GAP_WORDS[self.gap]}"
        if self._asked.fold not in (None, default.fold):
            words += f", times repeated by DST: {_FOLD_WORDS[self.fold]}"
        return words

    def proves_never(self) -> str | None:
        """Give the reason why no slot exists before year 10000, or None when one exists."""
        if self.next_utc(MIN_LOCAL, inclusive=True) is not None:
            return None
        reason = getattr(self.local, "never_reason", None)
        words: str | None = reason() if reason is not None else None
        if words:
            return words
        if self.local.next_local(MIN_LOCAL, inclusive=True) is not None:
            return f"every local time that the rule names is skipped by DST in {self.zone.key}"
        return "no date and time before year 10000 fulfils all its parts"

    def ends(self) -> bool:
        """Whether the slots are finite."""
        return self.local.ends()

    def shifted(self, slot: datetime) -> bool:
        """Whether DST moved this slot away from its written local time."""
        utc, _ = utc_floor(slot)
        local = self.zone.local(utc)
        return self.local.next_local(local, inclusive=True) != local

    # -- integers

    def next_utc(self, utc: int, *, inclusive: bool = False) -> int | None:
        """Like next_after, on UTC seconds."""
        if not inclusive:
            utc += 1
        utc = max(utc, MIN_LOCAL)
        if utc >= self._none_from:
            return None
        asked, answer = self._known
        if asked <= utc <= answer:
            return answer
        found = self._search_next(utc)
        if found in self._without:
            found = self._over[found]
        if found is None or (self._ends_at is not None and found > self._ends_at):
            found = None
            self._none_from = utc
        else:
            self._known = (utc, found)
        return found

    def _search_next(self, utc: int) -> int | None:
        here = self._here
        if not here.start <= utc < here.end:
            self._here = here = self.zone.segment(utc)
        looked = 0
        while utc <= MAX_LOCAL:
            looked += 1
            if looked > _PATIENCE and utc >= self.zone.stored_to and (far := self._gapless()) is not None:
                return far._search_next(utc)
            best, later = self._first(here, utc)
            if best is not None and best < here.end:
                return best if best <= MAX_LOCAL else None
            if here.end >= FAR:
                return None
            # Nothing in this stretch: the next one may repeat local times already past (fold), or hold the image of
            # a gap; beyond it nothing can lie before the next member, so jump there.
            following = self.zone.segment(here.end)
            best, later = self._first(following, following.start)
            if best is not None and best < following.end:
                return best if best <= MAX_LOCAL else None
            if later is None:
                return None
            utc = max(following.end, later - following.offset - 2 * DAY_S)
            here = self.zone.segment(utc)
        return None

    def previous_utc(self, utc: int, *, inclusive: bool = False) -> int | None:
        """Like previous_before, on UTC seconds."""
        if not inclusive:
            utc -= 1
        utc = min(utc, MAX_LOCAL if self._ends_at is None else self._ends_at)
        if utc <= self._none_to:
            return None
        found = self._search_previous(utc)
        if found in self._without:
            found = self._under[found]
        if found is None:
            self._none_to = utc
        return found

    def _search_previous(self, utc: int) -> int | None:
        here = self._here
        if not here.start <= utc < here.end:
            self._here = here = self.zone.segment(utc)
        looked = 0
        while utc >= MIN_LOCAL:
            looked += 1
            if looked == _PATIENCE and utc >= self.zone.stored_to and (far := self._gapless()) is not None:
                return far._search_previous(utc)
            best, earlier = self._last(here, utc)
            if best is not None and best >= here.start:
                return best if best >= MIN_LOCAL else None
            if here.start <= -FAR or earlier is None:
                return None
            # No member lies in (earlier, here]; a gap's image cannot come before the gap, so jump to that member.
            utc = min(here.start - 1, earlier - here.offset + 2 * DAY_S)
            here = self.zone.segment(utc)
        return None

    def _gapless(self) -> "Zoned | None":
        """The same rule without the times that later years skip, for rules of which no other time may be left."""
        if self.gap is not Gap.SKIP or self._far is self:
            return None
        if self._far is None:
            from lodger.engine.recurrence.parts import without_gaps

            local = without_gaps(self.local, self.zone)
            if local is not None:
                self._far = Zoned(local, self.zone, DstPolicy(self.gap, self.fold))
                self._far._far = self._far
        return self._far

    # -- one stretch of constant offset

    def _member_from(self, local: int) -> int | None:
        """First member at or after a local second."""
        asked, member = self._ahead
        if not asked <= local <= member:
            found = self.local.next_local(local, inclusive=True)
            member = FAR if found is None else found
            self._ahead = (local, member)
        return member if member < FAR else None

    def _member_to(self, local: int) -> int | None:
        """Last member at or before a local second."""
        asked, member = self._behind
        if not member <= local <= asked:
            found = self.local.previous_local(local, inclusive=True)
            member = -FAR if found is None else found
            self._behind = (local, member)
        return member if member > -FAR else None

    def _first(self, here: Segment, utc: int) -> tuple[int | None, int | None]:
        """First slot at or after ``utc`` that the stretch yields, and the first member not before its local time."""
        jump = here.offset - here.before
        local = utc + here.offset
        image = None
        if jump > 0:
            if utc < here.start + jump and self.gap is not Gap.SKIP:
                image = self._first_image(here, utc, jump)
        elif jump < 0 and self.fold is Fold.FIRST:
            local = max(local, here.start + here.before)  # what comes before was shown already
        member = self._member_from(local)
        found = None if member is None else member - here.offset
        if image is not None and (found is None or image < found):
            found = image
        return found, member

    def _first_image(self, here: Segment, utc: int, jump: int) -> int | None:
        opens = here.start + here.before
        if self.gap is Gap.NEXT:
            if utc > here.start:
                return None
            member = self._member_from(opens)
            return here.start if member is not None and member < opens + jump else None
        member = self._member_from(utc + here.before)
        return member - here.before if member is not None and member < opens + jump else None

    def _last(self, here: Segment, utc: int) -> tuple[int | None, int | None]:
        """Last slot at or before ``utc`` that the stretch yields, and a member from which to look before it."""
        jump = here.offset - here.before
        member = self._member_to(utc + here.offset)
        found = None if member is None else member - here.offset
        earlier = member
        if jump > 0:
            if found is not None and found < here.start:
                found = None
            # Images lie within the first hour or so of the stretch.
            if self.gap is not Gap.SKIP and (found is None or found < here.start + jump):
                image = self._last_image(here, utc, jump)
                if image is not None and (found is None or image > found):
                    found = image
        elif jump < 0:
            if self.fold is Fold.FIRST and found is not None and found < here.start - jump:
                found = None
            if found is None or found < here.start:
                # Local times up to the fold's end are still to come on the way back.
                earlier = self._member_to(here.start + here.before - 1)
        return found, earlier

    def _last_image(self, here: Segment, utc: int, jump: int) -> int | None:
        opens = here.start + here.before
        if self.gap is Gap.NEXT:
            member = self._member_to(opens + jump - 1)
            return here.start if member is not None and member >= opens else None
        limit = min(utc + here.before, opens + jump - 1)
        member = self._member_to(limit)
        return member - here.before if member is not None and member >= opens else None


#: Stretches of one offset that are looked at before a rule is freed of the times that each year skips.
_PATIENCE = 10
_GAP_WORDS = {
    Gap.SHIFT: "read with the offset before the change",
    Gap.NEXT: "at the change",
    Gap.SKIP: "left out",
}
_FOLD_WORDS = {Fold.FIRST: "only the first time", Fold.BOTH: "both times"}
