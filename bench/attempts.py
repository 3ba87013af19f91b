"""What one attempt costs on this host: latency, attempts per second, CPU and page faults of the pool, with no ledger; a peer beside it."""

import asyncio
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import median
from typing import Any

from lodger.bench.budget import Budget
from lodger.bench.load import main_thread_ms, tree
from lodger.sandbox import Bundle, Job, Pool
from lodger.sandbox.job import NoHost
from lodger.sandbox.workers import launcher

_SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
_MODULE = """(module (memory (export "memory") 1) (func (export "_start") (local $i i32)
  (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))))"""
RUNTIMES = ("quickjs", "quickjs-native", "wasm")
#: Maximum rate of the open loop, per second; half of the saturated rate where that is less.
MAX_RATE = 600
_WARM = 30
#: Bounds of a trivial script as multiples of a new isolate of isolated-vm: answer time (p50) in the open loop, CPU when saturated.
#: Decision 0013 says what they are made of, and why they are not below 1.
MAX_ANSWER_RATIO, MAX_CPU_RATIO = 1.2, 2.5


@dataclass(frozen=True, slots=True)
class Row:
    """What was found in one situation; CPU is per attempt.

    Attributes:
        answer_p50_ms, answer_p99_ms: from hand-over of a job to its verdict.
        run_p50_ms, run_p99_ms: from the call to its report, with the kill and the reaper's word.
        worker_us: from its fork to its exit; ``zygote_us`` and ``engine_us`` beside it, and all three together.
        faults: page faults of a worker.
    """

    runtime: str
    row: str
    attempts: int
    per_s: float
    answer_p50_ms: float
    answer_p99_ms: float
    run_p50_ms: float
    run_p99_ms: float
    worker_us: float
    zygote_us: float
    engine_us: float
    cpu_us: float
    faults: float

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON output."""
        return asdict(self)


@contextmanager
def recorded_deaths() -> Iterator[list[launcher.Death]]:
    """Record how each worker of this process ends, while entered."""
    deaths: list[launcher.Death] = []
    real = launcher.WorkerEnd.record_end

    def ended(worker: launcher.WorkerEnd, death: launcher.Death | None) -> None:
        if death is not None:
            deaths.append(death)
        real(worker, death)

    setattr(launcher.WorkerEnd, "record_end", ended)  # noqa: B010 - in place of a method, and put back below
    try:
        yield deaths
    finally:
        setattr(launcher.WorkerEnd, "record_end", real)  # noqa: B010 - as it was


class _Meter:
    """One situation being measured."""

    def __init__(self, runtime: str, name: str, pool: Pool, job: Job, deaths: list[launcher.Death]) -> None:
        self._of = (runtime, name)
        self._pool, self._job, self._deaths = pool, job, deaths
        self._run_ms: list[float] = []
        self._answer_ms: list[float] = []
        deaths.clear()
        self._before = (time.perf_counter(), _zygote_us(pool), _engine_us())

    async def one(self) -> None:
        began = time.perf_counter()
        report = await self._pool.run(self._job, NoHost())
        self._run_ms.append((time.perf_counter() - began) * 1000)
        if report.outcome != "ok":
            raise RuntimeError(f"an attempt ended as {report.outcome}: {report.error}")
        self._answer_ms.append(report.usage.wall_ms)

    def row(self) -> Row:
        began, zygote, engine = self._before
        count = len(self._run_ms)
        worker = median(death.cpu_us for death in self._deaths)
        zygote = (_zygote_us(self._pool) - zygote) / count
        engine = (_engine_us() - engine) / count
        runtime, name = self._of
        return Row(
            runtime=runtime,
            row=name,
            attempts=count,
            per_s=round(count / (time.perf_counter() - began)),
            answer_p50_ms=percentile(self._answer_ms, 0.5),
            answer_p99_ms=percentile(self._answer_ms, 0.99),
            run_p50_ms=percentile(self._run_ms, 0.5),
            run_p99_ms=percentile(self._run_ms, 0.99),
            worker_us=round(worker),
            zygote_us=round(zygote),
            engine_us=round(engine),
            cpu_us=round(worker + zygote + engine),
            faults=round(median(death.minor_faults for death in self._deaths)),
        )


def percentile(values: list[float], share: float) -> float:
    """Value below which ``share`` of the values lie, to three digits."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)


