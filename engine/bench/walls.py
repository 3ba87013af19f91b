"""How far beyond its limit a script gets before it is stopped: of CPU time, of time, of memory, while every core is busy."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from lodger.engine.bench.load import BusyCores
from lodger.sandbox.job import Bundle, Job, LogLine, Reply, Report
from lodger.sandbox.limits import MIB, Limits
from lodger.sandbox.outcome import Outcome
from lodger.sandbox.pool import Pool

#: What is promised (DESIGN §10): 99 of 100 stops come within the first, every stop within the second.
P99_MS, MOST_MS = 100.0, 250.0
#: Memory above the limit, by the kernel's figure.
MOST_MIB = {"quickjs": 40.0, "quickjs-native": 16.0}


@dataclass(frozen=True, slots=True)
class Case:
    """A script that passes one limit. ``beyond`` gives how far, in ``unit``, from its report."""

    name: str
    code: str
    limits: Limits
    outcome: Outcome
    unit: str
    beyond: Callable[[Report, Limits], float]


def _cpu(report: Report, limits: Limits) -> float:
    return report.usage.cpu_ms - limits.cpu_ms


def _wall(report: Report, limits: Limits) -> float:
    return report.usage.wall_ms - limits.wall_ms


def _memory(report: Report, limits: Limits) -> float:
    return (report.usage.memory_peak_bytes - limits.memory_bytes) / MIB


_CPU = Limits(cpu_ms=50, wall_ms=60_000)
_WALL = Limits(cpu_ms=30_000, wall_ms=50)
_MEMORY = Limits(cpu_ms=10_000, wall_ms=60_000, memory_bytes=32 * MIB)
CASES = (
    Case("a loop", "for (;;);", _CPU, Outcome.CPU_LIMIT, "ms", _cpu),
    Case(
        "a built-in that never asks",
        "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
        _CPU,
        Outcome.CPU_LIMIT,
        "ms",
        _cpu,
    ),
    Case("a result that never ends", "return { toJSON() { for (;;); } }", _CPU, Outcome.CPU_LIMIT, "ms", _cpu),
    Case("a sleeper", "await new Promise((f) => setTimeout(f, 60000))", _WALL, Outcome.WALL_LIMIT, "ms", _wall),
    Case("a loop against the clock", "for (;;);", _WALL, Outcome.WALL_LIMIT, "ms", _wall),
    Case("objects without end", "const a = []; for (;;) a.push({})", _MEMORY, Outcome.MEMORY_LIMIT, "MiB", _memory),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """What was found of one case: how far beyond the limit, median, p99 and most; ``holds`` says whether the promise does."""

    runtime: str
    case: str
    unit: str
    samples: int
    p50: float
    p99: float
    most: float
    holds: bool

    def as_dict(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return asdict(self)


class _NoHost:
    async def call(self, name: str, arguments: str) -> Reply:
        return Reply(True, "null")

    def log(self, line: LogLine) -> None:
        pass


def overshoot(runtime: str, samples: int, told: Callable[[Figure], None]) -> list[Figure]:
    """Measure every case.

    Args:
        runtime: ``quickjs`` or ``quickjs-native``.
        samples: of each case.
        told: called with each figure as it comes.

    Raises:
        SandboxError: the host cannot raise the walls.
        RuntimeError: a script ended otherwise than by its limit.
    """
    return asyncio.run(_overshoot(runtime, samples, told))


async def _overshoot(runtime: str, samples: int, told: Callable[[Figure], None]) -> list[Figure]:
    pool = Pool(runtime=runtime, size=4)
    await pool.start()
    figures = []
    try:
        with BusyCores():
            for case in CASES:
                found = [await _sample(pool, case) for _ in range(samples)]
                figures.append(_figure(runtime, case, sorted(found)))
                told(figures[-1])
    finally:
        await pool.stop()
    return figures


async def _sample(pool: Pool, case: Case) -> float:
    report = await pool.run(Job(Bundle({"main.js": case.code}), case.limits, tag="bench"), _NoHost())
    if report.outcome is not case.outcome:
        raise RuntimeError(f"{case.name} ended as {report.outcome}, not as {case.outcome}: {report.error}")
    return case.beyond(report, case.limits)


def _figure(runtime: str, case: Case, found: list[float]) -> Figure:
    def at(share: float) -> float:
        return round(found[ceil(len(found) * share) - 1], 2)

    p99, most = at(0.99), round(found[-1], 2)
    holds = most <= MOST_MIB[runtime] if case.unit == "MiB" else p99 <= P99_MS and most <= MOST_MS
    return Figure(runtime, case.name, case.unit, len(found), at(0.5), p99, most, holds)
