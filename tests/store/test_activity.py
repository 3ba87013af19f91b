"""The last hour by minutes and what is due now, and the durations of schedules against their own history."""

from datetime import timedelta

import pytest
from tests.store.bench import OK, THROWN, Bench
from tests.store.virtual_clock import EPOCH

from lodger.engine.core.errors import NotFound
from lodger.engine.effects.finished import Finished
from lodger.engine.store.actions import activity
from lodger.sandbox.job import Usage
from lodger.sandbox.outcome import Outcome


def late_runs(bench: Bench, *lateness_s: float, finished: Finished = OK) -> None:
    """Run the slot of each following minute, so many seconds late."""
    for seconds in lateness_s:
        bench.clock.us += 60_000_000 - bench.clock.us % 60_000_000
        bench.renew()
        bench.tick()
        bench.clock.advance(seconds)
        bench.run(finished)


def test_an_hour_is_counted_by_minutes_with_percentiles_of_lateness(bench: Bench) -> None:
    for tenant in ("acme", "other"):
        bench.tenant(tenant)
        bench.schedule(tenant_id=tenant)
    bench.lease()
    late_runs(bench, 0.004, 2.5)
    late_runs(bench, 0.004, finished=THROWN)
    found = bench.engine.actions.activity()
    assert len(found.parts) == activity.PARTS
    assert found.complete_from == found.parts[0].start
    ended = [(each.done, each.failed) for each in found.parts if each.done or each.failed]
    assert ended == [(2, 0), (2, 0), (0, 2)]
    assert (found.done, found.failed, found.outcomes) == (4, 2, {"script_error": 2})
    second = found.parts[-2]
    # Interpolated between the bounds 2 and 3 seconds.
    assert 2000 <= (second.late_p50_ms or 0) <= (second.late_p99_ms or 0) <= 3000
    assert found.parts[-5].late_p50_ms is None
    assert [each.tenant_id for each in found.failures] == ["other", "acme"] or len(found.failures) == 2
    mine = bench.engine.actions.activity("acme")
    assert (mine.done, mine.failed, [each.tenant_id for each in mine.failures]) == (2, 1, ["acme"])
    with pytest.raises(NotFound):
        bench.engine.actions.activity("nobody")
    bench.clock.advance(3600)
    assert bench.engine.actions.activity("acme").done == 0


def test_tenants_are_listed_by_what_they_did(bench: Bench) -> None:
    for tenant in ("acme", "busy", "idle"):
        bench.tenant(tenant)
    bench.engine.plans.put("large", limits={"runs_per_day": 8})
    bench.engine.tenants.edit("busy", plan="large")
    bench.lease()
    for tenant, finished in (("acme", THROWN), ("busy", OK), ("busy", OK)):
        bench.engine.run_in(tenant, "job", 0)
        bench.clock.advance(1)
        bench.run(finished)
    found = {each.id: each for each in bench.engine.tenants.activity()}
    assert {name: (each.runs, each.failures, each.budget) for name, each in found.items()} == {
        "acme": (1, 1, found["acme"].budget), "busy": (2, 0, 0.25), "idle": (0, 0, found["idle"].budget),
    }  # fmt: skip
    assert found["idle"].latest_at is None
    assert found["busy"].latest_at is not None
    for sort, wanted in (
        ("-runs", "busy"),
        ("-failures", "acme"),
        ("latest", "idle"),
        ("-budget", "busy"),
        ("budget", "acme"),
        ("-plan", "busy"),
        ("-latest", "busy"),
        ("-id", "idle"),
    ):
        names, cursor = [], None
        for _ in range(3):
            page = bench.engine.tenants.activity(filter=f"sort:{sort}", limit=1, cursor=cursor)
            names += [each.id for each in page]
            cursor = page.next
        assert (names[0], sorted(names), cursor) == (wanted, ["acme", "busy", "idle"], None), sort
    assert bench.engine.tenants.count(filter="sort:-budget state:active").count == 3
    assert [each.plan for each in bench.engine.tenants.activity(filter="plan:large sort:budget")] == ["large"]


