"""Actions per second through the ledger with an executor that does nothing, on SQLite and PostgreSQL.

Two figures: *burn-down* (ready actions claimed, run by a real node, committed with outcome, attempt and usage), and
*whole* (clocks ticked, then the same). Run: ``python bench/ledger.py [ACTIONS] [BATCH] [sqlite|postgresql|URL]``; wants a
quiet machine. PostgreSQL is a server of the bench's own, durability off (``fsync=off``), or on with LODGER_BENCH_FSYNC=1;
a URL names an empty database of yours.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from lodger.engine import Engine
from lodger.engine.core.access.audit_context import current_audit_context
from lodger.engine.core.clock import from_us
from lodger.engine.core.events import Event
from lodger.engine.core.execution import Claim, Finished
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.compile import compile_schedule
from lodger.engine.recurrence.rule import RuleSpec, ScheduleRules
from lodger.engine.recurrence.schedule import CompiledSchedule
from lodger.engine.store.schedules import schedules
from lodger.engine.store.schema.scheduling import actions
from lodger.sandbox.outcome import Outcome

DONE = Finished(Outcome.OK, result="null")


class Nothing:
    """Answers every claim at once; tells when the last one has come."""

    def __init__(self) -> None:
        self.ran = 0

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def execute(self, claim: Claim) -> Finished:
        self.ran += 1
        return DONE


#: Slots so rare that hardly any falls into a run.
DAY_US = 86_400_000_000


_DAILY = compile_schedule(ScheduleRules((RuleSpec("every 1 day"),)))


def compile_daily(_rules: object, *, now: datetime) -> CompiledSchedule:
    """Compile nothing: the figures are the ledger's own."""
    return _DAILY


async def measure(path: str, number: int, batch: int, synchronous: str, ticking: bool) -> float:
    """Seconds from the first moment of the node to the last commit."""
    settings = Settings(slots=batch, commit_batch=batch, tick_batch=batch, sqlite_synchronous=synchronous, lease_s=60)
    async with Engine.open(path, settings=settings, compile_schedule=compile_daily) as engine:
        for tenant in range(10):
            await engine.tenants.create(f"t{tenant}", limits={"concurrent_runs": 10_000, "schedules": 10_000_000})
            await engine.scripts.put(f"t{tenant}", "job", "export default () => null", force=True)
        if ticking:
            _schedule(engine, number)
        else:
            _fill(engine, number)
        done = asyncio.Event()
        left = number

        def hear(event: Event) -> None:
            nonlocal left
            if event.kind == "finished":
                left -= 1
                if left == 0:
                    done.set()

        engine.on_event(hear)
        begun = time.perf_counter()
        async with engine.node(Nothing()):
            await asyncio.wait_for(done.wait(), 600)
            took = time.perf_counter() - begun
    return took


def _schedule(engine: Engine, number: int) -> None:
    """Store schedules that owe one slot each, all in one transaction."""
    context, now = engine.context, engine.context.clock.now_us()
    daily = context.revision_cache.prepare(
        ScheduleRules((RuleSpec("every 1 day"),)), from_us(now), from_us(now - DAY_US)
    )
    wish = schedules.ScheduleFields("job", daily, "latest", "skip")
    with context.database.write() as connection:
        for each in range(number):
            schedules.create(
                context, connection, f"t{each % 10}", f"s{each}", wish, now, current_audit_context(), now - DAY_US
            )


def _fill(engine: Engine, number: int) -> None:
    context = engine.context
    now = context.clock.now_us()
    with context.database.write() as connection:
        ids = dict(connection.exec_driver_sql("SELECT tenant_id, id FROM lodger_scripts").all())
        rows = [
            {"tenant_id": f"t{n % 10}", "id": context.ids.new(), "origin": "once", "slot": now, "due_at": now,
             "state": "ready", "script_id": ids[f"t{n % 10}"], "script_version": 1}
            for n in range(number)
        ]  # fmt: skip
        connection.execute(actions.insert(), rows)
        connection.exec_driver_sql("UPDATE lodger_turns SET startable_at = 0")


def places(wanted: str, folder: Path) -> Iterator[tuple[str, str, bool, str]]:
    """Return (name, synchronous, ticking, place) of each measurement."""
    if wanted in {"all", "sqlite"}:
        for synchronous in ("NORMAL", "FULL"):
            for ticking in (False, True):
                yield f"SQLite {synchronous}", synchronous, ticking, str(folder / f"{synchronous}-{ticking}.db")
    if "://" in wanted:
        yield "PostgreSQL", "FULL", False, wanted
    if wanted in {"all", "postgresql"}:
        from tests.databases import server

        if os.environ.get("LODGER_BENCH_FSYNC"):
            server.SETTINGS |= {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
        for ticking in (False, True):
            yield "PostgreSQL", "FULL", ticking, server.shared().url(server.shared().database())


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    batch = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    wanted = sys.argv[3] if len(sys.argv) > 3 else "all"
    with tempfile.TemporaryDirectory() as folder:
        for name, synchronous, ticking, place in places(wanted, Path(folder)):
            count = number // 4 if ticking else number
            took = asyncio.run(measure(place, count, batch, synchronous, ticking))
            what = "tick, claim, commit" if ticking else "claim, commit      "
            print(f"{name:13} {what} {count:7} actions, batches of {batch}: {count / took:8.0f}/s", flush=True)


if __name__ == "__main__":
    main()
