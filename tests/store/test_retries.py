"""Trying again by hand: a failed action goes on where it failed, and in its place in the line."""

import pytest
from tests.store.bench import OK, THROWN, Bench

from lodger.engine.core.errors import Conflict, NotFound
from lodger.engine.effects.finished import Finished
from lodger.sandbox.outcome import Outcome


def test_it_goes_on_at_the_failed_step_with_what_the_step_before_returned(bench: Bench) -> None:
    bench.tenant()
    bench.engine.scripts.put("acme", "two", "export default () => 2")
    schedule = bench.engine.schedules.create("acme", "s", script=["job", "two"], rules="every 60s", params={"p": 1})
    bench.clock.advance(60)
    bench.tick()
    bench.run(Finished(Outcome.OK, result="41"))
    (second,) = bench.run(THROWN)
    assert (second.step, second.params) == (1, 41)
    (failed,) = bench.actions(schedule)
    assert failed.state == "failed"
    bench.engine.scripts.put("acme", "two", "export default () => 3")
    again = bench.engine.actions.retry(None, failed.id)
    assert (again.id, again.state, again.reason, again.step) == (failed.id, "ready", "retried", 1)
    (claim,) = bench.run()
    assert (claim.step, claim.params, claim.script_version, claim.tries, claim.attempt) == (1, 41, 1, 1, 3)
    assert bench.engine.actions.get(None, failed.id).state == "done"
    assert [each.outcome for each in bench.engine.actions.attempts(None, failed.id)] == ["ok", "script_error", "ok"]


def test_nothing_starts_before_it_is_due_in_what_is_told(bench: Bench) -> None:
    """A demo without descriptors said that its slots started ten seconds before they were due."""
    bench.tenant()
    schedule = bench.schedule(retry={"attempts": 2, "backoff_s": 30})
    bench.clock.advance(62)
    bench.tick()
    bench.run(THROWN)
    (waits,) = bench.actions(schedule)
    assert (waits.state, waits.lateness_ms) == ("waiting_retry", None)
    bench.clock.advance(36)
    bench.run(OK)
    (done,) = [each for each in bench.actions(schedule) if each.state == "done"]
    assert done.lateness_ms is not None
    assert 0 <= done.lateness_ms <= 6000  # what a fifth of the delay leaves


def test_its_tries_are_counted_anew_and_it_expires_no_more(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(retry={"attempts": 2, "backoff_s": 0}, expires_s=30)
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)
    bench.run(THROWN)
    (failed,) = bench.actions(schedule)
    bench.clock.advance(50)
    bench.engine.actions.retry(None, failed.id)
    assert [claim.tries for claim in bench.run(THROWN)] == [1]
    assert bench.engine.actions.get(None, failed.id).state == "waiting_retry"


@pytest.mark.parametrize(("overlap", "held"), [("queue_all", True), ("allow", False)])
def test_it_waits_for_what_of_its_schedule_runs(bench: Bench, overlap: str, held: bool) -> None:
    bench.tenant()
    schedule = bench.schedule(overlap=overlap)
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    failed = next(each for each in bench.actions(schedule) if each.state == "failed")
    bench.engine.actions.retry(None, failed.id)
    assert bool(bench.claim()) is not held
    bench.commit(running)
    assert [claim.action_id for claim in bench.claim()] == ([failed.id] if held else [])


def test_only_what_has_failed_can_and_only_for_its_tenant(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("other")
    asked = bench.engine.run_in("acme", "job", 0)
    with pytest.raises(Conflict) as open_:
        bench.engine.actions.retry(None, asked.id)
    assert open_.value.code == "action_not_failed"
    bench.run(OK)
    with pytest.raises(Conflict):
        bench.engine.actions.retry(None, asked.id)
    with pytest.raises(NotFound):
        bench.engine.actions.retry("other", asked.id)
    again = bench.engine.run_in("acme", "job", 0)
    bench.run(THROWN)
    bench.engine.actions.retry("acme", again.id)
    with pytest.raises(Conflict):
        bench.engine.actions.retry(None, again.id)
