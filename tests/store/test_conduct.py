"""Jitter, the cap on schedules and the least interval, held on the ledger."""

from datetime import timedelta

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError


def test_a_jittered_action_does_not_start_before_it_is_due(bench: Bench) -> None:
    bench.tenant()
    schedule = bench.schedule("every 600s", jitter_s=600)
    bench.clock.advance(600)
    bench.tick()
    (action,) = bench.actions(schedule)
    assert action.slot is not None
    assert bench.claim() == []
    bench.clock.us += (action.due_at - action.slot) // timedelta(microseconds=1) - 1
    assert bench.claim() == []
    bench.clock.us += 1
    (claim,) = bench.claim()
    assert claim.due_us == bench.clock.us


def test_two_slots_closer_than_the_tenants_interval_are_refused(bench: Bench) -> None:
    bench.tenant(min_interval_s=60)
    bench.schedule("every 60s")
    with pytest.raises(InputError) as refused:
        bench.schedule("every 59s", name="fast")
    assert refused.value.code == "rule_too_frequent"
    assert refused.value.details["smallest_gap_s"] == 59
    with pytest.raises(InputError, match="30 s apart"):
        bench.engine.schedules.edit("acme", "s", rules="every 30s")
    assert bench.engine.schedules.get("acme", "s").revision == 1
    assert bench.engine.schedules.edit("acme", "s", params=1).revision == 2
    bench.tenant("fast", min_interval_s=1)
    assert bench.schedule("every 1s", tenant_id="fast").revision == 1
