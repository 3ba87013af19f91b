"""Backfilling a range and replaying one action, on the ledger."""

from datetime import datetime

import pytest
from sqlalchemy import update
from tests.store.bench import THROWN, Bench

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.features.backfills.backfills import Backfill
from lodger.engine.store.records import Schedule
from lodger.engine.store.schema.scheduling import actions

BEGIN = 1_767_225_600_000_000


def at(seconds: float) -> datetime:
    return from_us(BEGIN + round(seconds * 1_000_000))


def backfill(bench: Bench, schedule: Schedule, start: float, end: float) -> Backfill:
    return bench.engine.actions.backfill(schedule.tenant_id, schedule.id, start=at(start), end=at(end))


def schedule_after(bench: Bench, seconds: float, **terms: object) -> Schedule:
    """Create a schedule, and let so many seconds pass."""
    bench.tenant()
    schedule = bench.schedule(**terms)
    bench.clock.advance(seconds)
    bench.tick()
    return schedule


def test_a_gap_is_run_slot_by_slot_in_order_and_its_row_stays(bench: Bench) -> None:
    schedule = schedule_after(bench, 630)
    bench.run()
    made = backfill(bench, schedule, 60, 601)
    assert (len(made.actions), made.left_alone) == (9, 1)
    slots = []
    while claimed := bench.run():
        assert len(claimed) == 1
        assert claimed[0].origin == "backfill"
        slots.append(claimed[0].slot_us)
    assert slots == [BEGIN + number * 60_000_000 for number in range(1, 10)]
    assert bench.states(schedule).count("skipped") == 1
    assert backfill(bench, schedule, 60, 601) == Backfill(schedule.id, (), 10)


@pytest.mark.parametrize(
    ("state", "runs"),
    [
        *[(state, False) for state in ("ready", "running", "sealed", "waiting_retry", "done", "failed")],
        *[(state, True) for state in ("cancelled", "skipped", "expired")],
    ],
)
def test_a_slot_that_ran_or_may_still_run_is_left_alone(bench: Bench, state: str, runs: bool) -> None:
    schedule = schedule_after(bench, 65)
    with bench.engine.context.database.write() as connection:
        needs = {"reason": "overlap", "node_id": actions.c.id, "lease_epoch": 1}
        connection.execute(update(actions).where(actions.c.slot == BEGIN + 60_000_000).values(state=state, **needs))
    made = backfill(bench, schedule, 60, 61)
    assert (len(made.actions), made.left_alone) == (int(runs), int(not runs))
    assert backfill(bench, schedule, 60, 61) == Backfill(schedule.id, (), 1), "asking twice runs nothing twice"


def test_slots_before_the_schedule_existed_are_run_as_its_rules_name_them(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    assert len(backfill(bench, schedule, -600, 0).actions) == 10


def test_a_backfill_never_costs_a_live_slot_its_run(bench: Bench) -> None:
    """With overlap ``skip`` a live slot is not skipped because of a backfill: it goes before the rest of it."""
    schedule = schedule_after(bench, 630)
    bench.run()
    backfill(bench, schedule, 60, 600)
    (old,) = bench.claim()
    bench.clock.advance(60)
    bench.tick()
    assert bench.claim() == [], "one at a time"
    bench.commit(old)
    (live,) = bench.claim()
    assert (live.origin, live.slot_us) == ("slot", BEGIN + 660_000_000)
    bench.commit(live)
    (next_old,) = bench.claim()
    assert next_old.origin == "backfill"


@pytest.mark.parametrize(("start", "end"), [(600, 60), (60, 60), (60, 10_000)])
def test_a_range_that_is_none_is_refused(bench: Bench, start: float, end: float) -> None:
    schedule = schedule_after(bench, 630)
    with pytest.raises(InputError) as refused:
        backfill(bench, schedule, start, end)
    assert refused.value.code == "backfill_range"


def test_a_range_that_is_too_large_says_where_to_cut_it(bench: Bench) -> None:
    schedule = schedule_after(bench, 5000, rules="every 1s")
    with pytest.raises(InputError) as refused:
        backfill(bench, schedule, 1, 5000)
    assert refused.value.details["end"] == at(1001).isoformat()
    assert len(backfill(bench, schedule, 1, 1001).actions) == 1000


def test_a_replay_runs_the_version_it_had_or_the_newest_with_its_params_and_slot(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(params={"a": 1})
    bench.clock.advance(60)
    bench.tick()
    bench.run(THROWN)
    (failed,) = bench.actions(schedule)
    bench.engine.scripts.put("acme", "job", "export default () => 2")
    bench.engine.schedules.edit("acme", "s", params={"a": 2})
    same = bench.engine.actions.replay(None, failed.id)
    assert bench.engine.actions.replay(None, failed.id, request_key="k") == bench.engine.actions.replay(
        None, failed.id, request_key="k"
    )
    (claim,) = bench.run()
    assert (claim.script_version, claim.params, claim.slot_us, claim.origin) == (
        1,
        {"a": 1},
        BEGIN + 60_000_000,
        "replay",
    )
    assert bench.engine.actions.get(None, same.id).replay_of == failed.id
    newest = bench.engine.actions.replay(None, failed.id, newest=True)
    bench.run()
    (claim,) = bench.run()
    assert (claim.action_id, claim.script_version, claim.params) == (newest.id, 2, {"a": 1})


def test_a_replay_begins_at_the_first_step(bench: Bench) -> None:
    bench.tenant()
    bench.engine.scripts.put("acme", "second", "export default () => 2")
    schedule = bench.schedule()
    bench.engine.schedules.edit("acme", "s", script=["job", "second"])
    bench.clock.advance(60)
    bench.tick()
    bench.run()
    bench.run(THROWN)
    bench.engine.actions.replay(None, bench.actions(schedule)[0].id)
    assert [claim.script_name for claim in (*bench.run(), *bench.run())] == ["job", "second"]


def test_a_skipped_slot_is_replayed_and_a_gap_or_an_open_action_is_not(bench: Bench) -> None:
    schedule = schedule_after(bench, 630)
    gap, live = bench.actions(schedule)
    with pytest.raises(InputError, match="many slots"):
        bench.engine.actions.replay(None, gap.id)
    with pytest.raises(Conflict):
        bench.engine.actions.replay(None, live.id)
    with pytest.raises(NotFound):
        bench.engine.actions.replay("acme", "nobody")
    bench.clock.advance(30)
    bench.tick()
    skipped = bench.actions(schedule)[-1]
    assert skipped.state == "skipped"
    bench.run()
    bench.engine.actions.replay(None, skipped.id)
    (claim,) = bench.run()
    assert (claim.slot_us, claim.script_name) == (BEGIN + 660_000_000, "job")
