"""More is due than can run: high priority stays on time, low priority is late, and each tenant keeps its share."""

from collections import Counter, defaultdict

from tests.store.bench import Bench

SECONDS = 40
#: Starts per second, for both tenants together; 5 are due.
CAPACITY = 2


def test_under_saturation_priority_decides_what_is_late_and_tenants_keep_their_shares(bench: Bench) -> None:
    priority = {}
    for tenant in ("acme", "zeta"):
        bench.tenant(tenant, min_interval_s=1, concurrent_runs=100)
        for name, rank in [("urgent", "high"), *((f"bulk{number}", "low") for number in range(4))]:
            made = bench.schedule("every 2s", tenant, name, overlap="queue_all", priority=rank)
            priority[made.id] = rank
    bench.lease()
    late_s: dict[str, list[float]] = defaultdict(list)
    starts: Counter[str] = Counter()
    for _ in range(SECONDS):
        bench.clock.advance(1)
        bench.renew()
        bench.tick()
        claimed = bench.claim(free=CAPACITY)
        for claim in claimed:
            late_s[priority[str(claim.schedule_id)]].append((claim.started_us - claim.due_us) / 1e6)
            starts[claim.tenant_id] += 1
        bench.commit(*claimed)
    assert max(late_s["high"]) <= 1
    assert len(late_s["high"]) == SECONDS // 2 * 2, "every high slot has started"
    assert max(late_s["low"]) > SECONDS / 2
    assert starts["acme"] == starts["zeta"] == (SECONDS - 1) * CAPACITY // 2
