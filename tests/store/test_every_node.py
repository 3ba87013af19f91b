"""``placement: every_node``: one action per living node, each in a line of its own."""

from datetime import timedelta

import pytest
from tests.store.bench import THROWN, Bench

from lodger.engine.core.clock import from_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.ids import PLATFORM
from lodger.engine.store.queue import placements
from lodger.engine.store.records import Action, Schedule


def _schedule_everywhere(bench: Bench, rules: str = "every 60s", **terms: object) -> Schedule:
    bench.engine.scripts.put(PLATFORM, "job", "export default () => 1")
    return bench.schedule(rules, PLATFORM, "everywhere", placement="every_node", **terms)


def _nodes_and_states(found: list[Action]) -> list[tuple[str, str]]:
    return sorted((action.node_key, action.state) for action in found)


def _tick_after(bench: Bench, *names: str) -> None:
    """Register nodes, let a minute pass in which they live, and tick."""
    for name in names:
        bench.lease(name)
    bench.clock.advance(60)
    for name in names:
        bench.renew(name)
    bench.tick()


def test_each_living_node_runs_it_once(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench)
    _tick_after(bench, "a", "b", "c")
    assert _nodes_and_states(bench.actions(schedule)) == [("a", "ready"), ("b", "ready"), ("c", "ready")]
    for name in ("b", "c", "a"):
        (claim,) = bench.claim(node=name)
        bench.commit(claim, node=name)
        assert bench.claim(node=name) == []
    assert _nodes_and_states(bench.actions(schedule)) == [("a", "done"), ("b", "done"), ("c", "done")]


def test_a_node_that_is_gone_at_the_slot_gets_none_and_no_node_at_all_says_so(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench)
    bench.lease("a")
    bench.lease("b")
    bench.clock.advance(60)
    bench.renew("b")
    bench.tick()
    assert _nodes_and_states(bench.actions(schedule)) == [("b", "ready")]
    bench.clock.advance(3600)
    bench.tick()
    gap = bench.actions(schedule)[-1]
    assert {action.reason for action in bench.actions(schedule) if action.state == "skipped"} == {"no_node"}
    assert gap.node_key == ""


def test_only_nodes_that_carry_the_labels_are_meant(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench, labels="node:b")
    _tick_after(bench, "a", "b")
    assert _nodes_and_states(bench.actions(schedule)) == [("b", "ready")]


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_a_slow_node_holds_up_no_other_one(bench: Bench, overlap: str) -> None:
    schedule = _schedule_everywhere(bench, overlap=overlap)
    for _ in range(3):
        for name in ("slow", "quick"):
            bench.lease(name)
            bench.renew(name)
        bench.clock.advance(4)
        for name in ("slow", "quick"):
            bench.renew(name)
        bench.clock.advance(56)
        for name in ("slow", "quick"):
            bench.nodes.pop(name)
            bench.lease(name)
        bench.tick()
        (claim,) = bench.claim(node="quick")
        bench.commit(claim, node="quick")
        bench.claim(node="slow")
    mine = [action for action in bench.actions(schedule) if action.node_key == "quick"]
    assert [action.state for action in mine] == ["done", "done", "done"]


def test_a_retry_of_one_node_is_superseded_by_its_own_slot_alone(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench, retry={"attempts": 3, "backoff_s": 3600})
    _tick_after(bench, "a", "b")
    for name in ("a", "b"):
        (claim,) = bench.claim(node=name)
        bench.commit(claim, node=name, finished=THROWN)
    bench.clock.advance(60)
    bench.renew("b")
    bench.tick()
    states = {(action.node_key, action.reason or action.state) for action in bench.actions(schedule)}
    assert states == {("a", "waiting_retry"), ("b", "superseded"), ("b", "ready")}


def test_what_waits_for_a_node_that_never_comes_back_is_given_up_with_its_reason(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench)
    _tick_after(bench, "a", "b")

    def give_up() -> int:
        with bench.engine.context.database.write() as connection:
            gone = placements.abandoned_queues(bench.engine.context, connection, bench.clock.us)
            return len(placements.skip_abandoned(connection, gone, bench.clock.us))

    bench.clock.advance(placements.PATIENCE_US // 1_000_000)
    assert give_up() == 0, "a restart may take so long"
    bench.clock.advance(30)
    bench.renew("b")
    assert give_up() == 1
    (given_up,) = [action for action in bench.actions(schedule) if action.node_key == "a"]
    assert (given_up.state, given_up.reason) == ("skipped", "node_gone")
    assert give_up() == 0


def test_what_somebody_bound_to_a_node_by_label_is_not_given_up(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(labels="node:gone")
    bench.clock.advance(60)
    bench.tick()
    bench.clock.advance(10_000)
    with bench.engine.context.database.write() as connection:
        gone = placements.abandoned_queues(bench.engine.context, connection, bench.clock.us)
        assert placements.skip_abandoned(connection, gone, bench.clock.us) == []
    assert bench.states(schedule) == ["ready"]


def test_a_customers_schedule_cannot_stand_on_every_node(bench: Bench) -> None:
    bench.tenant()
    with pytest.raises(InputError) as refused:
        bench.schedule(placement="every_node")
    assert refused.value.code == "placement_refused"
    bench.schedule()
    with pytest.raises(InputError):
        bench.engine.schedules.edit("acme", "s", placement="every_node")
    with pytest.raises(InputError) as unknown:
        bench.schedule(name="t", placement="everywhere")
    assert unknown.value.code == "placement_invalid"


def test_a_range_of_the_past_is_not_run_on_every_node(bench: Bench) -> None:
    schedule = _schedule_everywhere(bench)
    now = from_us(bench.clock.us)
    with pytest.raises(InputError) as refused:
        bench.engine.actions.backfill(schedule.tenant_id, schedule.id, start=now - timedelta(hours=1), end=now)
    assert refused.value.code == "backfill_every_node"
