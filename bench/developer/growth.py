"""What a large history costs: tick, claim and finish of 1000 slots on an empty ledger and beside so many finished actions.

``python bench/developer/growth.py [--rows 1000 100000 1000000] [--database sqlite|postgresql|URL] [--rounds 5] [--json FILE]``

The history is written by SQL, with an attempt of each action. For each number of rows it prints what the database did
(:class:`Work`), which no other process changes, and the ratio of times: the two ledgers take turns, and the median of
the rounds counts. Then retention deletes old actions, and each of its transactions is timed.

``--beside 1000/10 1000000/100000`` [--slots 1000] measures the same slots beside so many schedules that are not due, of so many tenants.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from scale import place
from sqlalchemy import Connection, event, text

sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.store.bench import Bench
from tests.store.virtual_clock import VirtualClock

from lodger.bench import crowd
from lodger.engine.core.clock import SystemClock
from lodger.engine.core.errors import Unavailable
from lodger.engine.core.settings import Settings
from lodger.engine.store.drivers.features import StatementTimeout
from lodger.engine.store.lifecycle import retention
from lodger.engine.sync import Engine

#: Sums of the work, to print.
TOTALS = ("blocks", "wal", "steps", "read", "written")
T = TypeVar("T")
TENANTS, SCHEDULES = 20, 50
_CHUNK = 100_000
#: The history is older than the first measurement, whenever it is written.
BEGIN_US = VirtualClock().us
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


def fill(bench: Bench, rows: int, first: int = 1) -> None:
    """Write so many finished actions of all schedules."""
    database = bench.engine.context.database
    kind = database.driver.name
    with database.write() as connection:
        connection.execute(
            text("CREATE TABLE IF NOT EXISTS numbered (place INTEGER PRIMARY KEY, tenant_id TEXT, id TEXT)")
        )
        if kind == "postgresql":
            connection.execute(text("ALTER TABLE numbered ALTER COLUMN id TYPE uuid USING id::uuid"))
        connection.execute(
            text(
                "INSERT INTO numbered SELECT row_number() OVER (ORDER BY id) - 1, tenant_id, id FROM lodger_schedules "
                "WHERE NOT EXISTS (SELECT 1 FROM numbered)"
            )
        )
        schedules = connection.scalar(text("SELECT count(*) FROM numbered"))
    for low in range(first, rows + 1, _CHUNK):
        values = {
            "low": low,
            "high": min(rows, low + _CHUNK - 1),
            "now": BEGIN_US - 500_123,
            "schedules": schedules,
        }
        with database.write() as connection:
            for statement in (ACTIONS, ATTEMPTS):
                connection.execute(text(statement.format(series=SERIES[kind], id=ID[kind])), values)
    with database.write() as connection:
        connection.execute(text("ANALYZE"))


class Work:
    """What the database did for a phase, in numbers that no other process changes.

    PostgreSQL: pages of tables and indexes that were looked at (``blocks``, and by relation in ``relations``) and bytes of WAL. SQLite:
    instructions of its virtual machine (``steps``), and pages read and written, from the kernel's figures of this process.
    """

    def __init__(self, bench: Bench) -> None:
        self._database = bench.engine.context.database
        self._server = self._database.driver.name == "postgresql"
        self._steps = 0
        self._counting = False
        self._before: dict[str, int] = {}
        if self._server:
            # A server counts at the end of a transaction, and at most once a second unless it is told to.
            event.listen(
                self._database.engine, "commit", lambda one: one.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            )
        else:
            event.listen(self._database.engine, "before_cursor_execute", self._watch)

    def _watch(self, connection: Connection, *_statement: object) -> None:
        connection.connection.dbapi_connection.set_progress_handler(self._step if self._counting else None, 1)

    def _step(self) -> None:
        self._steps += 1

    def _read(self) -> dict[str, int]:
        if not self._server:
            figures = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
            return {
                "steps": self._steps,
                "read": int(figures["rchar"]) // 4096,
                "written": int(figures["wchar"]) // 4096,
            }
        with self._database.read() as connection:
            return {name: int(number) for name, number in connection.execute(text(BLOCKS))}

    def begin(self) -> None:
        self._counting = True
        self._before = self._read()

    def done(self) -> dict[str, int]:
        """Return the work since :meth:`begin`."""
        self._counting = False
        now = self._read()
        found = {
            name: number - self._before.get(name, 0) for name, number in now.items() if number != self._before.get(name)
        }
        if self._server:
            found["blocks"] = sum(number for name, number in found.items() if name != "wal")
        return found


BLOCKS = """
SELECT relname, heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname LIKE 'lodger%'
UNION ALL SELECT indexrelname, idx_blks_read + idx_blks_hit FROM pg_statio_user_indexes WHERE relname LIKE 'lodger%'
UNION ALL SELECT 'wal', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')
"""


def measure(bench: Bench, work: Work | None = None) -> dict[str, tuple[float, dict[str, int]]]:
    """Return the seconds and the work of tick, claim and finish of one slot of every schedule, each in one batch."""
    found: dict[str, tuple[float, dict[str, int]]] = {}
    bench.clock.advance(60)

    def timed(name: str, step: Callable[[], T]) -> T:
        if work:
            work.begin()
        begun = time.perf_counter()
        result = step()
        found[name] = (time.perf_counter() - begun, work.done() if work else {})
        return result

    timed("tick", lambda: [None for _ in iter(bench.tick, [])])
    claimed = timed("claim", lambda: [one for batch in iter(lambda: bench.claim(100), []) for one in [batch]])
    timed("finish", lambda: [bench.commit(*batch) for batch in claimed])
    return found


def opened(stack: ExitStack, url: str, settings: Settings, schedules: int = SCHEDULES) -> Bench:
    """Return a ledger with all schedules and no history."""
    engine = stack.enter_context(Engine.open(url, clock=VirtualClock(), settings=settings))
    bench = Bench(engine, engine.context.clock)  # type: ignore[arg-type]  # the virtual one
    for tenant in range(TENANTS):
        bench.tenant(f"t{tenant}")
        for number in range(schedules):
            bench.schedule(tenant_id=f"t{tenant}", name=f"s{number}")
    return bench


def prune(bench: Bench, batches: int) -> list[float]:
    """Return the seconds of so many transactions of retention, those included that reached their time limit."""
    found, clock = [], SystemClock()
    database = bench.engine.context.database
    for number in range(batches):
        with database.read() as connection:
            rows = retention.find_old(bench.engine.context, connection, f"t{number % TENANTS}", bench.clock.us)
        begun = time.perf_counter()
        with suppress(StatementTimeout, Unavailable), database.write() as connection:
            retention.delete_actions(connection, rows, bench.clock.us, clock.elapsed_s)
        found.append(time.perf_counter() - begun)
    return sorted(found)


def beside(arguments: argparse.Namespace, settings: Settings) -> None:
    """Print the work of the slots beside schedules that are not due, each number in a ledger of its own."""
    results = []
    for crowds in arguments.beside:
        schedules, tenants = (int(each) for each in crowds.split("/"))
        with ExitStack() as stack:
            bench = opened(stack, stack.enter_context(place(arguments.database)), settings, arguments.slots // TENANTS)
            crowd.fill(bench.engine, schedules, tenants, "export default () => null")
            work = Work(bench)
            measure(bench)
            counts = measure(bench, work)
        print(f"beside {schedules} schedules of {tenants} tenants", flush=True)
        for name, (_seconds, count) in counts.items():
            print(f"  {name:7}", *(f"{key} {count[key]}" for key in TOTALS if key in count), flush=True)
            results.append({"schedules": schedules, "tenants": tenants, "phase": name, "work": count})
    if arguments.json:
        arguments.json.write_text(json.dumps(results))


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--beside", nargs="+", metavar="SCHEDULES/TENANTS")
    parser.add_argument("--slots", type=int, default=TENANTS * SCHEDULES, help="slots that --beside measures")
    arguments = parser.parse_args(given)
    settings = Settings(sqlite_synchronous="NORMAL", concurrent_runs=1000, min_interval_s=1, retention_runs=100)
    if arguments.beside:
        beside(arguments, settings)
        return
    with ExitStack() as stack:
        empty, full = (opened(stack, stack.enter_context(place(arguments.database)), settings) for _ in range(2))
        work, before, results = Work(full), 0, []
        for rows in arguments.rows:
            begun = time.monotonic()
            fill(full, rows, before + 1)
            before = rows
            print(f"{rows} rows, written in {time.monotonic() - begun:.0f} s", flush=True)
            for bench in (empty, full):
                measure(bench)
            counts = measure(full, work)
            # One after the other, so that both see the same machine.
            rounds = [(measure(empty), measure(full)) for _ in range(arguments.rounds)]
            for name, (_seconds, count) in counts.items():
                ratio = statistics.median(other[name][0] / one[name][0] for one, other in rounds)
                print(
                    f"  {name:7} {ratio:.2f} x the time of the empty ledger;",
                    *(f"{key} {count[key]}" for key in TOTALS if key in count),
                )
                results.append({"rows": rows, "phase": name, "ratio": ratio, "work": count})
            if arguments.json:
                arguments.json.write_text(json.dumps(results))
        took = prune(full, 40)
        print(
            f"retention, {retention.MAX_ROWS} rows a transaction: median {took[20] * 1000:.0f} ms, maximum {took[-1] * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