def test_what_was_caught_up_is_no_lateness(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(missed="latest")
    bench.lease()
    bench.clock.advance(3600)
    late_runs(bench, 0.004)
    found = bench.engine.actions.activity("acme")
    assert (found.done, found.caught_up, found.late_p99_ms) == (1, 1, None)
    late_runs(bench, 0.004)
    found = bench.engine.actions.activity("acme")
    assert (found.done, found.caught_up) == (2, 1)
    assert 0 < (found.late_p99_ms or 0) <= 5


def test_a_busy_hour_is_read_in_several_calls(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MAX_ROWS", 3)
    bench.tenant()
    bench.schedule()
    bench.lease()
    late_runs(bench, *[0.001] * 7)
    done, complete = [], []
    for _ in range(6):
        found = bench.engine.actions.activity("acme")
        done.append(found.done)
        complete.append(found.complete_from)
    assert done == sorted(done)
    assert done[0] < done[-1] == 7
    assert complete == sorted(complete, reverse=True)
    assert complete[-1] == found.parts[0].start


def test_what_is_due_now_is_counted(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(overlap="queue_all")
    bench.lease()
    found = bench.engine.actions.activity("acme")
    assert (found.running, found.due, found.overdue) == (0, 0, 0)
    bench.clock.advance(61)
    assert (bench.engine.actions.activity().due, bench.engine.actions.activity().overdue) == (1, 0), "not ticked yet"
    bench.tick()
    bench.claim()
    bench.clock.advance(60)
    bench.tick()
    bench.clock.advance(11)
    found = bench.engine.actions.activity("acme")
    assert (found.running, found.due, found.overdue) == (1, 1, 1), "the second one waits for the first"


@pytest.mark.parametrize(
    ("durations_ms", "onset", "change", "slow", "overruns"),
    [
        ([100.0] * 4, None, None, False, 0),
        ([100.0] * 11 + [1900.0], None, 1.0, True, 0),
        ([1000.0] * 10 + [3000.0] * 5, "jump", 3.0, True, 0),
        ([1000.0 * 1.07**number for number in range(26)], "drift", 2.41, False, 0),
        ([70_000.0] * 10, None, 1.0, False, 5),
    ],
)
def test_the_durations_of_a_schedule_are_compared_with_its_history(
    bench: Bench, durations_ms: list[float], onset: str | None, change: float | None, slow: bool, overruns: int
) -> None:
    bench.tenant()
    bench.schedule()
    bench.lease()
    for ms in durations_ms:
        late_runs(bench, 0.0, finished=Finished(Outcome.OK, result="1", usage=Usage(1.0, ms)))
    (found,) = bench.engine.schedules.durations("acme")
    assert [each.took_ms for each in found.runs] == pytest.approx(durations_ms, abs=0.01), "oldest first"
    assert (found.schedule, found.step, found.interval_ms) == ("s", 0, 60_000.0)
    assert found.change == pytest.approx(change, rel=0.05) if change else found.change is None
    assert (found.onset, found.slow, found.overruns) == (onset, slow, overruns)
    assert bench.engine.schedules.durations() == [found]


def test_the_most_changed_schedule_comes_first(bench: Bench) -> None:
    bench.tenant()
    for name in ("even", "jumped", "new"):
        bench.schedule(name=name)
    bench.engine.schedules.pause("acme", "new", until=EPOCH + timedelta(days=1))
    bench.lease()
    names = {each.id: each.name for each in bench.engine.schedules.list("acme")}
    for number in range(12):
        bench.clock.advance(60)
        bench.renew()
        bench.tick()
        for claim in bench.claim():
            slowed = names[str(claim.schedule_id)] == "jumped" and number > 6
            bench.commit(claim, finished=Finished(Outcome.OK, result="1", usage=Usage(1.0, 5000.0 if slowed else 10.0)))
    assert [each.schedule for each in bench.engine.schedules.durations("acme")] == ["jumped", "even"]
    assert bench.engine.schedules.durations("acme", limit=1)[0].schedule == "even", "of the first by name"
