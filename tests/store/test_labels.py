"""Labels: only nodes with the required labels take an action, and no other action waits for it."""

import pytest
from tests.store.bench import Bench, node_id

from lodger.engine.core.errors import InputError
from lodger.engine.store.lifecycle import claims, leases
from lodger.engine.store.lifecycle.claims import Lease
from lodger.engine.store.queue import placements, ready_queue


def _register(bench: Bench, name: str, *labels: str) -> Lease:
    """Register a node with labels; return its lease."""
    with bench.engine.context.database.write() as connection:
        bench.nodes[name] = leases.register(
            bench.engine.context, connection, node_id(name), name, bench.clock.us, labels=labels
        )
    return bench.nodes[name]


def _claimed(bench: Bench, node: str, free: int = 100) -> list[str | None]:
    """Claim for a node; return the schedules of what it got."""
    return [claim.schedule_id for claim in bench.claim(free, node)]


def test_only_a_node_that_carries_the_labels_runs_a_schedule(bench: Bench) -> None:
    bench.tenant()
    heavy = bench.schedule(name="heavy", labels="highmem")
    both = bench.schedule(name="both", labels=["eu", "highmem"])
    plain = bench.schedule(name="plain")
    for name, labels in (("plain", ()), ("big", ("highmem",)), ("all", ("eu", "highmem", "gpu"))):
        _register(bench, name, *labels)
    bench.clock.advance(60)
    bench.tick()
    assert heavy.conduct["labels"] == ["highmem"]
    assert _claimed(bench, "plain") == [plain.id]
    assert _claimed(bench, "big") == [heavy.id]
    assert _claimed(bench, "big") == []
    assert _claimed(bench, "all") == [both.id]


def test_a_tenants_labels_hold_for_what_waits_already_and_are_lifted_at_once(bench: Bench) -> None:
    bench.tenant()
    mine = bench.schedule(labels="highmem")
    bench.clock.advance(60)
    bench.tick()
    bench.engine.tenants.edit("acme", labels=["eu"])
    _register(bench, "big", "highmem")
    assert _claimed(bench, "big") == []
    bench.engine.tenants.edit("acme", labels=None)
    assert _claimed(bench, "big") == [mine.id]


@pytest.mark.parametrize(
    "labels", ["High", "a b/€", ["x" * 64], "node:", [""] * 2 + ["-a"], [f"l{n}" for n in range(21)], [1]]
)
def test_what_is_no_label_is_refused(bench: Bench, labels: object) -> None:
    bench.tenant()
    with pytest.raises(InputError) as refused:
        bench.schedule(labels=labels)
    assert refused.value.code == "label_invalid"
    with pytest.raises(InputError):
        bench.engine.tenants.edit("acme", labels=labels)  # type: ignore[arg-type]  # as people give it


def test_requests_and_repeats_require_what_their_schedule_does(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(labels="highmem")
    asked = bench.engine.actions.run_now(schedule.tenant_id, schedule.id)
    assert asked.requires == ("highmem",)
    assert bench.claim() == []
    made = bench.engine.actions.backfill(schedule.tenant_id, schedule.id, start=_at(bench, -130), end=_at(bench, 0))
    assert {bench.engine.actions.get(None, each).requires for each in made.actions} == {("highmem",)}
    _register(bench, "big", "highmem")
    bench.commit(*bench.claim(node="big"), node="big")
    again = bench.engine.actions.replay(None, asked.id)
    assert again.requires == ("highmem",)
    assert bench.claim() == []


def _at(bench: Bench, seconds: int):  # type: ignore[no-untyped-def]  # a datetime
    from lodger.engine.core.clock import from_us

    return from_us(bench.clock.us + seconds * 1_000_000)


def test_run_now_on_a_named_node(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(overlap="allow")
    asked = bench.engine.actions.run_now(schedule.tenant_id, schedule.id, node="n2")
    assert (asked.node_key, asked.requires) == ("n2", ("node:n2",))
    assert bench.claim(node="n1") == []
    assert [claim.action_id for claim in bench.claim(node="n2")] == [asked.id]


def test_what_a_node_carries_may_change_while_it_works(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule(labels="gpu")
    bench.clock.advance(60)
    bench.tick()
    lease = bench.lease()
    assert bench.claim() == []
    with bench.engine.context.database.write() as connection:
        bench.nodes["n1"] = leases.relabel(connection, lease, ["gpu"])
    bench.renew()
    with bench.engine.context.database.read() as connection:
        (living,) = placements.living_nodes(bench.engine.context, connection, bench.clock.us)
    assert set(living.labels.split()) == {"gpu", "node:n1"}
    assert _claimed(bench, "n1") == [schedule.id]


def test_without_the_check_of_labels_any_node_takes_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall taken away: what the other tests see is this check and nothing else."""
    bench.tenant()
    schedule = bench.schedule(labels="highmem")
    bench.clock.advance(60)
    bench.tick()
    monkeypatch.setattr(ready_queue, "carries", lambda _labels, _requires: True)
    assert _claimed(bench, "n1") == [schedule.id]
    assert claims.Lease("x", 1).labels == frozenset()
