"""Laws of the plan: every slot is accounted once, in order, and each policy does what its name says."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.policy.plan import (
    Gap,
    Missed,
    MissedKind,
    Overlap,
    Run,
    Skip,
    SlotPolicies,
    Step,
    UnfinishedCounts,
    parse_missed,
    parse_overlap,
    plan,
    stretch,
)
from lodger.engine.recurrence.every import Every
from lodger.engine.recurrence.search import Steps

SECOND = 1_000_000
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

missed_policies = st.sampled_from([parse_missed(text) for text in ("skip", "latest", "all", "within:45s", "within:2h")])
overlaps = st.sampled_from(list(Overlap))


def accounted_slots(recurrence: Every, steps: list[Step]) -> list[datetime]:
    """Every slot that the steps account, in order."""
    slots: list[datetime] = []
    for step in steps:
        if isinstance(step, Gap):
            assert step.slot < step.slot_to
            slots += recurrence.between(step.slot, step.slot_to + timedelta(microseconds=1))
        else:
            slots.append(step.slot)
    return slots


@given(
    step_s=st.integers(1, 90),
    owed_s=st.integers(0, 900),
    offset_us=st.integers(0, SECOND),
    missed=missed_policies,
    overlap=overlaps,
    busy=st.integers(0, 2),
    waiting=st.integers(0, 2),
    cap=st.integers(1, 40),
)
def test_every_slot_is_accounted_exactly_once(
    step_s: int, owed_s: int, offset_us: int, missed: Missed, overlap: Overlap, busy: int, waiting: int, cap: int
) -> None:
    recurrence = Every(step_s * SECOND)
    now = NOW + timedelta(microseconds=offset_us)
    after = now - timedelta(seconds=owed_s)
    steps = plan(
        UnfinishedCounts(busy, waiting), SlotPolicies(missed, overlap, catch_up_max=cap), recurrence, after, now
    )
    owed = list(recurrence.between(after + timedelta(microseconds=1), now + timedelta(microseconds=1)))
    assert accounted_slots(recurrence, steps) == owed
    runs = [step for step in steps if isinstance(step, Run)]
    assert len(runs) <= cap
    unheld = [run for run in runs if not run.held]
    if overlap is not Overlap.ALLOW:
        assert len(unheld) <= 1, "two actions of a serial schedule may never start at once"
        if (busy or waiting) and not any(run.cancels for run in runs):
            assert not unheld or (overlap is Overlap.QUEUE_ONE and not busy and not waiting)
    for before, step in pairwise(steps):
        if isinstance(before, Skip | Gap) and isinstance(step, Skip | Gap):
            assert before.reason != step.reason, "one stretch with one reason is one row"


def test_latest_runs_the_latest_and_within_only_while_it_is_fresh() -> None:
    hourly = Every(3600 * SECOND)
    now = NOW + timedelta(minutes=20)
    (gap, run) = plan(UnfinishedCounts(), SlotPolicies(parse_missed("latest")), hourly, now - timedelta(hours=5), now)
    assert isinstance(gap, Gap)
    assert isinstance(run, Run)
    assert (run.slot, gap.slot_to) == (NOW, NOW - timedelta(hours=1))
    assert (
        plan(UnfinishedCounts(), SlotPolicies(parse_missed("within:30m")), hourly, now - timedelta(hours=5), now)[-1]
        == run
    )
    (gap,) = plan(UnfinishedCounts(), SlotPolicies(parse_missed("within:19m")), hourly, now - timedelta(hours=5), now)
    assert isinstance(gap, Gap)
    assert gap.slot_to == NOW


class Counted(Every):
    """An interval that counts the questions it is asked."""

    asked = 0

    def next_from(self, instant: datetime, steps: Steps) -> datetime | None:
        Counted.asked += 1
        return super().next_from(instant, steps)


def test_a_month_of_seconds_is_one_gap_and_costs_a_handful_of_questions() -> None:
    every, Counted.asked = Counted(SECOND), 0
    steps = plan(UnfinishedCounts(), SlotPolicies(parse_missed("skip")), every, NOW - timedelta(days=31), NOW)
    assert isinstance(steps[0], Gap)
    assert (to_us(steps[0].slot_to) - to_us(steps[0].slot)) // SECOND > 2_600_000
    assert Counted.asked < 40
    Counted.asked = 0
    (gap,) = stretch(every, NOW - timedelta(days=31), NOW, "paused")
    assert isinstance(gap, Gap)
    assert Counted.asked == 2


@given(st.integers(1, 366 * 86_400))
def test_within_reads_what_it_writes(seconds: int) -> None:
    missed = Missed(MissedKind.WITHIN, timedelta(seconds=seconds))
    assert parse_missed(str(missed)) == missed


def test_within_takes_a_length_of_time_in_words() -> None:
    assert str(parse_missed("within: 1 hour 30 minutes")) == "within:5400s"


@pytest.mark.parametrize(
    "text", ["", "never", "within:", "within:0s", "within:400d", "within:ten", "within:500ms", "latest,all"]
)
def test_a_word_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_missed(text)
    assert refused.value.code == "missed_invalid"
    with pytest.raises(InputError, match="overlap"):
        parse_overlap("maybe")


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("Skip", "skip"),
        ("BufferOne", "queue_one"),
        ("BufferAll", "queue_all"),
        ("CancelOther", "cancel_other"),
        ("TerminateOther", "cancel_running"),
        ("AllowAll", "allow"),
    ],
)
def test_the_names_of_temporal_are_accepted(name: str, policy: str) -> None:
    assert parse_overlap(name) is parse_overlap(name.lower()) is parse_overlap(policy)
    assert parse_overlap(policy).value == policy
