"""Leases: epochs, rescue, resignation; suspended and deleted tenants never meet old work."""

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, NotFound
from lodger.engine.store.lifecycle import leases
from lodger.sandbox.outcome import Outcome


def test_an_attempt_that_is_silent_past_its_deadline_is_taken_from_a_living_node(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    bench.claim()
    for _ in range(21):
        bench.clock.advance(3)
        bench.renew()
    assert bench.rescue().actions == ()
    bench.clock.advance(3)
    bench.renew()
    assert [each.outcome for each in bench.rescue().actions] == [Outcome.WORKER_LOST]


def test_suspending_stops_everything_and_resuming_accounts_the_pause(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    bench.clock.advance(1)
    assert bench.engine.tenants.suspend("acme").state == "suspended"
    bench.clock.advance(600)
    assert bench.tick() == []
    assert bench.claim() == []
    assert bench.commit(running).lost == (running,)
    with pytest.raises(Conflict):
        bench.engine.run_in("acme", "job", 0)
    with pytest.raises(Conflict):
        bench.schedule(name="more")
    bench.engine.tenants.resume("acme")
    rows = [(action.state, action.reason) for action in bench.actions(schedule)]
    assert rows == [("ready", None), ("skipped", "tenant_suspended")]
    (again,) = bench.claim()
    assert again.action_id == running.action_id


def test_a_deleted_tenant_leaves_nothing_and_its_id_begins_anew(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    (running,) = bench.claim()
    bench.engine.tenants.delete("acme")
    assert bench.engine.tenants.list() == []
    with pytest.raises(NotFound):
        bench.engine.tenants.get("acme")
    for table in ("actions", "schedules", "schedule_clock", "scripts", "script_versions", "turns"):
        assert bench.scalar(f"SELECT count(*) FROM lodger_{table} WHERE tenant_id <> '@platform'") == 0
    bench.tenant()
    assert bench.engine.tenants.get("acme").generation == 3
    assert bench.commit(running).lost == (running,)
    assert bench.actions() == []


def test_a_clock_that_was_set_back_keeps_no_dead_node_alive(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim(node="dies")
    bench.clock.us -= 3600 * 1_000_000
    bench.lease("lives")
    bench.clock.advance(7)
    bench.renew("lives")
    assert bench.rescue().nodes == (), "its lease seems to last for another hour"
    assert bench.mend()
    assert not bench.mend(), "a living node's lease is left alone"
    bench.clock.advance(5)
    assert bench.renew("lives")
    assert bench.rescue().nodes == ()
    bench.clock.advance(2)
    rescued = bench.rescue()
    assert rescued.nodes == ("dies",)
    assert [each.action_id for each in rescued.actions] == [claim.action_id]


def test_a_clock_that_was_set_back_sends_nobody_to_the_end_of_the_line_for_long(bench: Bench) -> None:
    for tenant in ("acme", "zeta"):
        bench.tenant(tenant)
        for _ in range(6):
            bench.engine.run_in(tenant, "job", 0)
    bench.clock.advance(1)
    served = [bench.claim(1)[0].tenant_id, bench.claim(1)[0].tenant_id]
    assert served == ["acme", "zeta"]
    bench.clock.us -= 500_000
    assert not bench.mend(), "nodes may differ by so much"
    bench.engine.run_in("acme", "job", 0)
    with bench.engine.context.database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE lodger_turns SET served_us = served_us + 3600000000 WHERE tenant_id = 'zeta'"
        )
    assert [bench.claim(1)[0].tenant_id for _ in range(2)] == ["acme", "acme"], "zeta seems to have had its turn"
    assert bench.mend()
    bench.clock.advance(1)
    assert {bench.claim(1)[0].tenant_id for _ in range(2)} == {"acme", "zeta"}


def test_an_attempt_whose_claim_was_never_answered_is_handed_back_by_its_own_node_alone(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    ghost, other = [(claim.action_id, claim.attempt)], bench.lease("other")
    with bench.engine.context.database.write() as connection:
        leases.return_unstarted(connection, other, ghost)
        leases.return_unstarted(connection, bench.lease(), [(claim.action_id, claim.attempt + 1)])
    assert bench.states() == ["running"]
    with bench.engine.context.database.write() as connection:
        leases.return_unstarted(connection, bench.lease(), ghost)
    assert bench.states() == ["ready"]
    (again,) = bench.claim()
    assert again.attempt == 2
    assert bench.commit(claim).lost == (claim,)
    bench.commit(again)
    assert bench.states() == ["done"]
