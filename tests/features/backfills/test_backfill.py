"""A backfill runs what did not run, and nothing twice."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.features.backfills.backfills import DID_NOT_RUN, slots_to_backfill

SLOTS = [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=number) for number in range(12)]
STATES = ["ready", "running", "sealed", "waiting_retry", "done", "failed", "cancelled", "skipped", "expired"]


@given(
    states=st.dictionaries(st.sampled_from(SLOTS), st.sampled_from(STATES)),
    before=st.frozensets(st.sampled_from(SLOTS)),
)
def test_every_slot_is_run_or_left_alone_and_what_ran_is_left(
    states: dict[datetime, str], before: frozenset[datetime]
) -> None:
    run, left = slots_to_backfill(SLOTS, states, before)
    assert len(run) + left == len(SLOTS)
    assert run == sorted(run)
    for slot in SLOTS:
        ran = slot in before or (slot in states and states[slot] not in DID_NOT_RUN)
        assert (slot in run) != ran
    again, untouched = slots_to_backfill(SLOTS, states, before | frozenset(run))
    assert (again, untouched) == ([], len(SLOTS)), "asking twice runs nothing twice"
