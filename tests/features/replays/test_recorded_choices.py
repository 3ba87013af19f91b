"""Which attempts are recorded: a node reads the choices of tenants with a beginning attempt, of many at once."""

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection
from tests.store.bench import Bench

from lodger.engine.core.errors import Unavailable
from lodger.engine.features.replays import kept
from lodger.engine.features.replays.kept import KeptRecords
from lodger.engine.features.replays.recording import Recording


def test_only_the_tenants_whose_attempts_begin_are_read_for_and_together(bench: Bench) -> None:
    for number in range(6):
        tenant = bench.tenant(f"t{number}")
        bench.engine.scripts.record(tenant, "job", "all" if number else "none")
        bench.engine.run_in(tenant, "job", 0)
    claims = {each.tenant_id: each for each in bench.claim()}
    found: list[Any] = []
    away = False

    async def read(work: Callable[[Connection], Any]) -> Any:
        await asyncio.sleep(0)
        if away:
            raise Unavailable("database_unreachable", place="ledger", reason="it is away")
        with bench.engine.context.database.read() as connection:
            found.append(work(connection))
        return found[-1]

    records = KeptRecords(read, bench.clock)

    async def begin(*tenants: str) -> list[bool | None]:
        made: list[Recording | None] = await asyncio.gather(*(records.recording(claims[each]) for each in tenants))
        return [None if each is None else each.always for each in made]

    async def go() -> None:
        nonlocal away
        assert await begin("t0") == [None]
        assert [[*choices] for choices, _shadows in found] == [[("t0", "job")]]
        assert await begin(*["t1", "t2", "t3", "t0"] * 5) == [True, True, True, None] * 5
        assert len(found) <= 3
        assert {tenant for choices, _shadows in found for tenant, _name in choices} == {"t0", "t1", "t2", "t3"}
        # It is as fresh as promised, and what is known stays known while the ledger is away; what is not is not recorded.
        bench.engine.scripts.record("t1", "job", "failed")
        bench.clock.advance(kept.FRESH_S)
        assert await begin("t1") == [False]
        bench.engine.scripts.record("t1", "job", "none")
        bench.clock.advance(kept.FRESH_S)
        away = True
        assert await begin("t1", "t5") == [False, None]
        away = False
        bench.clock.advance(kept.FRESH_S)
        assert await begin("t1", "t5") == [None, True]

    asyncio.run(go())


def test_a_first_run_of_a_script_with_a_shadow_is_compared(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("other")
    for tenant in ("acme", "other"):
        bench.engine.scripts.put(tenant, "job", "export default () => 2", shadow=3)
        bench.engine.run_in(tenant, "job", 0)
    claim = next(each for each in bench.claim() if each.tenant_id == "acme")
    found: list[Any] = []

    async def read(work: Callable[[Connection], Any]) -> Any:
        with bench.engine.context.database.read() as connection:
            found.append(work(connection))
        return found[-1]

    recording = asyncio.run(KeptRecords(read, bench.clock).recording(claim))
    assert recording is not None
    assert recording.shadow is not None
    assert [*found[0][1]] == [("acme", "job")]
