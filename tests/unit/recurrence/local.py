"""Questions to a wall-clock sequence, without a bound."""

from lodger.engine.recurrence.calendar.civil import MAX_LOCAL, instant_of, utc_floor
from lodger.engine.recurrence.calendar.zoned import Zoned
from lodger.engine.recurrence.calendar.zones import zone
from lodger.engine.recurrence.rule import LocalSequence
from lodger.engine.recurrence.search import SearchedTo, Steps

UNBOUNDED = 10**9


def next_local(rule: LocalSequence, local: int, *, inclusive: bool = False) -> int | None:
    """First member after (or at) the local second."""
    return rule.next_from(local if inclusive else local + 1, Steps(UNBOUNDED))


def previous_local(rule: LocalSequence, local: int, *, inclusive: bool = False) -> int | None:
    """Last member before (or at) the local second."""
    found = Zoned(rule, zone("UTC")).previous_before(
        instant_of(min(local, MAX_LOCAL)), inclusive=inclusive, limit=UNBOUNDED
    )
    assert not isinstance(found, SearchedTo)
    return None if found is None else utc_floor(found)[0]
