"""A node that runs for long: memory, descriptors, threads and files of the node and its workers stay where they were.

``python bench/developer/soak.py [--runs 50000] [--batch 500] [--database sqlite|postgresql|URL] [--check]``. Real workers run
scripts that succeed, log, write, throw and exceed their CPU limit; retention keeps the newest history. A sample is taken after
each twentieth of the runs; ``--check`` exits with 1 if the last quarter of the samples is above the second one by more than the
tolerances below.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from scale import memory_mib, place

from lodger.bench.load import tree
from lodger.engine.core.events import Event
from lodger.engine.core.settings import Settings
from lodger.engine.store.schema.scheduling import actions
from lodger.engine.sync import Engine

#: Scripts of the load; one of a hundred runs of the last one.
SCRIPTS = {
    "answers": "export default () => ({ now: 1 })",
    "logs": "export default () => { for (let n = 0; n < 20; n += 1) console.log('line', n) }",
    "writes": "export default async ({ kv }) => { await kv.add('n', 1); await kv.set('last', 'x'.repeat(2000)) }",
    "throws": "export default () => { throw new Error('as it should') }",
    "spins": "export default () => { for (;;) ; }",
}
TENANTS = 10
#: Single runs before a sample: more than half of the ready workers.
SINGLE = 8 * len(os.sched_getaffinity(0))
#: Allowed growth between the second and the last quarter of the samples.
TOLERANCES = {"memory_mib": 8.0, "descriptors": 0, "threads": 0, "processes": 0, "files": 0}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the node's process and its descendants hold."""

    memory_mib: float
    descriptors: int
    threads: int
    processes: int
    #: Files and folders in the temporary folder, the ledger's apart.
    files: int
    ledger_mib: float


def sample(ledger: Path | None, temporary: Path) -> Sample:
    """Return the present state, measured while no attempt runs."""
    pids = list(tree(os.getpid()))
    return Sample(
        memory_mib=memory_mib(pids),
        descriptors=sum(_count(Path(f"/proc/{pid}/fd")) for pid in pids),
        threads=sum(_count(Path(f"/proc/{pid}/task")) for pid in pids),
        processes=len(pids),
        files=sum(1 for _each in temporary.rglob("*")),
        ledger_mib=0.0 if ledger is None else sum(each.stat().st_size for each in ledger.parent.glob("*")) / 1024**2,
    )


def _count(folder: Path) -> int:
    with suppress(OSError):  # a process that has ended
        return sum(1 for _each in folder.iterdir())
    return 0


class Load:
    """Runs in batches, each after the end of the one before.

    Args:
        engine: an open engine with a node.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = 0
        self._over = threading.Event()
        self.ran = 0
        engine.on_event(self._hear)
        for tenant in range(TENANTS):
            engine.tenants.create(f"t{tenant}", grants=["kv"], limits={"cpu_ms": 50, "concurrent_runs": 100})
            for name, source in SCRIPTS.items():
                engine.scripts.put(f"t{tenant}", name, source)
        with engine.context.database.read() as connection:
            rows = connection.exec_driver_sql("SELECT tenant_id, name, id FROM lodger_scripts").all()
        self._scripts = {(tenant, name): script for tenant, name, script in rows}

    def _hear(self, event: Event) -> None:
        if event.kind == "finished" and event.details.get("state") in {"done", "failed"}:
            self._left -= 1
            if self._left <= 0:
                self._over.set()

    def run(self, number: int, timeout_s: float = 600) -> None:
        """Run so many actions and return when the last one has ended."""
        context = self._engine.context
        now = context.clock.now_us()
        names = list(SCRIPTS)
        rows = []
        for each in range(self.ran, self.ran + number):
            name = "spins" if each % 100 == 0 else names[each % 4]
            rows.append({
                "tenant_id": f"t{each % TENANTS}", "id": context.ids.new(), "origin": "once", "slot": now, "due_at": now,
                "state": "ready", "script_id": self._scripts[f"t{each % TENANTS}", name], "script_version": 1,
            })  # fmt: skip
        self._left = number
        self._over.clear()
        with context.database.write() as connection:
            connection.execute(actions.insert(), rows)
            connection.exec_driver_sql("UPDATE lodger_turns SET startable_at = 0")
        self._engine.changed()
        if not self._over.wait(timeout_s):
            raise TimeoutError(f"{self._left} of {number} runs have not ended")
        self.ran += number

    def fullest(self, ledger: Path | None, temporary: Path) -> Sample:
        """Return the state with the most processes after one of some single runs: between half and all of the pool's workers are ready."""
        found = []
        for _ in range(SINGLE):
            self.run(1)
            found.append(sample(ledger, temporary))
        return max(found, key=lambda each: each.processes)


def growth(samples: list[Sample]) -> dict[str, float]:
    """Return the largest value of the last quarter minus that of the second one, for each figure."""
    quarter = max(1, len(samples) // 4)
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    names = [each.name for each in fields(Sample)]
    return {name: max(getattr(s, name) for s in after) - max(getattr(s, name) for s in before) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    settings = Settings(sqlite_synchronous="NORMAL", retention_runs=1000, storage_bytes=200_000, lease_s=30)
    samples: list[Sample] = []
    with place(arguments.database) as url, tempfile.TemporaryDirectory(prefix="lodger-soak-") as temporary:
        tempfile.tempdir = temporary
        ledger = None if "://" in url else Path(url)
        begun = time.monotonic()
        with Engine.open(url, settings=settings) as engine, engine.node():
            load = Load(engine)
            every = max(1, arguments.runs // arguments.batch // 20)
            for batch in range(1, arguments.runs // arguments.batch + 1):
                load.run(arguments.batch)
                if batch % every == 0:
                    samples.append(load.fullest(ledger, Path(temporary)))
                    print(f"{load.ran} runs, {time.monotonic() - begun:.0f} s: {samples[-1]}", flush=True)
    grown = growth(samples)
    print({name: round(value, 2) for name, value in grown.items()})
    sys.exit(int(arguments.check and any(grown[name] > limit for name, limit in TOLERANCES.items())))


if __name__ == "__main__":
    main()
