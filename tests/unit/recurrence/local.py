"""Questions to a wall-clock sequence, without a bound."""

from lodger.engine.recurrence.rule import LocalSequence
from lodger.engine.recurrence.search import Steps

UNBOUNDED = 10**9


def next_local(rule: LocalSequence, local: int, *, inclusive: bool = False) -> int | None:
    """First member after (or at) the local second."""
    return rule.next_from(local if inclusive else local + 1, Steps(UNBOUNDED))


def previous_local(rule: LocalSequence, local: int, *, inclusive: bool = False) -> int | None:
    """Last member before (or at) the local second."""
    return rule.last_to(local if inclusive else local - 1, Steps(UNBOUNDED))
