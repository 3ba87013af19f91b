"""A claim tells the script about its schedule, and a commit stores what the attempt left."""

from tests.store.bench import Bench

from lodger.engine.effects.finished import Finished
from lodger.sandbox.job import LogLine, Usage
from lodger.sandbox.outcome import Outcome


def ask(bench: Bench, number: int, tenant_id: str = "acme") -> None:
    for _ in range(number):
        bench.engine.run_in(tenant_id, "job", 0)


def test_a_claim_tells_the_script_about_its_schedule(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(params={"limit": 5}, limits={"cpu_ms": 100})
    bench.clock.advance(60)
    bench.tick()
    first = bench.run()[0]
    assert (first.previous_slot_us, first.last_result) == (None, None)
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    now = bench.clock.us
    assert (claim.schedule_id, claim.params, claim.limits.cpu_ms) == (schedule.id, {"limit": 5}, 100)
    assert (claim.previous_slot_us, claim.last_result) == (now - 60_000_000, {"done": True})
    assert claim.upcoming_us == (now + 60_000_000, now + 120_000_000, now + 180_000_000)
    assert (claim.slot_us, claim.attempt, claim.origin) == (now, 1, "slot")


def test_a_commit_stores_result_logs_usage_and_the_attempt(bench: Bench) -> None:
    bench.tenant()
    ask(bench, 1)
    (claim,) = bench.claim()
    bench.clock.advance(2)
    finished = Finished(
        Outcome.OK,
        '{"n":1}',
        logs=(LogLine("info", "hello", 5),),
        usage=Usage(1.5, 2.5, 1000, 3),
        effects=({"kind": "mail"},),
    )
    (settled,) = bench.commit(claim, finished=finished).settled
    assert settled.state == "done"
    action = bench.engine.actions.get(None, claim.action_id)
    assert (action.state, action.outcome, action.result) == ("done", Outcome.OK, {"n": 1})
    (attempt,) = bench.engine.actions.attempts(None, claim.action_id)
    assert (attempt.usage, attempt.effects, attempt.outcome) == (finished.usage, finished.effects, Outcome.OK)
    assert bench.engine.actions.logs(None, claim.action_id) == [LogLine("info", "hello", 5)]
    assert bench.scalar("SELECT cpu_us FROM lodger_usage_days WHERE runs = 1") == 1500


def test_a_conflict_runs_again_at_once_three_times_and_then_fails(bench: Bench) -> None:
    bench.tenant()
    ask(bench, 1)
    ends = [bench.commit(*bench.claim(), finished=Finished(Outcome.CONFLICT)) for _ in range(4)]
    assert [each.settled[0].state for each in ends] == ["ready"] * 3 + ["failed"]


def test_the_same_request_key_is_the_same_action(bench: Bench) -> None:
    bench.tenant("acme")
    bench.tenant("zeta")
    first = bench.engine.run_in("acme", "job", 1000, request_key="k")
    assert bench.engine.run_in("acme", "job", 9000, request_key="k") == first
    assert bench.engine.run_in("zeta", "job", 1000, request_key="k").id != first.id
    bench.schedule()
    now = bench.engine.actions.run_now("acme", "s", request_key="now")
    assert bench.engine.actions.run_now("acme", "s", request_key="now").id == now.id
