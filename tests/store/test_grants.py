"""Grants in the ledger: what a claim carries is what tenant, version and schedule hold at that moment."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from tests.store.bench import Bench

from lodger.engine.core.access.grants import DEFAULT, parse
from lodger.engine.core.errors import InputError, NotFound
from lodger.engine.node.executors.host_side import ledger_addresses

T = TypeVar("T")


def held(bench: Bench) -> set[str]:
    """Return what the next run holds, of a few things asked."""
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.run()
    grants = claim.grants
    asked = {
        "kv": grants.of_kv(write=True),
        "kv:read": grants.of_kv(write=False),
        "collections": grants.of_rows("notes", exposed=False, write=True),
        "sets:read": grants.of_rows("orders", exposed=True, write=False),
        "sets:write": grants.of_rows("orders", exposed=True, write=True),
        "events": grants.of_events,
    }
    return {name for name, may in asked.items() if may}


BY_DEFAULT = {"kv", "kv:read", "collections", "sets:read", "events"}


def test_a_claim_carries_what_the_tenant_holds_now(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    assert held(bench) == BY_DEFAULT
    bench.engine.grants.give("acme", "sets:write:orders")
    assert held(bench) == BY_DEFAULT | {"sets:write"}
    bench.engine.grants.take("acme", "kv", "collections")
    assert held(bench) == {"sets:read", "sets:write", "events"}
    bench.engine.grants.keep("acme", ["kv:read"])
    assert held(bench) == {"kv:read"}
    bench.engine.grants.keep("acme", None)
    assert held(bench) == BY_DEFAULT


def test_a_version_and_a_schedule_narrow_and_never_widen(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    source = "export default () => 2"
    first = bench.engine.scripts.put("acme", "job", source, grants=["kv", "sets:write"])
    assert held(bench) == {"kv", "kv:read", "sets:read"}
    assert bench.engine.scripts.put("acme", "job", source) == first, "nothing new"
    later = bench.engine.scripts.put("acme", "job", source + ";")
    assert later.grants == ("sets:write", "kv"), "a new source does not widen what its script was left"
    bench.engine.schedules.edit("acme", "s", grants=["kv:read", "events"])
    assert held(bench) == {"kv:read"}
    bench.engine.schedules.edit("acme", "s", rules="every 30s")
    assert bench.engine.schedules.get("acme", "s").grants == ("kv:read", "events"), (
        "an edit of something else keeps them"
    )
    bench.engine.schedules.edit("acme", "s", grants=None)
    bench.engine.scripts.put("acme", "job", source, grants=None)
    assert held(bench) == BY_DEFAULT


def test_a_tenant_begins_with_more_and_a_deleted_one_leaves_nothing(bench: Bench) -> None:
    bench.engine.tenants.create("one", grants=["sets:write"], people=["Ann@one.example", "*@one.example"])
    assert set(bench.engine.grants.list("one")) == {*parse(DEFAULT.split()).shown(), "sets:write"}
    assert bench.engine.tenants.get("one").people == ("*@one.example", "ann@one.example")
    bench.engine.tenants.delete("one")
    assert bench.scalar("SELECT count(*) FROM lodger_tenants WHERE grants IS NOT NULL OR people IS NOT NULL") == 0
    assert bench.engine.tenants.create("one").grants is None


def test_what_makes_no_sense_is_refused_and_nothing_changes(bench: Bench) -> None:
    bench.tenant()
    bench.schedule()
    for wrong in (
        lambda: bench.engine.grants.give("acme", "kv", "everything"),
        lambda: bench.engine.grants.keep("acme", ["fetch:user@host"]),
        lambda: bench.engine.grants.people("acme", ["ann@one.example", "*"]),
        lambda: bench.engine.grants.people("acme", ["a@b\nc"]),
        lambda: bench.engine.tenants.create("two", grants=["nothing"]),
        lambda: bench.engine.tenants.create("two", people=["nobody"]),
        lambda: bench.engine.scripts.put("acme", "job", "2", grants=["nothing"]),
        lambda: bench.engine.schedules.edit("acme", "s", grants=["nothing"]),
        lambda: bench.engine.grants.keep("acme", [f"fetch:h{number}.example" for number in range(501)]),
    ):
        with pytest.raises(InputError) as refused:
            wrong()
        assert refused.value.fix
    with pytest.raises(NotFound):
        bench.engine.grants.give("nobody", "kv")
    with pytest.raises(NotFound):
        bench.engine.grants.list("nobody")
    assert held(bench) == BY_DEFAULT


def test_the_ledger_knows_a_tenants_own_people(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("other")
    bench.engine.grants.people("acme", ["ann@acme.example", "*@staff.example"])
    bench.engine.grants.people("other", ["*@other.example"])

    async def read(work: Callable[[Connection], T]) -> T:
        with bench.engine.context.database.read() as connection:
            return work(connection)

    asked = ["Ann@acme.example", "bob@acme.example", "x@staff.example", "x@other.example", "x@sub.staff.example"]
    assert asyncio.run(ledger_addresses(read, "acme", asked)) == {"Ann@acme.example", "x@staff.example"}
    assert asyncio.run(ledger_addresses(read, "nobody", asked)) == set()
