"""Which slots of a range a backfill runs: those that did not run. What failed has run: that is for a replay."""

from collections.abc import Iterable, Mapping
from datetime import datetime

#: States of a slot's action that did not run.
DID_NOT_RUN = frozenset({"skipped", "expired", "cancelled"})


def chosen(
    slots: Iterable[datetime], states: Mapping[datetime, str], backfilled: frozenset[datetime]
) -> tuple[list[datetime], int]:
    """Give the slots to run, ascending, and how many are left alone.

    Args:
        slots: of the range, ascending, all of them accounted.
        states: of the slots that have a row of their own; the others lie in a gap, or before the schedule began.
        backfilled: slots that a backfill has run before, whatever became of it.
    """
    run, left = [], 0
    for slot in slots:
        state = states.get(slot)
        if slot in backfilled or (state is not None and state not in DID_NOT_RUN):
            left += 1
        else:
            run.append(slot)
    return run, left
