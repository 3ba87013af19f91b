"""Cost of whole runs: schedules due, claimed, executed as real scripts in the sandbox and committed, through a ledger and a node.

Three loads: a *burst* (every slot at one instant), which saturates; *half* (slots at half of the rate that the burst reached); and a
given rate at which runs come alone. The schedules are stored before the node starts.
The saturated pool without a ledger (:mod:`lodger.bench.attempts`) and other programs (:mod:`lodger.bench.peers`) are
measured in the same run.
"""

import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from secrets import token_hex
from statistics import median
from typing import Any

import sqlalchemy
from sqlalchemy import event as sqlalchemy_events

from lodger.bench import attempts, peers, slow_proxy
from lodger.bench.load import main_thread_ms, tree
from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.recurrence.rule import RuleSpec
from lodger.engine.store.drivers import prepared

#: Longest measurement of the bare pool in each situation, seconds; with few runs it is shorter.
POOL_S = 3.0
SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
_LEAD_S = 4.0
_SAMPLE = 50
#: Slots that are not counted, and from how long before the first that is, seconds: a node compiles and plans each statement at its
#: first use.
_WARMING, _WARMING_S = 20, 1.0
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one load; CPU and counts are per run.

    Attributes:
        per_s: runs from the first slot to the last commit, divided by that time.
        start_p50_ms, start_p99_ms: from the slot to the start of its attempt.
        done_p50_ms, done_p99_ms: from the slot to the commit of its outcome.
        engine_ms: CPU of the node's process; ``zygote_ms`` and ``worker_ms`` (its median) that of the sandbox.
        statements: SQL statements of all services.
        switches: how often a thread of the node's process waited.
        system_calls: that read or wrote, of the node's process.
        written_bytes: by these, of the node's process.
        faults: page faults of a worker (median).
    """

    load: str
    runs: int
    per_s: float
    start_p50_ms: float
    start_p99_ms: float
    done_p50_ms: float
    done_p99_ms: float
    engine_ms: float
    zygote_ms: float
    worker_ms: float
    statements: float
    switches: float
    system_calls: float
    written_bytes: float
    faults: float
    starts_ms: tuple[float, ...]
    dones_ms: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, without the single delays."""
        return {name: value for name, value in asdict(self).items() if name not in ("starts_ms", "dones_ms")}


@dataclass(frozen=True, slots=True)
class Measured:
    """All rows of one run, with the pool's saturated row and the peers that were found."""

    rows: tuple[Row, ...]
    pool: attempts.Row
    peers: peers.Figures


