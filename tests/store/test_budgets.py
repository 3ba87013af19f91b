"""Budgets of a day, expiry and priority, held on the ledger."""

import pytest
from tests.store.bench import OK, THROWN, Bench

from lodger.engine.core.errors import InputError
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.queue import stops
from lodger.sandbox.job import Usage
from lodger.sandbox.outcome import Outcome

DAY = 86_400


def spend(bench: Bench, number: int, finished: Finished = OK) -> list[str]:
    """Let a minute pass that many times, each time starting and ending what may start; give the states, oldest first."""
    for _ in range(number):
        bench.clock.advance(60)
        bench.tick()
        bench.run(finished)
    return [f"{action.state} {action.reason or ''}".strip() for action in bench.actions()]


@pytest.mark.parametrize(
    ("limits", "finished", "done", "reason"),
    [
        ({"runs_per_day": 3}, OK, 3, "budget_runs"),
        ({"cpu_s_per_day": 2}, Finished(Outcome.OK, usage=Usage(cpu_ms=700)), 3, "budget_cpu_s"),
    ],
)
def test_a_slot_over_the_budget_is_skipped_with_the_reason_and_the_next_day_runs(
    bench: Bench, limits: dict[str, int], finished: Finished, done: int, reason: str
) -> None:
    bench.tenant(**limits)
    bench.tenant("other")
    bench.schedule()
    assert spend(bench, 6, finished) == ["done"] * done + [f"skipped {reason}"] * (6 - done)
    bench.schedule(tenant_id="other")
    bench.clock.advance(60)
    bench.tick()
    assert [claim.tenant_id for claim in bench.claim()] == ["other"]
    bench.clock.us = (bench.clock.us // (DAY * 1_000_000) + 1) * DAY * 1_000_000 - 60_000_000
    bench.tick()
    assert [state for state in spend(bench, 1, finished) if state == "done"] == ["done"] * (done + 1)


def test_what_failed_by_our_fault_is_not_charged(bench: Bench) -> None:
    bench.tenant(runs_per_day=1)
    bench.schedule(retry={"engine_attempts": 1})
    assert spend(bench, 3, Finished(Outcome.ENGINE_FAULT)) == ["failed"] * 3
    assert spend(bench, 2)[3:] == ["done", "skipped budget_runs"]


def test_no_more_start_at_once_than_the_budget_has_left(bench: Bench) -> None:
    bench.tenant(runs_per_day=3)
    for number in range(5):
        bench.schedule(name=f"s{number}")
    bench.clock.advance(60)
    bench.tick()
    running = bench.claim()
    assert len(running) == 3
    assert bench.claim() == []
    bench.commit(*running[:2])
    bench.commit(running[2], finished=Finished(Outcome.WORKER_LOST))
    (again,) = bench.claim()
    bench.commit(again)
    assert bench.claim() == []
    assert sorted(bench.states()).count("skipped") == 2


def test_requests_and_retries_meet_the_budget_too(bench: Bench) -> None:
    bench.tenant(runs_per_day=1)
    schedule = bench.schedule("every 3600s", retry={"attempts": 3, "backoff_s": 1})
    bench.engine.actions.run_now(schedule.tenant_id, schedule.id)
    bench.run(THROWN)
    bench.clock.advance(5)
    assert bench.claim() == []
    (action,) = bench.actions()
    assert (action.state, action.reason, action.outcome) == ("failed", "budget_runs", Outcome.SCRIPT_ERROR)
    bench.engine.actions.run_now(schedule.tenant_id, schedule.id)
    assert bench.claim() == []
    assert [(action.state, action.reason) for action in bench.actions()][1] == ("skipped", "budget_runs")


def test_an_allowance_that_makes_no_sense_is_refused(bench: Bench) -> None:
    with pytest.raises(InputError, match="runs_per_day"):
        bench.tenant(runs_per_day=-1)
    with pytest.raises(InputError, match="no limit"):
        bench.tenant(runs_per_year=1)


def test_a_held_action_expires_without_anybody_claiming(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(overlap="queue_all", expires_s=90)
    for _ in range(2):
        bench.clock.advance(60)
        bench.tick()
        bench.claim()
    with bench.engine.context.database.write() as connection:
        assert not leases.find_overdue(bench.engine.context, connection, bench.clock.us + 89_999_999).expiring
        assert leases.find_overdue(bench.engine.context, connection, bench.clock.us + 90_000_000).expiring
        assert len(stops.expire(connection, bench.clock.us + 90_000_000)) == 1
    assert bench.states() == ["running", "expired"]


def test_the_high_priority_goes_first_whatever_came_before(bench: Bench) -> None:
    bench.tenant(concurrent_runs=1)
    for name in ("low", "normal", "high"):
        bench.schedule(name=name, priority=name)
        bench.clock.advance(10)
    bench.clock.advance(60)
    bench.tick()
    order = [bench.run()[0] for _ in range(3)]
    names = {schedule.id: schedule.name for schedule in bench.engine.schedules.list("acme")}
    assert [names[claim.schedule_id or ""] for claim in order] == ["high", "normal", "low"]


def test_priority_says_nothing_between_tenants(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("other")
    for number in range(10):
        bench.schedule(name=f"s{number}", priority="high")
    bench.schedule(tenant_id="other", priority="low")
    bench.clock.advance(60)
    bench.tick()
    assert sorted({claim.tenant_id for claim in bench.claim(2)}) == ["acme", "other"]
