"""Attempts per second and latency of the pool: ``PYTHONPATH=.dev python bench/pool.py [quickjs|probe] [--seconds S] [--json]``.

Rows: one at a time with pauses · open loop (Poisson) at fixed rates · saturated with 2, 4 and 8 in flight. Latency is from ``run()`` to its
report, which includes the kill and the reaper's word; ``answer`` is the time from hand-over to the verdict.
"""

import argparse
import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path

from lodger.sandbox import Bundle, Job, Outcome, Pool
from lodger.sandbox.job import LogLine, Reply

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {
    "quickjs": "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }",
    "probe": "done(str(sum(range(1000))))",
}


class NoHost:
    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(True, "null")

    def log(self, line: LogLine) -> None:
        pass


def at(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)


class Row:
    def __init__(self, name: str) -> None:
        self.name = name
        self.total: list[float] = []
        self.answer: list[float] = []
        self.cpu: list[float] = []
        self.took = self.engine = 0.0
        self.started = time.perf_counter()
        self.usage = resource.getrusage(resource.RUSAGE_SELF)

    async def one(self, pool: Pool, job: Job) -> None:
        began = time.perf_counter()
        report = await pool.run(job, NoHost())
        self.total.append((time.perf_counter() - began) * 1000)
        if report.outcome is not Outcome.OK:
            raise SystemExit(f"an attempt ended as {report.outcome}: {report.error}")
        self.answer.append(report.usage.wall_ms)
        self.cpu.append(report.usage.cpu_ms)

    def finish(self) -> "Row":
        self.took = time.perf_counter() - self.started
        now = resource.getrusage(resource.RUSAGE_SELF)
        self.engine = (now.ru_utime + now.ru_stime - self.usage.ru_utime - self.usage.ru_stime) / len(self.total)
        return self

    def as_dict(self) -> dict[str, object]:
        return {
            "row": self.name,
            "attempts": len(self.total),
            "per_s": round(len(self.total) / self.took),
            "answer_p50_ms": at(self.answer, 0.5),
            "answer_p99_ms": at(self.answer, 0.99),
            "run_p50_ms": at(self.total, 0.5),
            "run_p99_ms": at(self.total, 0.99),
            "job_cpu_p50_ms": at(self.cpu, 0.5),
            "engine_cpu_us": round(self.engine * 1e6),
        }


async def idle(pool: Pool, job: Job, seconds: float) -> Row:
    row = Row("one at a time, 4 ms between")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        await row.one(pool, job)
        await asyncio.sleep(0.004)
    return row.finish()


async def open_loop(pool: Pool, job: Job, seconds: float, rate: int) -> Row:
    row = Row(f"open loop, {rate}/s")
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


async def saturated(pool: Pool, job: Job, seconds: float, flying: int) -> Row:
    row = Row(f"saturated, {flying} in flight")
    end = time.perf_counter() + seconds

    async def again() -> None:
        while time.perf_counter() < end:
            await row.one(pool, job)

    await asyncio.gather(*(again() for _ in range(flying)))
    return row.finish()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runtime", nargs="?", default="quickjs", choices=sorted(SCRIPTS))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--without", default="")
    told = parser.parse_args()
    settings = {"without": told.without}
    if told.runtime == "probe":
        settings["runtime_path"] = str(ROOT / "tests" / "escape" / "probe_runtime.py")
    pool = Pool(runtime=told.runtime, settings=settings, profile="trusted")
    began = time.perf_counter()
    await pool.start()
    print(f"# ready after {(time.perf_counter() - began) * 1000:.0f} ms", file=sys.stderr)
    job = Job(Bundle({"main.js": SCRIPTS[told.runtime]}))
    rows = [await idle(pool, job, told.seconds)]
    rows += [await open_loop(pool, job, told.seconds, rate) for rate in (300, 600)]
    rows += [await saturated(pool, job, told.seconds, flying) for flying in (2, 4, 8)]
    await pool.stop()
    for row in rows:
        facts = row.as_dict()
        print(json.dumps(facts) if told.json else "  ".join(f"{name}={value}" for name, value in facts.items()))


asyncio.run(main())
