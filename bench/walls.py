"""How far beyond its limit a program gets before it is stopped: of CPU time, of time, of memory, while every core is busy."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from lodger.bench.load import BusyCores
from lodger.bench.wall_cases import MAX_MIB, Case, bundle, cases
from lodger.sandbox.job import Job, NoHost
from lodger.sandbox.pool import Pool

#: What is promised: 99 of 100 stops come within the first, every stop within the second.
P99_MS, MAX_MS = 100.0, 250.0


#: Columns of :func:`spread`.
COLUMNS = 30
_HEIGHTS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Figure:
    """What was found of one case: how far beyond the limit.

    Attributes:
        values: of each sample, rising.
        holds: whether the promise does.
    """

    runtime: str
    case: str
    unit: str
    samples: int
    p50: float
    p99: float
    maximum: float
    holds: bool
    values: tuple[float, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def overshoot(runtime: str, samples: int, report: Callable[[Figure], None]) -> list[Figure]:
    """Measure every case of a runtime.

    Args:
        runtime: ``quickjs``, ``quickjs-native`` or ``wasm``.
        samples: of each case.
        report: called with each figure as it comes.

    Raises:
        SandboxError: the host cannot raise the walls.
        RuntimeError: a program ended otherwise than by its limit.
    """
    return asyncio.run(_overshoot(runtime, samples, report))


async def _overshoot(runtime: str, samples: int, report: Callable[[Figure], None]) -> list[Figure]:
    pool = Pool(runtime="quickjs" if runtime == "wasm" else runtime, size=4)
    await pool.start()
    figures = []
    try:
        for case in cases(runtime):
            job = Job(bundle(runtime, case), case.limits, tag="bench", tenant="bench")
            if job.bundle.wasm is not None:
                await (await pool.for_modules()).compile(job)
            with BusyCores():
                found = [await _sample(pool, case, job) for _ in range(samples)]
            figures.append(figure(runtime, case, sorted(found)))
            report(figures[-1])
    finally:
        await pool.stop()
    return figures


async def _sample(pool: Pool, case: Case, job: Job) -> float:
    report = await pool.run(job, NoHost())
    if report.outcome is not case.outcome:
        raise RuntimeError(f"{case.name} ended as {report.outcome}, not as {case.outcome}: {report.error}")
    return case.beyond(report, case.limits)


def figure(runtime: str, case: Case, found: list[float]) -> Figure:
    """Judge what was found, in rising order."""

    def at(share: float) -> float:
        return round(found[ceil(len(found) * share) - 1], 2)

    p99, maximum = at(0.99), round(found[-1], 2)
    holds = maximum <= MAX_MIB[runtime] if case.unit == "MiB" else p99 <= P99_MS and maximum <= MAX_MS
    values = tuple(round(value, 2) for value in found)
    return Figure(runtime, case.name, case.unit, len(found), at(0.5), p99, maximum, holds, values)


def spread(figure: Figure) -> str:
    """Draw how the samples lie between the limit and what is promised; what is outside stands at the ends."""
    end = MAX_MIB[figure.runtime] if figure.unit == "MiB" else P99_MS
    counts = [0] * COLUMNS
    for value in figure.values:
        counts[max(0, min(COLUMNS - 1, int(value / end * COLUMNS)))] += 1
    highest = max(counts)
    return "".join(_HEIGHTS[-(-count * (len(_HEIGHTS) - 1) // highest)] for count in counts)
