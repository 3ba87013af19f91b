"""A storm of slots at one instant: each slot has its row and runs once, and a quiet tenant's does not wait for it."""

import pytest
from tests.node.alone import Hanging, bench, looping
from tests.node.harness import SETTINGS

from lodger.bench import storm
from lodger.bench.storm import Figures, measure
from lodger.engine.core.clock import from_us
from lodger.engine.core.events import LedgerChanged
from lodger.engine.node.node_events import Claimed, Ticked
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.store.lifecycle import tick
from lodger.engine.testing.clock import FakeClock


def test_every_slot_of_a_storm_is_accounted_for_beside_a_quiet_tenant(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storm, "ALONE", 1)
    found = measure(300, 30, url)
    assert (found.rows, found.done) == (300, 300)
    assert [each.missed for each in found.budgets[:2]] == [0, 0], "each slot has a row, and ran"


def test_a_broken_promise_is_said() -> None:
    kept = Figures(100, 10, 100, 100, 1.0, 0.9, 2.0, (1.0, 2.0), (50.0, 90.0), 0)
    assert [each.missed for each in kept.budgets] == [0] * 5
    broken = Figures(100, 10, 99, 98, 1.0, 1.2, 2.0, (1.0, 2.0), (1500.0, 2000.0), 1)
    assert all(each.missed for each in broken.budgets)


async def test_a_quiet_tenants_slot_is_ticked_and_claimed_with_the_second_tick(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came due last: oldest first it would be the last of 61."""
    monkeypatch.setattr(tick, "TICK_BATCH", 8)

    settings = SETTINGS.model_copy(update={"slots": 64})
    async with bench(url, settings, clock := FakeClock()) as alone, looping(alone, Hanging()) as (loop, _runs):
        claimed, ticked = alone.heard(Claimed), alone.heard(Ticked)
        await alone.register()
        for tenant in ("busy", "quiet"):
            await alone.engine.tenants.create(tenant)
            await alone.engine.scripts.put(tenant, "job", "export default () => 1")
        now_us = clock.now_us()
        for tenant, number, ago_s in (("acme", 30, 900), ("busy", 30, 900), ("quiet", 1, 60)):
            for each in range(number):
                await alone.engine.schedules.create(
                    tenant, f"s{each}", script="job", rules=f"every {ago_s}s",
                    first_after=from_us(now_us - ago_s * 1_000_000),
                )  # fmt: skip
        alone.bus.publish(LedgerChanged())
        while len(ticked) < 3:
            clock.move_to(clock.now_us() + 50_000)
            await loop.round()
        tenants = [{schedule.tenant_id for schedule in each.schedules} for each in ticked]
        assert [len(each.schedules) for each in ticked] == [8, 8, 8]
        assert ["quiet" in each for each in tenants] == [False, True, False]
        firsts = [{claim.tenant_id for claim in each.claims} for each in claimed[:2]]
        assert "quiet" in firsts[1], firsts
        assert tenants[1] - {"quiet"}, "the oldest go on beside it: no tenant with many waits for those with few"


async def test_a_tenant_without_an_attempt_does_not_wait_for_slots_that_long_computations_hold(url: str) -> None:
    settings = SETTINGS.model_copy(update={"slots": 2, "concurrent_runs": 2})
    async with bench(url, settings, clock := FakeClock()) as alone, looping(alone, Hanging()) as (loop, runs):
        claimed, begun = alone.heard(Claimed), clock.now_us()
        await alone.register()
        # One long computation of each holds both slots; a second one of "acme" and one of "late" wait.
        for number, tenant in enumerate(("acme", "busy", "late", "quiet", "quieter")):
            if tenant != "acme":
                await alone.engine.tenants.create(tenant)
                await alone.engine.scripts.put(tenant, "job", "export default () => 1")
            first = 1_000_000 if number < 2 else 1_020_000 if tenant == "late" else 2_000_000
            for name, at_us in (("s", first), ("t", 2_000_000))[: 2 if tenant == "acme" else 1]:
                rule = RuleSpec("every 60s", dtstart=from_us(begun + at_us).isoformat())
                await alone.engine.schedules.create(tenant, name, script="job", rules=rule)
        alone.bus.publish(LedgerChanged())
        started = []
        for after_us in (1_000_000, 1_020_000, 2_000_000, 2_100_000, 2_200_000):
            clock.move_to(begun + after_us)
            claimed.clear()
            for _ in range(3):
                await loop.round()
            started.append(sorted(claim.tenant_id for each in claimed for claim in each.claims))
        # "late" came while the computations were young. Of the two that came later one starts: half of the slots go beyond.
        assert started[:2] == [["acme", "busy"], []]
        assert [each for each in started[2:] if each] in ([["quiet"]], [["quieter"]])
        assert len(runs) == 3
        assert runs.free < 0
