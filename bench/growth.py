"""What a large history costs: tick, claim and finish of 1000 slots on an empty ledger and beside so many finished actions.

``python bench/growth.py [--rows 1000000] [--database sqlite|postgresql|URL] [--rounds 5]``. The history is written by SQL, with an attempt
of each action. The two ledgers take turns; seconds are the wall clock's, the median
of the rounds. Then retention deletes old actions, and each of its
transactions is timed.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from scale import place
from sqlalchemy import text

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.engine.core.settings import Settings
from lodger.engine.store.lifecycle import retention
from lodger.engine.sync import Engine

TENANTS, SCHEDULES = 20, 50
_CHUNK = 100_000
SERIES = {
    "sqlite": "WITH RECURSIVE series(n) AS (SELECT :low UNION ALL SELECT n + 1 FROM series WHERE n < :high)",
    "postgresql": "WITH series AS (SELECT n FROM generate_series(CAST(:low AS bigint), CAST(:high AS bigint)) AS n)",
}
ID = {
    "sqlite": "printf('%08x-%04x-7000-8000-%012x', n >> 16, n & 65535, n)",
    "postgresql": "CAST(lpad(to_hex(n >> 16), 8, '0') || '-' || lpad(to_hex(n & 65535), 4, '0') || '-7000-8000-' "
    "|| lpad(to_hex(n), 12, '0') AS uuid)",
}
ACTIONS = """
{series} INSERT INTO lodger_actions (tenant_id, id, schedule_id, revision, origin, slot, due_at, state, script_id, script_version,
    attempt, started_us, finished_us, outcome, result)
SELECT s.tenant_id, {id}, s.id, 1, 'slot', :now - n * 1000, :now - n * 1000, 'done', r.script_id, 1, 1, :now - n * 1000,
    :now - n * 1000 + 500, 'ok', '1'
FROM series JOIN numbered s ON s.place = n % :schedules
JOIN lodger_schedule_revisions r ON r.tenant_id = s.tenant_id AND r.schedule_id = s.id AND r.revision = 1
"""
ATTEMPTS = """
{series} INSERT INTO lodger_attempts (tenant_id, action_id, step, n, node_id, lease_epoch, started_us, finished_us, outcome, cpu_us,
    wall_us, memory_peak_bytes, host_calls)
SELECT s.tenant_id, {id}, 0, 1, {id}, 1, :now - n * 1000, :now - n * 1000 + 500, 'ok', 100, 500, 1000000, 0
FROM series JOIN numbered s ON s.place = n % :schedules
"""


def fill(bench: Bench, rows: int) -> None:
    """Write so many finished actions of all schedules."""
    database = bench.engine.context.database
    kind = database.driver.name
    with database.write() as connection:
        connection.execute(text("CREATE TABLE numbered (place INTEGER PRIMARY KEY, tenant_id TEXT, id TEXT)"))
        if kind == "postgresql":
            connection.execute(text("ALTER TABLE numbered ALTER COLUMN id TYPE uuid USING id::uuid"))
        connection.execute(
            text("INSERT INTO numbered SELECT row_number() OVER (ORDER BY id) - 1, tenant_id, id FROM lodger_schedules")
        )
        schedules = connection.scalar(text("SELECT count(*) FROM numbered"))
    for low in range(1, rows + 1, _CHUNK):
        values = {
            "low": low,
            "high": min(rows, low + _CHUNK - 1),
            "now": bench.clock.us - 500_123,
            "schedules": schedules,
        }
        with database.write() as connection:
            for statement in (ACTIONS, ATTEMPTS):
                connection.execute(text(statement.format(series=SERIES[kind], id=ID[kind])), values)
    with database.write() as connection:
        connection.execute(text("ANALYZE"))


def measure(bench: Bench) -> dict[str, float]:
    """Return the seconds of tick, claim and finish of one slot of every schedule."""
    times = {"tick": 0.0, "claim": 0.0, "finish": 0.0}
    bench.clock.advance(60)

    def timed(name: str, work: Callable[[], list[Any]]) -> list[Any]:
        begun = time.perf_counter()
        found = work()
        times[name] += time.perf_counter() - begun
        return found

    while timed("tick", bench.tick):
        pass
    while claimed := timed("claim", lambda: bench.claim(100)):
        timed("finish", lambda claimed=claimed: [bench.commit(*claimed)])  # type: ignore[misc]  # bound now
    return times


def opened(stack: ExitStack, url: str, settings: Settings) -> Bench:
    """Return a ledger with all schedules and no history."""
    engine = stack.enter_context(Engine.open(url, clock=VirtualClock(), settings=settings))
    bench = Bench(engine, engine.context.clock)  # type: ignore[arg-type]  # the virtual one
    for tenant in range(TENANTS):
        bench.tenant(f"t{tenant}")
        for number in range(SCHEDULES):
            bench.schedule(tenant_id=f"t{tenant}", name=f"s{number}")
    return bench


def prune(bench: Bench, batches: int) -> list[float]:
    """Return the seconds of so many transactions of retention."""
    found = []
    database = bench.engine.context.database
    for number in range(batches):
        with database.read() as connection:
            rows = retention.find_old(bench.engine.context, connection, f"t{number % TENANTS}", bench.clock.us)
        begun = time.perf_counter()
        with database.write() as connection:
            retention.delete_actions(connection, rows, bench.clock.us)
        found.append(time.perf_counter() - begun)
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", default="sqlite")
    arguments = parser.parse_args()
    settings = Settings(sqlite_synchronous="NORMAL", concurrent_runs=1000, min_interval_s=1, retention_runs=100)
    with ExitStack() as stack:
        empty, full = (opened(stack, stack.enter_context(place(arguments.database)), settings) for _ in range(2))
        begun = time.monotonic()
        fill(full, arguments.rows)
        print(f"{arguments.rows} rows in {time.monotonic() - begun:.0f} s", flush=True)
        for bench in (empty, full):
            measure(bench)
        # One after the other, so that both see the same machine.
        rounds = [(measure(empty), measure(full)) for _ in range(arguments.rounds)]
        for name in rounds[0][0]:
            before = statistics.median(one[name] for one, _other in rounds)
            after = statistics.median(other[name] for _one, other in rounds)
            print(f"{name:7} {before * 1000:7.1f} ms empty, {after * 1000:7.1f} ms full: {after / before:.2f} x")
        bench = full
        took = prune(bench, 40)
        print(
            f"retention, {retention.MAX_ROWS} rows a transaction: median {took[20] * 1000:.0f} ms, maximum {took[-1] * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
