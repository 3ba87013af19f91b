"""Claiming and committing: fair, within caps, fenced by the lease, all or nothing."""

import pytest
from tests.store.bench import Bench
from tests.traces import TABLE, Traces

from lodger.engine.core.clock import from_us
from lodger.engine.core.execution import Claim
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


@pytest.fixture
def traces(bench: Bench) -> Traces:
    with bench.engine.context.database.write() as connection:
        TABLE.create(connection)
    return Traces(bench.engine.datasets)


def journalled(traces: Traces, claim: Claim, *, refused: bool = False, stale: bool = False) -> Finished:
    """Return a success whose effects are one row."""
    return Finished(Outcome.OK, result="1", journal=traces.journal(claim, refused=refused, stale=stale))


def test_a_refused_effect_takes_back_its_own_attempt_and_no_neighbours(bench: Bench, traces: Traces) -> None:
    bench.tenant()
    ask(bench, 3)
    good, bad, also_good = bench.claim()

    bench.commit(good, bad, also_good, finished=lambda claim: journalled(traces, claim, refused=claim is bad))
    assert bench.scalar("SELECT count(*) FROM effects_seen") == 2
    refused = bench.engine.actions.get(None, bad.action_id)
    assert (refused.state, refused.outcome, refused.result) == ("failed", Outcome.EFFECT_REFUSED, None)
    assert refused.error is not None
    assert (refused.error.file, refused.error.line) == ("main.js", 7)


def test_a_conflict_runs_again_at_once_three_times_and_then_fails(bench: Bench, traces: Traces) -> None:
    bench.tenant()
    ask(bench, 1)

    states = []
    for _ in range(4):
        (claim,) = bench.claim()
        states.append(bench.commit(claim, finished=journalled(traces, claim, stale=True)).settled[0].state)
    assert states == ["ready"] * 3 + ["failed"]
    assert bench.actions()[0].outcome is Outcome.CONFLICT


def test_one_offs_at_any_distance_are_due_to_the_microsecond(bench: Bench) -> None:
    bench.tenant()
    far = bench.engine.run_in("acme", "job", 40 * 365 * 86_400_000 + 0.001)
    at = from_us(bench.clock.us + 3)
    near = bench.engine.run_at("acme", "job", at, params={"a": [1]})
    past = bench.engine.run_at("acme", "job", from_us(bench.clock.us - 10**12))
    assert [claim.action_id for claim in bench.claim()] == [past.id]
    bench.clock.us += 2
    assert bench.claim() == []
    bench.clock.us += 1
    (claim,) = bench.claim()
    assert (claim.action_id, claim.params, claim.slot_us) == (near.id, {"a": [1]}, bench.clock.us)
    bench.clock.us += 40 * 365 * 86_400_000_000 + 1 - 4
    assert bench.claim() == []
    bench.clock.us += 1
    assert [claim.action_id for claim in bench.claim()] == [far.id]


def test_the_same_request_key_is_the_same_action(bench: Bench) -> None:
    bench.tenant("acme")
    bench.tenant("zeta")
    first = bench.engine.run_in("acme", "job", 1000, request_key="k")
    assert bench.engine.run_in("acme", "job", 9000, request_key="k") == first
    assert bench.engine.run_in("zeta", "job", 1000, request_key="k").id != first.id
    bench.schedule()
    now = bench.engine.actions.run_now("acme", "s", request_key="now")
    assert bench.engine.actions.run_now("acme", "s", request_key="now").id == now.id
