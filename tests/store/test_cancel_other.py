"""Overlap policy cancel_other: what runs may end and commit within its grace, and only then its successor starts."""

from tests.store.bench import THROWN, Bench

from lodger.engine.core.execution import Claim
from lodger.engine.policy.plan import CANCEL_GRACE
from lodger.engine.store.records import Schedule

GRACE_S = int(CANCEL_GRACE.total_seconds())


def _started(bench: Bench, **terms: object) -> tuple[Schedule, Claim]:
    """A schedule with its first slot running."""
    bench.tenant(min_interval_s=1)
    bench.lease()
    schedule = bench.schedule("every 2s", overlap="cancel_other", **terms)
    _advance(bench, 2)
    (claim,) = bench.claim()
    return schedule, claim


def _advance(bench: Bench, seconds: float) -> None:
    bench.clock.advance(seconds)
    bench.renew()
    bench.tick()


def test_runs_of_five_seconds_every_two_seconds_all_complete(bench: Bench) -> None:
    schedule, claim = _started(bench)
    for _ in range(10):
        for seconds in (2, 2, 1):
            _advance(bench, seconds)
            bench.rescue()
        bench.commit(claim)
        (claim,) = bench.claim()
        assert bench.clock.us - (claim.slot_us or 0) <= 2_000_000, "the newest slot is next"
    states = bench.states(schedule)
    assert states.count("done") == 10
    assert {action.reason for action in bench.actions(schedule) if action.state == "done"} == {None}
    assert {action.reason for action in bench.actions(schedule) if action.state == "cancelled"} == {"superseded"}


def test_a_run_that_does_not_end_in_its_grace_is_cancelled_and_its_successor_starts(bench: Bench) -> None:
    schedule, claim = _started(bench)
    for _ in range((GRACE_S + 2) // 2):
        _advance(bench, 2)
        bench.rescue()
        assert bench.claim() == []
    bench.clock.advance(0.001)
    assert bench.rescue().actions == (), "nothing of it is lost or tried again"
    assert bench.actions(schedule)[0].state == "cancelled"
    (successor,) = bench.claim()
    assert successor.slot_us is not None
    assert bench.commit(claim).lost, "its commit comes too late"
    bench.commit(successor)


def test_a_run_that_fails_in_its_grace_is_not_tried_again(bench: Bench) -> None:
    schedule, claim = _started(bench, retry={"attempts": 5, "backoff_s": 500})
    _advance(bench, 2)
    bench.commit(claim, finished=THROWN)
    assert bench.states(schedule) == ["failed", "ready"]
    assert len(bench.claim()) == 1
