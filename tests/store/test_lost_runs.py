"""Runs that the machine took away: ready again in their old place, and superseded as a running action is."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.store.bench import OK, Bench

from lodger.engine.core.execution import Claim
from lodger.engine.effects import cancelled_usage
from lodger.engine.effects.finished import Finished
from lodger.engine.store.lifecycle import leases
from lodger.engine.store.records import Schedule
from lodger.engine.store.usage import usage
from lodger.sandbox.job import ScriptError, Usage
from lodger.sandbox.outcome import Outcome

LOST = Finished(Outcome.WORKER_LOST, error=ScriptError("WorkerLost", "killed"))
FAULT = Finished(Outcome.ENGINE_FAULT, error=ScriptError("EngineFault", "ours"))
CONFLICT = Finished(Outcome.CONFLICT, error=ScriptError("Conflict", "changed meanwhile"))
LONG = {"attempts": 3, "backoff_s": 500, "backoff_max_s": 500}


def next_slot(bench: Bench) -> None:
    bench.clock.advance(60)
    bench.lease()
    bench.renew()
    bench.tick()


def running(bench: Bench, **terms: object) -> tuple[Schedule, Claim]:
    """A schedule whose first slot runs."""
    bench.tenant()
    schedule = bench.schedule(**terms)
    next_slot(bench)
    (claim,) = bench.claim()
    return schedule, claim


def take_away(bench: Bench, claim: Claim, how: str) -> None:
    """Let the machine, an operator or another run take an attempt away."""
    if how == "node died":
        bench.clock.advance(7)
        assert [each.state for each in bench.rescue().actions] == ["ready"]
        bench.nodes.clear()
    elif how == "node stopped":
        with bench.engine.context.database.write() as connection:
            leases.unregister(connection, bench.lease(), bench.clock.us)
        assert bench.states()[0] in {"ready", "cancelled"}
        bench.nodes.clear()
    elif how == "tenant suspended":
        bench.engine.tenants.suspend("acme")
        bench.engine.tenants.resume("acme")
    elif how == "script suspended":
        bench.engine.scripts.suspend("acme", "job")
        bench.engine.scripts.resume("acme", "job")
    else:
        ended = {"worker lost": LOST, "engine fault": FAULT, "conflict": CONFLICT}[how]
        assert [each.state for each in bench.commit(claim, finished=ended).settled] == ["ready"]


WAYS = [
    "node died", "node stopped", "tenant suspended", "script suspended", "worker lost", "engine fault", "conflict",
]  # fmt: skip


OVERLAPS = {
    "skip": ["done", "skipped"], "queue_one": ["done", "done"], "queue_all": ["done", "done"], "allow": ["done", "done"],
    "cancel_running": ["cancelled", "done"], "cancel_other": ["cancelled", "done"],
}  # fmt: skip


# Every overlap with one way, and every way with one overlap.
@pytest.mark.parametrize(
    ("how", "overlap"), [*(("node died", overlap) for overlap in OVERLAPS), *((how, "skip") for how in WAYS[1:])]
)
def test_the_next_slot_finds_it_like_a_running_action(bench: Bench, how: str, overlap: str) -> None:
    schedule, claim = running(bench, overlap=overlap, pause_after=1)
    take_away(bench, claim, how)
    next_slot(bench)
    for _ in range(3):
        bench.run(OK)
    assert bench.states(schedule)[:2] == OVERLAPS[overlap]
    assert {each.reason for each in bench.actions(schedule) if each.state == "cancelled"} <= {"superseded"}
    row = bench.engine.schedules.get("acme", "s")
    assert row.state == "armed", "no such loss pauses a schedule"


@pytest.mark.parametrize("how", WAYS)
def test_it_has_begun_and_does_not_expire(bench: Bench, how: str) -> None:
    schedule, claim = running(bench, expires_s=5)
    take_away(bench, claim, how)
    bench.clock.advance(30)
    with bench.engine.context.database.read() as connection:
        assert not leases.find_overdue(bench.engine.context, connection, bench.clock.us).expiring
    assert [each.action_id for each in bench.claim(node="n2")] == [claim.action_id]
    assert bench.states(schedule)[0] == "running"


@pytest.mark.parametrize("how", WAYS)
def test_it_is_free_and_the_budget_of_a_day_does_not_end_it(bench: Bench, how: str) -> None:
    bench.tenant(cpu_s_per_day=1)
    bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    take_away(bench, claim, how)
    used, lease = replace(OK, usage=Usage(cpu_ms=2000, wall_ms=2000)), bench.lease()
    with bench.engine.context.database.write() as connection:
        cancelled_usage.write(bench.engine.context, connection, lease, [(claim, used)], bench.clock.us)
    assert bench.engine.tenants.usage("acme").days == ()
    with bench.engine.context.database.write() as connection:
        usage.charge(
            bench.engine.context, connection, {("acme", bench.clock.us // usage.DAY_US): Counter(cpu_us=2_000_000)}
        )
    other = bench.engine.run_in("acme", "job", 0)
    assert [each.action_id for each in bench.claim()] == [claim.action_id]
    assert bench.engine.actions.get(None, other.id).state == "skipped"


@pytest.mark.parametrize("how", ["node died", "worker lost", "node stopped", "script suspended"])
def test_a_superseded_run_that_is_taken_away_is_cancelled_and_its_successor_starts(bench: Bench, how: str) -> None:
    schedule, claim = running(bench, overlap="cancel_other")
    bench.clock.advance(60)
    bench.lease()
    bench.renew()
    bench.tick()
    assert bench.claim() == [], "the running one may end"
    if how == "node died":
        bench.clock.advance(7)
        bench.rescue()
        bench.nodes.clear()
    elif how == "worker lost":
        bench.commit(claim, finished=LOST)
    else:
        take_away(bench, claim, how)
    first, second = bench.actions(schedule)
    assert (first.state, first.reason) == ("cancelled", "superseded")
    assert [each.action_id for each in bench.claim()] == [second.id]


def test_a_second_loss_waits_for_its_backoff_and_is_not_superseded(bench: Bench) -> None:
    schedule, claim = running(bench, overlap="queue_one", retry=LONG)
    bench.commit(claim, finished=FAULT)
    (again,) = bench.claim()
    bench.commit(again, finished=FAULT)
    next_slot(bench)
    assert bench.claim() == []
    bench.clock.advance(600)
    bench.run(OK)
    assert sorted(bench.states(schedule)) == ["done", "ready"]