def _engine_us() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e6


def _zygote_us(pool: Pool) -> float:
    inner = pool if pool._wasm is None else pool._wasm
    if inner.zygote is None:
        return 0.0
    zygote = next(islice(tree(inner.zygote.launcher_pid), 1, None), 0)
    return 1000 * (main_thread_ms(zygote) or 0.0)


async def _one_at_a_time(meter: _Meter, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        await meter.one()
        await asyncio.sleep(0.004)


async def _open_loop(meter: _Meter, seconds: float, rate: float) -> None:
    chance = random.Random(7)
    loop = asyncio.get_running_loop()
    tasks = []
    due, end = loop.time(), loop.time() + seconds
    while due < end:
        due += chance.expovariate(rate)
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        tasks.append(loop.create_task(meter.one()))
    await asyncio.gather(*tasks)


async def _saturated(meter: _Meter, seconds: float, flying: int = 4) -> None:
    end = time.perf_counter() + seconds

    async def again() -> None:
        while time.perf_counter() < end:
            await meter.one()

    await asyncio.gather(*(again() for _ in range(flying)))


def measure(runtime: str, seconds: float, report: Callable[[Row], None]) -> list[Row]:
    """Return the rows of one attempt at a time, of the saturated pool, and of an open loop at a rate that it can bear.

    Args:
        runtime: one of :data:`RUNTIMES`.
        seconds: of each situation.
        report: called with each row as it comes.

    Raises:
        SandboxError: the host cannot raise the walls.
    """
    return asyncio.run(_measure(runtime, seconds, report))


async def _measure(runtime: str, seconds: float, report: Callable[[Row], None]) -> list[Row]:
    bundle = Bundle({"main.js": _SCRIPT})
    if runtime == "wasm":
        from wasmtime import wat2wasm

        bundle = Bundle({}, wasm=bytes(wat2wasm(_MODULE)))
    job = Job(bundle, tenant="bench")
    pool = Pool(runtime="quickjs" if runtime == "wasm" else runtime, profile="trusted")
    await pool.start()
    rows: list[Row] = []
    try:
        for _ in range(_WARM):
            await pool.run(job, NoHost())
        with recorded_deaths() as deaths:

            async def row(name: str, situation: Callable[[_Meter], Awaitable[None]]) -> None:
                meter = _Meter(runtime, name, pool, job, deaths)
                await situation(meter)
                rows.append(meter.row())
                report(rows[-1])

            await row("one at a time, 4 ms between", lambda meter: _one_at_a_time(meter, seconds))
            await row("saturated, 4 in flight", lambda meter: _saturated(meter, seconds))
            rate = min(MAX_RATE, rows[-1].per_s / 2)
            await row(f"open loop, {rate:.0f}/s", lambda meter: _open_loop(meter, seconds, rate))
    finally:
        await pool.stop()
    return rows


def budgets(runtime: str, rows: list[Row], isolate: dict[str, float]) -> list[Budget]:
    """Judge answer time and CPU of a runtime's rows as multiples of a new isolate's."""
    _, full, open_loop = rows
    answer, cpu = open_loop.answer_p50_ms / isolate["p50_ms"], full.cpu_us / 1000 / isolate["cpu_ms"]
    return [
        Budget(f"answer in the open loop (p50), {runtime}", "isolated-vm", MAX_ANSWER_RATIO, False, round(answer, 2)),
        Budget(f"CPU when saturated, {runtime}", "isolated-vm", MAX_CPU_RATIO, at_least=False, ratio=round(cpu, 2)),
    ]


def processes() -> dict[str, float]:
    """Return median milliseconds to start a bare process of this Python, and of Node where it is installed."""
    commands = {"python": [sys.executable, "-I", "-S", "-c", "print(sum(range(1000)))"]}
    node = shutil.which("node")
    if node is not None:
        commands["node"] = [node, "-e", "let n = 0; for (let i = 0; i < 1000; i++) n += i; console.log(n)"]
    return {name: round(median(_process_ms(command) for _ in range(15)), 2) for name, command in commands.items()}


def _process_ms(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000
