"""What does not fit a node waits and says why; what is behind it and fits goes on."""

from tests.store.bench import Bench

from lodger.engine.core.execution import Claim
from lodger.engine.policy.placement import Room
from lodger.engine.store.lifecycle import claims
from lodger.sandbox.limits import MIB


def claim_within(bench: Bench, room: Room) -> list[Claim]:
    """Claim for a node with this room."""
    lease = bench.lease()
    with bench.engine.context.database.write() as connection:
        return claims.claim(bench.engine.context, connection, lease, room.slots, bench.clock.us, room)()


def waiting_reasons(bench: Bench) -> list[str | None]:
    return sorted(action.reason or "" for action in bench.actions() if action.state == "ready")


def create_schedules(bench: Bench, number: int, tenant_id: str = "acme", **terms: object) -> None:
    for each in range(number):
        bench.schedule(name=f"{sorted(terms)}{each}", tenant_id=tenant_id, **terms)


def test_memory_is_reserved_by_the_limit_of_each_run(bench: Bench) -> None:
    bench.tenant()
    create_schedules(bench, 4)
    create_schedules(bench, 4, limits={"memory_bytes": 8 * MIB})
    bench.clock.advance(60)
    bench.tick()
    taken = claim_within(bench, Room(20, 20, 150 * MIB))
    reserved = sum(claim.limits.memory_bytes for claim in taken)
    assert 150 * MIB - 8 * MIB < reserved <= 150 * MIB, "as much as fits, whatever stands in front"
    assert {"node_memory"} == set(waiting_reasons(bench))
    assert len(taken) + len(waiting_reasons(bench)) == 8


def test_long_runs_have_their_share_and_short_ones_pass_by(bench: Bench) -> None:
    bench.tenant("slow", wall_ms=60_000)
    bench.tenant("quick", wall_ms=60_000)
    create_schedules(bench, 8, "slow")
    create_schedules(bench, 2, "quick", limits={"wall_ms": 1000})
    bench.clock.advance(60)
    bench.tick()
    taken = claim_within(bench, Room(6, 3, 1 << 40))
    assert [claim.tenant_id for claim in taken].count("slow") == 3
    assert [claim.tenant_id for claim in taken].count("quick") == 2
    assert claim_within(bench, Room(1, 0, 1 << 40)) == []
    assert set(waiting_reasons(bench)) == {"node_long"}
    assert len(claim_within(bench, Room(5, 3, 1 << 40))) == 3


def test_tenants_whose_runs_do_not_fit_do_not_stand_in_the_way_of_those_whose_do(bench: Bench) -> None:
    for number in range(10):
        bench.tenant(f"a{number}", wall_ms=60_000)
        create_schedules(bench, 1, f"a{number}")
    bench.tenant("zeta")
    create_schedules(bench, 1, "zeta")
    bench.clock.advance(60)
    bench.tick()
    assert [claim.tenant_id for claim in claim_within(bench, Room(1, 0, 1 << 40))] == ["zeta"]


def test_a_reason_to_wait_stays_as_the_reason_why_it_was_late(bench: Bench) -> None:
    bench.tenant(wall_ms=60_000)
    schedule = bench.schedule()
    bench.clock.advance(60)
    bench.tick()
    claim_within(bench, Room(1, 0, 1 << 40))
    bench.clock.advance(5)
    bench.run()
    (action,) = bench.actions(schedule)
    assert (action.state, action.reason, action.lateness_ms) == ("done", "node_long", 5000)