class _Recorder:
    """Notes when the attempt of each slot from ``first_us`` on started and was committed."""

    def __init__(self, expected: int) -> None:
        self.first_us = 0
        self.starts_ms: list[float] = []
        self.dones_ms: list[float] = []
        self.failed: list[str] = []
        self.last_ns = 0
        self.complete = asyncio.Event()
        self._expected = expected

    def add(self, event: Event) -> None:
        slot_us = event.details.get("slot_us")
        if slot_us is None or slot_us < self.first_us or event.kind not in ("started", "finished"):
            return
        now_ns = time.time_ns()
        delay_ms = (now_ns // 1000 - slot_us) / 1000
        if event.kind == "started":
            self.starts_ms.append(delay_ms)
            return
        if event.details.get("outcome") != "ok":
            self.failed.append(str(event.details.get("outcome")))
        self.dones_ms.append(delay_ms)
        self.last_ns = now_ns
        if len(self.dones_ms) >= self._expected:
            self.complete.set()


def measure(
    runs: int,
    tenants: int,
    rate: float,
    *,
    url: str | None = None,
    folder: Path | None = None,
    rtt_ms: float = 0.0,
    progress: Callable[[Row], None] = lambda _row: None,
) -> Measured:
    """Measure a burst of ``runs`` slots, the same number at half of its rate and at ``rate`` per second, the bare pool, and peers.

    Args:
        runs: number of schedules, each with one slot.
        tenants: how many tenants they belong to.
        rate: slots per second of the load in which runs come alone.
        url: an empty database of yours; None for a new SQLite file for each load.
        folder: where other programs are installed, see :mod:`lodger.bench.peers`.
        rtt_ms: how much longer each round trip to a server takes, for this node and for the queues among the peers.
        progress: called with each row when it is known.

    Raises:
        RuntimeError: an attempt did not end as ``ok``.
        TimeoutError: the runs were not done after ten minutes.
        SandboxError: the host lacks a part of the sandbox.
    """
    if rtt_ms and url is not None:
        with slow_proxy.in_a_process(url, rtt_ms) as slow:
            return measure(runs, tenants, rate, url=slow, folder=folder, progress=progress)
    rows: list[Row] = []

    def add(load: str, over_s: float) -> None:
        rows.append(asyncio.run(_load(load, runs, tenants, over_s, url)))
        progress(rows[-1])

    add("burst", 0.0)
    add("half", 2 * runs / rows[0].per_s)
    add(f"{rate:g}/s", runs / rate)
    _, pool, _ = attempts.measure("quickjs", min(POOL_S, runs / 100), lambda _row: None)
    return Measured(tuple(rows), pool, peers.measure(folder, url))


async def _load(load: str, runs: int, tenants: int, over_s: float, url: str | None) -> Row:
    recorder = _Recorder(runs)
    with tempfile.TemporaryDirectory(prefix="lodger-bench-") as folder:
        async with Engine.open(url or str(Path(folder) / "ledger.db")) as engine:
            # All loads, and several measurements, may use one database.
            names = [f"{load.replace('/', '-')}-{token_hex(4)}-{number}" for number in range(tenants)]
            begin = await _fill(engine, runs, names, over_s)
            recorder.first_us = int(begin.timestamp() * 1_000_000)
            engine.on_event(recorder.add)
            with attempts.recorded_deaths() as deaths, _statements() as statements:
                async with engine.node():
                    await asyncio.sleep(max(0.0, begin.timestamp() - time.time() - 0.2))
                    before, sandbox = _own(statements()), _children_cpu_ms()
                    async with asyncio.timeout(over_s + _TIMEOUT_S):
                        await recorder.complete.wait()
                    used = {name: (amount - before[name]) / runs for name, amount in _own(statements()).items()}
                    after = _children_cpu_ms()
    if recorder.failed:
        raise RuntimeError(f"{len(recorder.failed)} of {runs} runs failed: {recorder.failed[0]}")
    starts, dones = sorted(recorder.starts_ms), sorted(recorder.dones_ms)
    return Row(
        load=load,
        runs=runs,
        per_s=round(runs / (recorder.last_ns / 1e9 - begin.timestamp()), 1),
        start_p50_ms=attempts.percentile(starts, 0.5),
        start_p99_ms=attempts.percentile(starts, 0.99),
        done_p50_ms=attempts.percentile(dones, 0.5),
        done_p99_ms=attempts.percentile(dones, 0.99),
        engine_ms=round(used["cpu_s"] * 1000, 3),
        zygote_ms=round(sum(after[pid] - used for pid, used in sandbox.items() if pid in after) / runs, 3),
        worker_ms=round(median(death.cpu_us for death in deaths) / 1000, 3),
        faults=median(death.minor_faults for death in deaths),
        **{name: round(used[name], 2) for name in ("statements", "switches", "system_calls", "written_bytes")},
        starts_ms=tuple(starts),
        dones_ms=tuple(dones),
    )


async def _fill(engine: Engine, runs: int, names: list[str], over_s: float) -> datetime:
    """Store one schedule per run, each with its slot in ``over_s`` seconds, and return the first slot."""
    for name in names:
        await engine.tenants.create(name, limits={"concurrent_runs": 1000, "schedules": runs + _SAMPLE})
        await engine.scripts.put(name, "job", SCRIPT, force=True)

    async def store(number: int, name: str, slot: datetime) -> None:
        rule = RuleSpec("every 1d", dtstart=slot.isoformat())
        await engine.schedules.create(names[number % len(names)], name, script="job", rules=rule)

    # The first slot must come after the last schedule is stored: some that are not due tell how long storing takes.
    begun = time.time()
    for number in range(_SAMPLE):
        await store(number, f"far{number}", datetime.fromtimestamp(begun, UTC) + timedelta(days=1))
    lead_s = _LEAD_S + 2 * runs * (time.time() - begun) / _SAMPLE
    begin = datetime.fromtimestamp(time.time() + lead_s, UTC).replace(microsecond=0)
    for number in range(_WARMING):
        await store(number, f"w{number}", begin - timedelta(seconds=_WARMING_S * (1 - number / _WARMING / 2)))
    for number in range(runs):
        await store(number, f"s{number}", begin + timedelta(seconds=over_s * number / runs))
    if time.time() > begin.timestamp() - 1 - _WARMING_S:
        raise RuntimeError(
            "storing the schedules took longer than planned because the host is busy; run the benchmark again"
        )
    return begin


def _own(statements: int) -> dict[str, float]:
    """Return what this process has used so far."""
    used, counts = resource.getrusage(resource.RUSAGE_SELF), {"syscr": 0, "syscw": 0, "wchar": 0}
    with suppress(OSError):  # a kernel that does not count
        for line in Path("/proc/self/io").read_text().splitlines():
            name, _, number = line.partition(":")
            counts[name] = int(number)
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "statements": statements,
        "switches": used.ru_nvcsw,
        "system_calls": counts["syscr"] + counts["syscw"],
        "written_bytes": counts["wchar"],
    }


def _children_cpu_ms() -> dict[int, float]:
    """CPU of the living processes below this one, by process id: the launcher and the zygotes, and workers that end meanwhile."""
    below = islice(tree(os.getpid()), 1, None)
    return {pid: ms for pid in below if (ms := main_thread_ms(pid)) is not None}


@contextmanager
def _statements() -> Iterator[Callable[[], int]]:
    """Count the SQL statements of this process; yield what returns the number so far."""
    count = 0

    def note(*_arguments: Any) -> None:
        nonlocal count
        count += 1

    # Not the events of cursors: with a listener on those, statements take another way.
    kinds = ("do_execute", "do_executemany")
    for kind in kinds:
        sqlalchemy_events.listen(sqlalchemy.Engine, kind, note)
    try:
        yield lambda: count + prepared.counted["statements"]
    finally:
        for kind in kinds:
            sqlalchemy_events.remove(sqlalchemy.Engine, kind, note)
