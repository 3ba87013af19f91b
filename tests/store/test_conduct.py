"""The least interval between slots, held on the ledger."""

import pytest
from tests.store.bench import Bench

from lodger.engine.core.errors import InputError


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
