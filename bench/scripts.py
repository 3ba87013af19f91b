"""What real scripts cost: bundles compiled in each attempt, the same from their images, and in a new isolate of isolated-vm."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lodger.bench import peers
from lodger.bench.attempts import recorded_deaths
from lodger.bench.budget import Budget
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool
from lodger.sandbox.job import NoHost
from lodger.sandbox.wasm.code_cache import CodeCache
from lodger.stdlib import npm_packages, standard_modules

#: CPU of an attempt as a multiple of a new isolate's that compiles and runs the same modules; small scripts cost little beside the process.
MAX_RATIO, MAX_SMALL_RATIO, SMALL_BYTES = 0.6, 1.2, 16_384
TRIVIAL = "one line"
_TURNS = 3
_LIMITS = Limits(source_bytes=1 << 20, cpu_ms=5000)


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one script; CPU is that of an attempt's worker, the median.

    Attributes:
        size_bytes: all modules.
        compiled_ms: CPU time if each attempt compiles; ``image_ms`` from the image, None for a script without one.
        isolate_ms: of a new isolate; None without isolated-vm.
        compiled_faults, image_faults: page faults of the worker.
        compiled_peak_bytes, image_peak_bytes: memory beyond an idle worker's.
    """

    script: str
    size_bytes: int
    compiled_ms: float
    image_ms: float | None
    isolate_ms: float | None
    compiled_faults: float
    image_faults: float | None
    compiled_peak_bytes: int
    image_peak_bytes: int | None

    @property
    def ms(self) -> float:
        """CPU time of an attempt after the first."""
        return self.compiled_ms if self.image_ms is None else self.image_ms

    @property
    def ratio(self) -> float | None:
        """CPU time as a multiple of the isolate's."""
        return None if not self.isolate_ms else round(self.ms / self.isolate_ms, 2)

    @property
    def bound(self) -> float:
        """The promised multiple."""
        return MAX_SMALL_RATIO if self.size_bytes < SMALL_BYTES else MAX_RATIO

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON output."""
        return asdict(self) | {"ratio": self.ratio}


def programs() -> dict[str, dict[str, str]]:
    """Return the modules of each script by file name: one line, and each package that comes with Lodger."""
    found = {TRIVIAL: {"main.js": "export default () => 1"}}
    for name in npm_packages.imported():
        main = f'import * as all from "{name}"; export default () => Object.keys(all).length'
        found[name] = {"main.js": main, **standard_modules.imported({"main.js": main})}
    return found


async def measure(attempts: int, folder: Path | None, report: Callable[[Row], None]) -> list[Row]:
    """Measure every script with so many attempts each; ``report`` gets each row.

    Both ways and the isolates take turns, and the least of all turns counts: other work on the machine cannot favour one of them.
    """
    rows = []
    each = -(-attempts // _TURNS)
    pools = [Pool(profile="trusted"), Pool(profile="trusted", code_cache=CodeCache())]
    try:
        for pool in pools:
            await pool.start()
        for name, modules in programs().items():
            job = Job(Bundle({"main.js": modules["main.js"]}), _LIMITS, tenant="bench")
            size = sum(len(text.encode()) for text in modules.values())
            used = pools if name != TRIVIAL and await pools[1].compile(job) else pools[:1]
            turns: list[list[tuple[float, float, int]]] = []
            isolates: list[float] = []
            for _ in range(_TURNS):
                isolates += peers.compile_in_isolates(folder, {name: modules}, each).values()
                turns.append([await _attempts(pool, job, each) for pool in used])
            compiled, *image = ([min(of) for of in zip(*way, strict=True)] for way in zip(*turns, strict=True))
            (ms, image_ms), faults, peaks = zip(compiled, *image or [[None] * 3], strict=True)
            row = Row(name, size, ms, image_ms, min(isolates, default=None), *faults, *peaks)
            rows.append(row)
            report(row)
    finally:
        for pool in pools:
            await pool.stop()
    return rows


async def _attempts(pool: Pool, job: Job, number: int) -> tuple[float, float, int]:
    """Return median CPU time in milliseconds, page faults and memory peak of attempts one after another."""
    reports = []
    with recorded_deaths() as deaths:
        for _ in range(number + 1):  # the first one's worker was forked before the others'
            await asyncio.sleep(0.004)
            deaths.clear()
            report = await pool.run(job, NoHost())
            if report.outcome is not Outcome.OK:
                raise RuntimeError(f"{report.outcome}: {report.error}")
            reports.append((report.usage, deaths[0].minor_faults if deaths else 0))
    usages = [usage for usage, _ in reports[1:]]
    return (
        round(median(usage.cpu_ms for usage in usages), 2),
        median(faults for _, faults in reports[1:]),
        round(median(usage.memory_peak_bytes for usage in usages)),
    )


def budgets(rows: list[Row]) -> list[Budget]:
    """Judge the CPU of scripts as multiples of a new isolate's."""
    return [
        Budget(f"script with {row.script}", "isolated-vm", row.bound, at_least=False, ratio=row.ratio) for row in rows
    ]
