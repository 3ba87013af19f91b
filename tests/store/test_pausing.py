"""A schedule that fails again and again is paused, once its retries are used up."""

import pytest
from tests.store.bench import OK, THROWN, Bench

from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import tick
from lodger.sandbox.outcome import Outcome

FAULT = Finished(Outcome.ENGINE_FAULT)


def state_after(bench: Bench, *ends: Finished) -> str:
    """Let a minute pass for each end of a run; return the schedule's state."""
    for finished in ends:
        bench.clock.advance(60)
        bench.tick()
        bench.run(finished)
    return bench.engine.schedules.get("acme", "s").state


def test_it_is_paused_after_so_many_failures_in_a_row_and_its_slots_are_accounted(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(pause_after=3)
    assert state_after(bench, THROWN, THROWN, OK, THROWN, THROWN) == "armed"
    assert state_after(bench, THROWN) == "paused"
    found = bench.engine.schedules.get("acme", "s")
    assert (found.failures, found.note) == (3, "paused after 3 failed actions in a row")
    bench.clock.advance(600)
    assert bench.tick() == []
    assert bench.engine.schedules.resume("acme", "s").failures == 0
    assert bench.actions(schedule)[-1].reason == "paused"
    assert state_after(bench, THROWN, THROWN) == "armed"
    assert state_after(bench, THROWN) == "paused"


def test_failures_in_a_row_are_counted_for_schedules_that_are_never_paused(bench: Bench) -> None:
    bench.tenant(concurrent_runs=10)
    failing = bench.schedule(overlap="allow")
    bench.schedule(name="quiet")

    def counts() -> list[int]:
        return [each.failures for each in bench.engine.schedules.list("acme", filter="sort:-failures")]

    for number in (1, 2):
        bench.clock.advance(60)
        bench.tick()
        bench.commit(*bench.claim(), finished=lambda claim: THROWN if claim.schedule_id == failing.id else OK)
        assert counts() == [number, 0]
    assert [each.name for each in bench.engine.schedules.list("acme", filter="failures:2")] == ["s"]
    bench.clock.advance(60)
    assert bench.engine.schedules.list("acme", filter="failures:3") == []
    bench.tick()
    assert state_after(bench, OK) == "armed"
    assert counts() == [0, 0]
    for ends, left in (((THROWN, OK), 0), ((OK, THROWN), 1), ((THROWN, THROWN), 3)):
        for _ in ends:
            bench.engine.actions.run_now("acme", "s")
        claimed = bench.claim()
        bench.commit(*claimed, finished=lambda claim, ends=ends, claimed=claimed: ends[claimed.index(claim)])
        assert counts()[0] == left, "the ends of one batch count in their order"


def test_only_what_has_failed_for_good_counts_and_our_faults_do_not(bench: Bench) -> None:
    bench.tenant()
    bench.schedule("every 3600s", pause_after=1, retry={"attempts": 2, "backoff_s": 1, "engine_attempts": 1})
    bench.clock.advance(3600)
    bench.tick()
    bench.run(THROWN)
    assert bench.engine.schedules.get("acme", "s").failures == 0
    bench.clock.advance(2)
    assert bench.run(OK)
    bench.clock.advance(3600)
    bench.tick()
    bench.run(FAULT)
    assert bench.engine.schedules.get("acme", "s").state == "armed"


def test_a_retry_that_a_slot_supersedes_is_a_failure(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(pause_after=2, retry={"attempts": 5, "backoff_s": 500})
    assert state_after(bench, THROWN, THROWN, THROWN) == "armed"
    assert state_after(bench, THROWN) == "paused"


def test_a_commit_that_could_not_have_the_clock_leaves_the_pause_to_the_tick(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.tenant()
    schedule = bench.schedule(pause_after=1)
    with monkeypatch.context() as patch:
        patch.setattr(tick, "pause_failing", lambda *_arguments: False)
        assert state_after(bench, THROWN) == "armed"
    assert state_after(bench, OK) == "paused"
    assert bench.states(schedule) == ["failed"]
    bench.engine.schedules.resume("acme", "s")
    assert [(action.state, action.reason) for action in bench.actions(schedule)][1] == ("skipped", "paused")
