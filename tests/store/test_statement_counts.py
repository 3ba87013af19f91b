"""How many statements a batch of a hundred actions costs on each database: a fixed number, however few or many its rows are."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from tests.store.bench import THROWN, Bench

#: Tenants that a batch's actions belong to.
TENANTS = 10
#: Most statements of a tick, a claim and a finish, once revisions and versions are known. The first batch reads each once more.
MAX_TICK, MAX_CLAIM = {"sqlite": 4, "postgresql": 5}, 7
MAX_FINISH = {"sqlite": 6, "postgresql": 7}


def counted(bench: Bench, work: Callable[[], object]) -> int:
    """Return how many statements some work sends, without what begins and sets up its transaction."""
    database, sent = bench.engine.context.database, 0

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        nonlocal sent
        sent += not statement.startswith(("BEGIN", "SET LOCAL"))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return sent


def batch(bench: Bench, actions: int) -> tuple[int, int, int]:
    """Return the statements of a tick, a claim and a finish of so many actions."""
    bench.clock.advance(60)
    ticked = counted(bench, bench.tick)
    claimed: list[Any] = []
    claiming = counted(bench, lambda: claimed.extend(bench.claim(actions)))
    assert len(claimed) == actions
    return ticked, claiming, counted(bench, lambda: bench.commit(*claimed))


def test_a_batch_of_a_hundred_costs_a_fixed_number_of_statements(
    bench: Bench, kind: str, record_property: Callable[[str, object], None]
) -> None:
    actions = 100
    for number in range(TENANTS):
        tenant = bench.tenant(f"t{number}", concurrent_runs=actions)
        for each in range(actions // TENANTS):
            bench.schedule(tenant_id=tenant, name=f"s{each}")
    bench.lease()
    tick, claim, finish = batch(bench, actions)
    assert tick <= MAX_TICK[kind] + 1
    assert claim <= MAX_CLAIM + 1
    assert finish <= MAX_FINISH[kind] + 1
    tick, claim, finish = batch(bench, actions)
    record_property("statements", f"{kind}: tick {tick}, claim {claim}, finish {finish}")
    assert tick <= MAX_TICK[kind]
    assert claim <= MAX_CLAIM
    assert finish <= MAX_FINISH[kind]


def test_a_tick_reads_the_revisions_of_failing_schedules_in_one_statement(bench: Bench, kind: str) -> None:
    bench.tenant(concurrent_runs=TENANTS)
    for number in range(TENANTS):
        bench.schedule(name=f"s{number}")
    bench.lease()
    bench.clock.advance(60)
    bench.tick()
    bench.commit(*bench.claim(TENANTS), finished=THROWN)
    bench.engine.context.revision_cache.forget("acme")
    bench.clock.advance(60)
    assert counted(bench, bench.tick) <= MAX_TICK[kind] + 1


def test_what_some_tenants_leave_others_take_in_one_question_more(bench: Bench) -> None:
    """Of five tenants the first four have one action each: the fifth fills the rest, and no tenant is asked by itself."""
    for number in range(5):
        tenant = bench.tenant(f"t{number}", concurrent_runs=100)
        for each in range(60 if number == 4 else 1):
            bench.schedule(tenant_id=tenant, name=f"s{each}")
    bench.lease()
    bench.clock.advance(60)
    bench.tick()
    claimed: list[Any] = []
    statements = counted(bench, lambda: claimed.extend(bench.claim(50)))
    assert statements <= MAX_CLAIM + 2
    assert sorted(claim.tenant_id for claim in claimed) == ["t0", "t1", "t2", "t3"] + ["t4"] * 46
