"""Two wall clocks: on which days one is so many seconds ahead of the other, the whole day long."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from lodger.engine.recurrence.civil import DAY_S, MAX_LOCAL, MIN_DAY, MIN_LOCAL, civil, year_start
from lodger.engine.recurrence.rrule.blocks import Block
from lodger.engine.recurrence.rrule.year_masks import span
from lodger.engine.recurrence.shifted_days import Both, Far, InYears
from lodger.engine.recurrence.year_kinds import FULL, KindMasks
from lodger.engine.recurrence.zones import Zone, zone

#: A stretch without a change that is longer stands for itself.
_LONG_DAYS = 1100


@dataclass(frozen=True, slots=True)
class Ahead:
    """Days on which the difference is known, without a change of either clock, between two local seconds.

    Attributes:
        by_s: seconds by which the second clock is ahead of the first.
        days: of years that repeat; None for single years.
        once: of single years; None for years that repeat.
        first, last: local seconds of the second clock, both inside.
    """

    by_s: int
    days: KindMasks | None
    once: InYears | None
    first: int
    last: int

    def of(self, block: Block) -> Block:
        """A block on these days only."""
        if self.days is not None:
            return Block(Shared(block.allowed, self.days), block.phase, block.times, block.step)
        assert self.once is not None
        return Block(block.allowed, Both(block.phase, self.once), block.times, block.step)


@dataclass(frozen=True, slots=True)
class Apart:
    """How two clocks stand to each other.

    Attributes:
        ahead: days of one difference each.
        near: days of years that repeat on which one of the clocks changes.
        near_once: days of single years on which one did.
        by_s: all differences there have been and will be.
    """

    ahead: tuple[Ahead, ...]
    near: KindMasks
    near_once: InYears
    by_s: tuple[int, ...]


class Shared(KindMasks):
    """Days that are in both of two sets."""

    def __init__(self, one: KindMasks, other: KindMasks) -> None:
        super().__init__()
        self._one, self._other = one, other

    def _compute(self, year: int) -> int:
        return self._one.mask(year) & self._other.mask(year)


class _Of(KindMasks):
    """Days of years that repeat with one difference; of all of them with None."""

    def __init__(self, here: Zone, there: Zone, by_s: int | None) -> None:
        super().__init__()
        self._here, self._there, self._by_s = here, there, by_s

    def _compute(self, year: int) -> int:
        last = civil(max(self._here.repeats_from, self._there.repeats_from) // DAY_S)[0]
        year += 400 * max(0, (last + 2 - year + 399) // 400)
        found = 0
        for by_s, first, end in _calm(self._here, self._there, year_start(year) - 3, year_start(year + 1) + 3):
            if self._by_s in (None, by_s):
                found |= span(first - year_start(year), end - year_start(year))
        return found & FULL[year_start(year + 1) - year_start(year) == 366]


class _All(KindMasks):
    def _compute(self, year: int) -> int:
        return FULL[year_start(year + 1) - year_start(year) == 366]


def apart(here: Zone, there: Zone) -> Apart:
    """How far a second clock is ahead of a first one, by its own days."""
    return _apart(here.key, there.key)


@lru_cache(maxsize=256)
def _apart(here_key: str, there_key: str) -> Apart:
    here, there = zone(here_key), zone(there_key)
    cut = year_start(civil(max(here.repeats_from, there.repeats_from) // DAY_S)[0] + 2)
    long: list[Ahead] = []
    single: dict[int, list[tuple[int, int]]] = {}
    calm = _calm(here, there, MIN_DAY, cut + 3)
    between = [(end, min(first, cut)) for (_, _, end), (_, first, _) in pairwise(calm) if end < min(first, cut)]
    for by_s, first, end in calm:
        end = min(end, cut)
        if end - first > _LONG_DAYS:
            long.append(
                Ahead(by_s, _All(), None, MIN_LOCAL if first <= MIN_DAY + 1 else first * DAY_S, end * DAY_S - 1)
            )
        elif first < end:
            single.setdefault(by_s, []).append((first, end))
    # Two whole cycles of changes come after that.
    lasting = {by_s for by_s, _, _ in _calm(here, there, cut, cut + 800)}
    ahead = [
        Ahead(by_s, None, _in_years(spans), spans[0][0] * DAY_S, spans[-1][1] * DAY_S - 1)
        for by_s, spans in single.items()
    ]
    ahead += [Ahead(by_s, _Of(here, there, by_s), None, cut * DAY_S, MAX_LOCAL) for by_s in lasting]
    return Apart(
        (*long, *ahead),
        Far(_All(), _Of(here, there, None)),
        _in_years(between),
        tuple(sorted({each.by_s for each in (*long, *ahead)})),
    )


def _in_years(spans: list[tuple[int, int]]) -> InYears:
    """Days from a first one up to an end, year by year."""
    days: dict[int, int] = {}
    for first, end in spans:
        for year in range(civil(first)[0], civil(end - 1)[0] + 1):
            inside = span(max(first - year_start(year), 0), min(end, year_start(year + 1)) - year_start(year))
            days[year] = days.get(year, 0) | inside
    return InYears(days)


def _calm(here: Zone, there: Zone, first_day: int, end_day: int) -> list[tuple[int, int, int]]:
    """Differences, each from a first day up to an end, between two days; days of changes are in none."""
    begin, end = first_day * DAY_S, end_day * DAY_S
    changes = {begin, end}
    for each in (here, there):
        at = each.segment(begin).end
        while at < min(end, MAX_LOCAL):
            changes.add(at)
            at = each.segment(at).end
    found = []
    for one, other in pairwise(sorted(changes)):
        theirs = there.segment(one).offset
        before, after = there.segment(one - 1).offset, there.segment(other).offset
        first = (one + max(before, theirs)) // DAY_S + 1
        last = (other + min(after, theirs)) // DAY_S
        if first < last:
            found.append((theirs - here.segment(one).offset, first, last))
    return found
