"""Attempts per second, latency, CPU and page faults of the pool.

``PYTHONPATH=.dev python bench/pool.py [quickjs|quickjs-native|wasm|probe] [--seconds S] [--json] [--beside TREE [--rounds N]]``

Rows: one at a time with pauses · open loop (Poisson) at fixed rates · saturated with 2, 4 and 8 in flight. ``answer`` is the time from
hand-over to the verdict, ``run`` includes the kill and the reaper's word. CPU is per attempt and of all three: the worker from its fork to
its exit, the zygote, and this process. Page faults do not depend on what else the machine does.

``--beside`` names another checkout and takes turns with it, so that both meet the same noise; the last column is this tree over the other.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from lodger.sandbox import Bundle, Job, Pool, launcher
from lodger.sandbox.job import Reply

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
MODULE = """(module (memory (export "memory") 1) (func (export "_start") (local $i i32)
  (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))))"""
Figures = dict[str, Any]
RUNTIMES = ("quickjs", "quickjs-native", "wasm", "probe")


class NoHost:
    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(True, "null")

    def log(self, line: object) -> None:
        pass


def at(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)


class Meter:
    """What workers, zygote and this process have used so far."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.deaths: list[launcher.Death] = []
        real = launcher.WorkerEnd.ended

        def ended(worker: launcher.WorkerEnd, death: launcher.Death | None) -> None:
            if death is not None:
                self.deaths.append(death)
            real(worker, death)

        launcher.WorkerEnd.ended = ended

    def zygote_us(self) -> float:
        inner = self.pool if self.pool._wasm is None else self.pool._wasm
        pid = inner.zygote.launcher_pid
        child = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        return int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1000

    def engine_us(self) -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return (used.ru_utime + used.ru_stime) * 1e6


class Row:
    def __init__(self, name: str, meter: Meter) -> None:
        self.name, self.meter = name, meter
        self.total: list[float] = []
        self.answer: list[float] = []
        meter.deaths.clear()
        self.zygote, self.engine = meter.zygote_us(), meter.engine_us()
        self.started = time.perf_counter()

    async def one(self, pool: Pool, job: Job) -> None:
        began = time.perf_counter()
        report = await pool.run(job, NoHost())
        self.total.append((time.perf_counter() - began) * 1000)
        if report.outcome != "ok":
            raise SystemExit(f"an attempt ended as {report.outcome}: {report.error}")
        self.answer.append(report.usage.wall_ms)

    def finish(self) -> Figures:
        took, count = time.perf_counter() - self.started, len(self.total)
        worker = median(death.cpu_us for death in self.meter.deaths)
        zygote = (self.meter.zygote_us() - self.zygote) / count
        engine = (self.meter.engine_us() - self.engine) / count
        return {
            "row": self.name,
            "attempts": count,
            "per_s": round(count / took),
            "answer_p50_ms": at(self.answer, 0.5),
            "answer_p99_ms": at(self.answer, 0.99),
            "run_p50_ms": at(self.total, 0.5),
            "run_p99_ms": at(self.total, 0.99),
            "worker_us": round(worker),
            "zygote_us": round(zygote),
            "engine_us": round(engine),
            "cpu_us": round(worker + zygote + engine),
            "faults": round(median(death.minor_faults for death in self.meter.deaths)),
        }


async def idle(pool: Pool, job: Job, seconds: float, meter: Meter) -> Figures:
    row = Row("one at a time, 4 ms between", meter)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        await row.one(pool, job)
        await asyncio.sleep(0.004)
    return row.finish()


async def open_loop(pool: Pool, job: Job, seconds: float, meter: Meter, rate: int) -> Figures:
    row = Row(f"open loop, {rate}/s", meter)
    chance = random.Random(7)
    loop, tasks = asyncio.get_running_loop(), []
    due, end = loop.time(), loop.time() + seconds
    while due < end:
        due += chance.expovariate(rate)
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        tasks.append(loop.create_task(row.one(pool, job)))
    await asyncio.gather(*tasks)
    return row.finish()


async def saturated(pool: Pool, job: Job, seconds: float, meter: Meter, flying: int) -> Figures:
    row = Row(f"saturated, {flying} in flight", meter)
    end = time.perf_counter() + seconds

    async def again() -> None:
        while time.perf_counter() < end:
            await row.one(pool, job)

    await asyncio.gather(*(again() for _ in range(flying)))
    return row.finish()


async def measured(told: argparse.Namespace) -> list[Figures]:
    settings = {"without": told.without}
    bundle = Bundle({"main.js": SCRIPT})
    if told.runtime == "probe":
        settings["runtime_path"] = str(ROOT / "tests" / "escape" / "probe_runtime.py")
        bundle = Bundle({"main.js": "done(str(sum(range(1000))))"})
    elif told.runtime == "wasm":
        from wasmtime import wat2wasm

        bundle = Bundle({}, wasm=bytes(wat2wasm(MODULE)))
    runtime = told.runtime if told.runtime == "quickjs-native" else "quickjs"
    pool = Pool(runtime=runtime, settings=settings, profile="trusted")
    meter = Meter(pool)
    began = time.perf_counter()
    await pool.start()
    print(f"# ready after {(time.perf_counter() - began) * 1000:.0f} ms", file=sys.stderr)
    job = Job(bundle, tenant="bench")
    for _ in range(30):
        await pool.run(job, NoHost())
    rates, flying = ((600,), (4,)) if told.short else ((300, 600), (2, 4, 8))
    rows = [await idle(pool, job, told.seconds, meter)]
    rows += [await open_loop(pool, job, told.seconds, meter, rate) for rate in rates]
    rows += [await saturated(pool, job, told.seconds, meter, count) for count in flying]
    await pool.stop()
    return rows


def beside(told: argparse.Namespace) -> None:
    trees = {"other": Path(told.beside).resolve(), "this": ROOT}
    found: dict[str, list[list[Figures]]] = {name: [] for name in trees}
    for _ in range(told.rounds):
        for name, tree in trees.items():
            command = [sys.executable, __file__, told.runtime, "--seconds", str(told.seconds), "--json", "--short"]
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": str(tree / ".dev")},
                capture_output=True,
                text=True,
                check=True,
            )
            found[name].append([json.loads(line) for line in done.stdout.splitlines()])
    for number, row in enumerate(found["this"][0]):
        print(row["row"])
        for figure in list(row)[2:]:
            old, new = (median(rows[number][figure] for rows in found[name]) for name in trees)
            print(f"  {figure:15} {old:10.3f} {new:10.3f}   {new / old if old else 0:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtime", nargs="?", default="quickjs", choices=RUNTIMES)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true", help="three rows only")
    parser.add_argument("--without", default="")
    parser.add_argument("--beside", metavar="TREE")
    parser.add_argument("--rounds", type=int, default=5)
    told = parser.parse_args()
    if told.beside:
        beside(told)
        return
    for row in asyncio.run(measured(told)):
        print(json.dumps(row) if told.json else "  ".join(f"{name}={value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
