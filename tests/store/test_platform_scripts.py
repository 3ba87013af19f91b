"""Scripts that the platform owns: any tenant may bind what is offered, with typed params, and nothing else of the platform's."""

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, InputError, NotFound
from lodger.engine.core.ids import PLATFORM
from lodger.engine.node.executors.by_kind import ByKind

FIELDS = {"days": {"type": "integer", "min": 1, "default": 7}, "to": {"type": "text", "required": True}}


def _put_offered(bench: Bench, source: str = "export default () => 1", **more: object) -> None:
    bench.engine.scripts.put(PLATFORM, "cleanup", source, **{"params": FIELDS, "offered": True, **more})  # type: ignore[arg-type]  # forwarded


def _create_schedule(bench: Bench, tenant_id: str = "acme", **more: object):  # type: ignore[no-untyped-def]  # a schedule
    given = {"script": "@cleanup", "rules": "every 60s", "params": {"to": "me"}, **more}
    return bench.engine.schedules.create(tenant_id, "s", **given)  # type: ignore[arg-type]  # forwarded


def test_a_tenant_binds_it_by_name_and_runs_the_platforms_newest_version(bench: Bench) -> None:
    bench.tenant()
    _put_offered(bench)
    schedule = _create_schedule(bench)
    assert schedule.script == "@cleanup"
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.run()
    assert (claim.tenant_id, claim.script_name, claim.script_version) == ("acme", "@cleanup", 1)
    assert claim.modules["main.js"] == "export default () => 1"
    _put_offered(bench, "export default () => 2")
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.run()
    assert (claim.script_version, claim.modules["main.js"]) == (2, "export default () => 2")


def test_params_are_checked_where_it_is_bound_and_where_it_is_asked_for(bench: Bench) -> None:
    bench.tenant()
    _put_offered(bench)
    for params in (None, {"to": 1}, {"to": "me", "days": 0}, {"to": "me", "more": 1}):
        with pytest.raises(InputError) as refused:
            _create_schedule(bench, params=params)
        assert refused.value.code == "params_invalid"
    schedule = _create_schedule(bench)
    with pytest.raises(InputError):
        bench.engine.schedules.edit("acme", "s", params={"days": 1})
    with pytest.raises(InputError):
        bench.engine.actions.run_now(schedule.tenant_id, schedule.id, params={"to": []})
    with pytest.raises(InputError):
        bench.engine.run_in("acme", "@cleanup", 0, params={})
    assert bench.engine.schedules.get("acme", "s").revision == 1
    assert bench.engine.run_in("acme", "@cleanup", 0, params={"to": "x"}).script == "@cleanup"


def test_the_version_that_runs_checks_and_completes_the_params(bench: Bench) -> None:
    import asyncio

    from tests.node.harness import Script

    bench.tenant()
    _put_offered(bench)
    _create_schedule(bench)
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    script = Script()
    asyncio.run(ByKind({"script": script}).execute(claim))
    assert script.seen[0].params == {"to": "me", "days": 7}
    bench.commit(claim)
    _put_offered(bench, params={"to": {"type": "integer"}})
    bench.clock.advance(60)
    bench.tick()
    (claim,) = bench.claim()
    ended = asyncio.run(ByKind({"script": script}).execute(claim))
    assert (ended.outcome.value, len(script.seen)) == ("bad_request", 1)
    assert ended.error is not None
    assert "to" in ended.error.message


def test_what_is_not_offered_cannot_be_bound(bench: Bench) -> None:
    bench.tenant()
    _put_offered(bench, offered=False)
    for name in ("@cleanup", "cleanup", "@", "@@cleanup", "@nothing"):
        with pytest.raises(NotFound):
            _create_schedule(bench, script=name)
        with pytest.raises(NotFound):
            bench.engine.run_in("acme", name, 0, params={"to": "me"})
    assert bench.engine.scripts.offered() == []


def test_an_offer_taken_back_ends_no_binding(bench: Bench) -> None:
    bench.tenant()
    bench.tenant("late")
    _put_offered(bench)
    _create_schedule(bench)
    assert [script.name for script in bench.engine.scripts.offered()] == ["cleanup"]
    _put_offered(bench, offered=False)
    assert bench.engine.schedules.edit("acme", "s", params={"to": "you"}).revision == 2
    with pytest.raises(NotFound):
        _create_schedule(bench, "late")
    bench.clock.advance(60)
    bench.tick()
    assert len(bench.claim()) == 1


def test_names_with_the_sign_of_the_platform_are_nobodys(bench: Bench) -> None:
    bench.tenant()
    for name in ("@cleanup", "@"):
        with pytest.raises(InputError) as refused:
            bench.engine.scripts.put("acme", name, "1")
        assert refused.value.code == "script_name_invalid"
    with pytest.raises(InputError) as refused:
        bench.engine.scripts.put("acme", "mine", "1", offered=True)
    assert refused.value.code == "not_offerable"
    for tenant in ("@platform", "@x", "@"):
        with pytest.raises((InputError, Conflict)):
            bench.engine.tenants.create(tenant)
    with pytest.raises(Conflict) as stays:
        bench.engine.tenants.delete(PLATFORM)
    assert stays.value.code == "platform_stays"
    assert [tenant.id for tenant in bench.engine.tenants.list()] == ["acme"]


def test_the_same_content_with_other_fields_is_another_version(bench: Bench) -> None:
    _put_offered(bench)
    _put_offered(bench)
    assert bench.engine.scripts.get(PLATFORM, "cleanup").version == 1
    _put_offered(bench, params=None)
    assert bench.engine.scripts.get(PLATFORM, "cleanup").version == 2
