"""Turning due clocks into actions, and states that the ledger refuses to store."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.store.bench import Bench

from lodger.engine.core.clock import from_us
from lodger.engine.recurrence.rule_errors import RuleInvalid, RuleNeverFires
from lodger.engine.store.lifecycle import retiming


def test_catching_up_is_bounded(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule("every 1s", missed="all")
    bench.clock.advance(5000)
    bench.tick()
    actions = bench.actions(schedule)
    assert len(actions) == 1001
    assert (actions[0].reason, bench.seconds(actions[0])) == ("catch_up_max", (1.0, 4000.0))


def test_a_schedule_that_ends_is_ended_and_a_schedule_that_never_fires_is_refused(bench: Bench) -> None:
    bench.tenant()
    bench.schedule(end=from_us(bench.clock.us + 90_000_000))
    bench.clock.advance(60)
    bench.tick()
    assert bench.engine.schedules.get("acme", "s").state == "ended"
    with pytest.raises(RuleNeverFires) as refused:
        bench.schedule(name="late", end=from_us(bench.clock.us - 1))
    assert refused.value.why
    with pytest.raises(RuleInvalid):
        bench.schedule("now and then", name="nonsense")
    assert len(bench.engine.schedules.list("acme")) == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        "UPDATE lodger_schedule_clock SET next_at = NULL",
        "UPDATE lodger_schedule_clock SET state = 'paused'",
        "UPDATE lodger_actions SET held = 1, state = 'running', node_id = '018f0000-0000-7000-8000-000000000001', lease_epoch = 1",
        "UPDATE lodger_actions SET state = 'running', node_id = NULL",
        "UPDATE lodger_actions SET state = 'skipped', reason = NULL",
    ],
)
def test_states_that_would_need_a_healing_sweep_cannot_be_stored(bench: Bench, nonsense: str) -> None:
    bench.tenant()
    bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    with pytest.raises(IntegrityError), bench.engine.context.database.write() as connection:
        connection.exec_driver_sql(nonsense)


def test_new_zone_data_moves_what_is_to_come_and_tells_it(bench: Bench) -> None:
    bench.tenant()
    schedule, other = bench.schedule(name="moved"), bench.schedule(name="same")
    with bench.engine.context.database.write() as connection:
        connection.execute(
            text("UPDATE lodger_schedule_clock SET tzdata = 'old', next_at = next_at + :more WHERE schedule_id = :id"),
            {"id": schedule.id, "more": 3_600_000_000},
        )
        looked, moved = retiming.retime(bench.engine.context, connection)
    assert schedule.next_at is not None
    assert looked == 1
    assert [(each.schedule_id, from_us(each.to_us or 0)) for each in moved] == [(schedule.id, schedule.next_at)]
    with bench.engine.context.database.write() as connection:
        assert retiming.retime(bench.engine.context, connection) == (0, [])
    assert bench.engine.schedules.get("acme", "same") == other
