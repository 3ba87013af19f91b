"""Plans: limits that tenants refer to, in effect at once; and the zone of schedules that name none. On both databases."""

from typing import Any

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import Conflict, InputError, NotFound

EVERY_DAY = "every day at 09:00"


def limits(bench: Bench, tenant: str) -> dict[str, Any]:
    return bench.engine.tenants.get(tenant).limits_in_effect


def test_a_changed_plan_holds_for_its_tenants_and_their_own_limits_come_before(bench: Bench) -> None:
    engine = bench.engine
    engine.plans.put("free", {"schedules": 1, "runs_per_day": 5, "concurrent_runs": 2})
    engine.tenants.create("a", plan="free")
    engine.tenants.create("b", limits={"runs_per_day": 9, "concurrent_runs": 1}, plan="free")
    engine.tenants.create("c")
    assert limits(bench, "a") == {"schedules": 1, "runs_per_day": 5, "concurrent_runs": 2}
    assert limits(bench, "b") == {"schedules": 1, "runs_per_day": 9, "concurrent_runs": 1}
    assert {each.id for each in engine.tenants.list(filter="plan:free")} == {"a", "b"}
    for tenant in ("a", "c"):
        engine.scripts.put(tenant, "s", "export default () => 1", force=True)
        engine.schedules.create(tenant, "one", script="s", rules=EVERY_DAY)
    engine.schedules.create("c", "two", script="s", rules=EVERY_DAY)
    with pytest.raises(Conflict, match="limit of 1 schedules"):
        engine.schedules.create("a", "two", script="s", rules=EVERY_DAY)
    engine.plans.put("tiny", {"cpu_ms": 100})
    engine.tenants.edit("c", plan="tiny")
    with pytest.raises(InputError) as above:
        engine.schedules.create("c", "three", script="s", rules=EVERY_DAY, limits={"cpu_ms": 200})
    assert above.value.code == "limit_above_tenant"
    engine.plans.put("free", {"schedules": 2, "runs_per_day": 6, "concurrent_runs": 1})
    assert limits(bench, "a") == {"schedules": 2, "runs_per_day": 6, "concurrent_runs": 1}
    engine.schedules.create("a", "two", script="s", rules=EVERY_DAY)
    budgets = {each.budget: each.limit for each in engine.tenants.usage("a").budgets}
    assert budgets["runs"] == 6
    for _ in range(2):
        engine.actions.run_now("a", "one")
        engine.actions.run_now("a", "two")
    assert len(bench.claim(10)) == 1, "one at once, as the changed plan says"
    written = [each.verb for each in engine.audit.list() if each.verb.startswith("plans.")]
    assert written == ["plans.put"] * 3
    with pytest.raises(Conflict) as used:
        engine.plans.delete("free")
    assert used.value.code == "plan_in_use"
    engine.tenants.edit("a", plan=None)
    engine.tenants.delete("b")
    assert limits(bench, "a") == {}
    engine.plans.delete("free")
    assert [each.name for each in engine.plans.list()] == ["tiny"]


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("a/b", {}, "plan_name_invalid"),
        ("", {}, "plan_name_invalid"),
        ("free", {"runz": 1}, "limit_unknown"),
        ("free", {"concurrent_runs": 0}, "limit_out_of_range"),
        ("free", {"schedules": "many"}, "limit_out_of_range"),
    ],
)
def test_a_plan_that_no_tenant_could_have_is_refused(bench: Bench, name: str, given: Any, code: str) -> None:
    with pytest.raises(InputError) as refused:
        bench.engine.plans.put(name, given)
    assert refused.value.code == code
    assert bench.engine.plans.list() == []


def test_unknown_plans_and_zones_are_refused(bench: Bench) -> None:
    tenants = bench.engine.tenants
    tenants.create("a")
    for change in (tenants.create, tenants.edit):
        with pytest.raises(NotFound, match="no plan"):
            change("b" if change == tenants.create else "a", plan="gone")
        with pytest.raises(InputError) as unknown:
            change("b" if change == tenants.create else "a", tz="Mars/Olympus")
        assert unknown.value.code == "zone_unknown"
    assert [each.id for each in tenants.list()] == ["a"]


@pytest.mark.parametrize(
    ("rules", "tz", "zone"),
    [
        (EVERY_DAY, None, "Asia/Tokyo"),
        ("0 9 * * *", None, "Asia/Tokyo"),
        (EVERY_DAY, "Europe/Berlin", "Europe/Berlin"),
        ("every day at 09:00 America/New_York", None, "America/New_York"),
    ],
)
def test_a_schedule_without_a_zone_is_in_that_of_its_tenant(
    bench: Bench, rules: str, tz: str | None, zone: str
) -> None:
    engine = bench.engine
    engine.tenants.create("a", tz="Asia/Tokyo")
    engine.scripts.put("a", "s", "export default () => 1", force=True)
    wanted = engine.schedules.preview(rules, tz=zone, n=1).slots
    assert engine.schedules.preview(rules, tz=tz, n=1, tenant_id="a").slots == wanted
    made = engine.schedules.create("a", "d", script="s", rules=rules, tz=tz)
    assert (made.next_at,) == wanted
    engine.tenants.edit("a", tz="Europe/Paris")
    assert engine.schedules.get("a", "d").next_at == made.next_at, "a schedule keeps the zone that it was created in"
    assert engine.schedules.edit("a", "d", tz=None, rules=EVERY_DAY).rules.tz == "Europe/Paris"
    engine.tenants.edit("a", tz=None)
    assert engine.schedules.edit("a", "d", tz=None).rules.tz is None
