"""The promised ratios, measured beside their peers in one run: what is kept, and what is missed by how much."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lodger.bench import attempts, rules, runs, scripts

RATE = 50.0
TENANTS = 20


@dataclass(frozen=True, slots=True)
class Budget:
    """One promise.

    Attributes:
        bound: the promised ratio; ``at_least`` says in which direction.
        ratio: the measured one, None if its peer is not installed.
    """

    name: str
    peer: str
    bound: float
    at_least: bool
    ratio: float | None

    @property
    def missed(self) -> float | None:
        """By which share of the bound it is missed; 0 if it is kept, None if it was not measured."""
        if self.ratio is None:
            return None
        beyond = self.bound - self.ratio if self.at_least else self.ratio - self.bound
        return max(0.0, beyond / self.bound)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON output."""
        return asdict(self) | {"missed": self.missed}


def measure(number: int, url: str | None, folder: Path | None) -> Iterator[Budget]:
    """Measure all promises, each when it is asked for.

    Args:
        number: slots of each load of whole runs, and questions of the others in proportion.
        url: an empty PostgreSQL database; None for SQLite alone.
        folder: where the peers are installed, see :mod:`lodger.bench.peers`.
    """
    lone = runs.measure(number, TENANTS, RATE, folder=folder)
    yield from whole_runs("SQLite", lone, 0.7, None, 0.5)
    if (isolate := lone.peers.get("isolated-vm")) is not None:
        rows = attempts.measure("quickjs", min(3.0, number / 100), lambda _row: None)
        yield Budget("trivial script", "isolated-vm", 1.0, False, attempts.ratios(rows, isolate)["answer"])
    if url is not None:
        near = runs.measure(number, TENANTS, RATE, url=url, folder=folder)
        yield from whole_runs("PostgreSQL", near, 0.5, 0.8, 0.7)
        far = runs.measure(number, TENANTS, RATE, url=url, folder=folder, rtt_ms=1.0)
        yield _ratio("whole runs, PostgreSQL 1 ms away", "loopback", 0.8, far.rows[0].per_s, near.rows[0].per_s)
        yield _ratio("whole runs, PostgreSQL 1 ms away", "graphile-worker", 0.8, far.rows[0].per_s, _jobs_per_s(far))
    for row in asyncio.run(scripts.measure(max(3, number // 20), folder, lambda _row: None)):
        yield Budget(f"script with {row.script}", "isolated-vm", row.bound, at_least=False, ratio=row.ratio)
    for rule in rules.measure():
        if rule["cronsim"] is not None:
            yield Budget(f"next slot of {rule['rule']}", "cronsim", 0.5, False, rule["lodger"] / rule["cronsim"])


def whole_runs(
    place: str, measured: runs.Measured, of_pool: float, of_queue: float | None, engine: float
) -> Iterator[Budget]:
    """Judge whole runs by the promised shares of the pool, of the queue (None: not promised), and of the attempt's CPU."""
    burst, half, _alone = measured.rows
    pool = measured.pool
    yield _ratio(f"whole runs, {place}", "the bare pool", of_pool, burst.per_s, pool.per_s)
    if of_queue is not None:
        yield _ratio(f"whole runs, {place}", "graphile-worker", of_queue, burst.per_s, _jobs_per_s(measured))
    cpu = half.engine_ms / (half.zygote_ms + half.worker_ms)
    yield Budget(f"engine's CPU of a run, {place}", "the attempt's", engine, at_least=False, ratio=cpu)
    for name, delay_ms, bound in (("p50", half.start_p50_ms, 1.0), ("p99", half.start_p99_ms, 5.0)):
        yield Budget(f"due to start, {name}, {place}", "the pool's answer", bound, False, delay_ms / pool.answer_p50_ms)


def _ratio(name: str, peer: str, bound: float, ours: float, theirs: float | None) -> Budget:
    return Budget(name, peer, bound, at_least=True, ratio=None if not theirs else ours / theirs)


def _jobs_per_s(measured: runs.Measured) -> float | None:
    return measured.peers.get("graphile-worker", {}).get("scripts_per_s")
