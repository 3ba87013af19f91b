"""Who is alive: epochs, rescue, resignation; suspended and deleted tenants never meet old work."""

import pytest
from tests.store.bench import Bench

from lodger.engine.errors import Conflict, InputError, NotFound
from lodger.engine.ledger import leases
from lodger.sandbox.outcome import Outcome


def test_a_lost_nodes_actions_run_again_and_its_commit_changes_nothing(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim(node="dies")
    bench.clock.advance(5.9)
    assert bench.rescue().actions == ()
    bench.clock.advance(0.2)
    rescued = bench.rescue()
    assert rescued.nodes == ("dies",)
    assert not bench.renew("dies")
    (again,) = bench.claim(node="lives")
    assert (again.action_id, again.attempt) == (claim.action_id, 2)
    assert bench.commit(claim, node="dies").lost == (claim,)
    bench.commit(again, node="lives")
    assert [attempt.outcome for attempt in bench.engine.actions.attempts(claim.action_id)] == [
        Outcome.WORKER_LOST,
        Outcome.OK,
    ]


def test_a_renewed_lease_is_never_rescued(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    bench.claim()
    for _ in range(10):
        bench.clock.advance(3)
        assert bench.renew()
        assert bench.rescue() == leases.Rescued((), ())


def test_a_node_that_begins_again_takes_back_what_it_held_under_a_new_epoch(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    (old,) = bench.claim()
    first = bench.nodes.pop("n1")
    assert bench.lease().epoch == first.epoch + 1
    assert bench.states() == ["waiting_retry"]
    assert bench.commit(old).lost == (old,)


def test_a_node_that_resigns_hands_back_what_it_held_without_blame(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    (claim,) = bench.claim()
    with bench.engine.books.database.write() as connection:
        assert leases.resign(connection, bench.lease(), bench.clock.us) == [claim.action_id]
    (again,) = bench.claim(node="n2")
    assert again.attempt == 2
    assert bench.scalar("SELECT engine_faults FROM lodger_actions") == 0


def test_an_attempt_that_is_silent_past_its_deadline_is_taken_from_a_living_node(bench: Bench) -> None:
    bench.tenant()
    bench.engine.run_in("acme", "job", 0)
    bench.claim()
    for _ in range(13):
        bench.clock.advance(3)
        bench.renew()
    assert bench.rescue().actions == ()
    bench.clock.advance(2)
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


def test_nonsense_tenants_are_refused(bench: Bench) -> None:
    bench.tenant()
    for tenant_id, limits in (
        ("", {}),
        (" a", {}),
        ("a\n", {}),
        ("x" * 201, {}),
        ("b", {"cpu": 1}),
        ("b", {"concurrent_runs": 0}),
    ):
        with pytest.raises(InputError):
            bench.engine.tenants.create(tenant_id, limits=limits)
    with pytest.raises(Conflict):
        bench.engine.tenants.create("acme")
