"""Plays many worlds, counts their events, and reports how to reproduce those that break a law."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from time import process_time
from typing import Any

from tests.sim.simulator import trace
from tests.sim.simulator.laws import Broken
from tests.sim.simulator.plan import Plan, Shape, draw_plan
from tests.sim.simulator.shrink import Shrunk, shorten
from tests.sim.simulator.world import World

from lodger.engine.core.clock import SystemClock
from lodger.engine.store.connection.database import Database

Prepare = Callable[[Database], None]


@dataclass(frozen=True, slots=True)
class Played:
    """Result of one world.

    Attributes:
        figures: counted events.
        seconds: real time; ``cpu_s`` is CPU time.
        law: the broken law, with detail and virtual second; None if all held.
        recent: the last events before that, in words.
    """

    seed: int
    figures: dict[str, int]
    seconds: float
    law: str | None = None
    detail: str = ""
    at_s: float = 0.0
    recent: tuple[str, ...] = ()
    cpu_s: float = 0.0


@dataclass(slots=True)
class Proof:
    """Result of many worlds."""

    worlds: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    figures: Counter[str] = field(default_factory=Counter)
    failures: list[Played] = field(default_factory=list)

    def add(self, played: Played) -> None:
        """Add the result of a world."""
        self.worlds += 1
        self.cpu_s += played.cpu_s
        self.figures.update(played.figures)
        if played.law is not None:
            self.failures.append(played)

    @property
    def per_minute(self) -> float:
        """Slots with their own rows per minute of real time."""
        return self.figures["slots"] / self.seconds * 60 if self.seconds else 0.0

    @property
    def per_cpu_minute(self) -> float:
        """Slots with their own rows per minute of CPU time, for whole worlds including the audit."""
        return self.figures["slots"] / self.cpu_s * 60 if self.cpu_s else 0.0

    @property
    def per_minute_in_all(self) -> float:
        """Slots per minute of real time, including those in gap rows."""
        return self.per_minute + (self.figures["slots_in_gaps"] / self.seconds * 60 if self.seconds else 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the object for ``--json``."""
        return {
            "worlds": self.worlds,
            "seconds": round(self.seconds, 3),
            "slots_per_minute": round(self.per_minute),
            "slots_per_cpu_minute": round(self.per_cpu_minute),
            "slots_per_minute_with_gaps": round(self.per_minute_in_all),
            "figures": dict(sorted(self.figures.items())),
            "failures": [
                {"seed": each.seed, "law": each.law, "detail": each.detail, "at_s": each.at_s} for each in self.failures
            ],
        }


def play(plan: Plan, *, url: str | None = None, prepare: Prepare | None = None) -> Played:
    """Play one world until its end or a broken law, and return the result."""
    clock = SystemClock()
    begun, worked = clock.elapsed_s(), process_time()
    broke: dict[str, Any] = {}
    with World(plan, url=url, prepare=prepare) as world:
        try:
            world.run()
        except Broken as broken:
            broke = {"law": broken.law, "detail": broken.detail, "at_s": world.loop.time()}
            broke["recent"] = tuple(trace.lines(world.recent))
        figures = dict(world.figures)
    return Played(plan.seed, figures, clock.elapsed_s() - begun, cpu_s=process_time() - worked, **broke)


def prove(
    seeds: Iterable[int],
    shape: Shape,
    reported: Callable[[Played], None],
    *,
    enough: Callable[[Proof], bool] = lambda _proof: False,
    jobs: int = 1,
) -> Proof:
    """Play the worlds of these seeds and return the result, which does not depend on ``jobs``.

    Args:
        reported: called with each result, in the order of seeds.
        enough: called after each world; True ends the run, so that ``seeds`` may be infinite.
        jobs: number of processes.
    """
    clock, proof = SystemClock(), Proof()
    begun = clock.elapsed_s()
    for played in _play_each(iter(seeds), shape, jobs):
        proof.add(played)
        proof.seconds = clock.elapsed_s() - begun
        reported(played)
        if enough(proof):
            break
    return proof


def _play_each(seeds: Iterator[int], shape: Shape, jobs: int) -> Iterator[Played]:
    """Yield the results of worlds in the order of their seeds."""
    if jobs == 1:
        for seed in seeds:
            yield play(draw_plan(seed, shape))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # More worlds than processes: a process with a short world does not wait for an earlier long one.
        waiting = deque(pool.submit(_play_seed, seed, shape) for seed in islice(seeds, 3 * jobs))
        try:
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(_play_seed, seed, shape) for seed in islice(seeds, 1))
        finally:
            for each in waiting:
                each.cancel()


def _play_seed(seed: int, shape: Shape) -> Played:
    import logging

    logging.getLogger("lodger").setLevel(logging.CRITICAL)  # failures of the database are expected
    return play(draw_plan(seed, shape))


def shortened(plan: Plan, played: Played, seconds: float, *, prepare: Prepare | None = None) -> Shrunk:
    """Shorten the plan of a world that broke a law, within a time limit, and return the result."""
    clock = SystemClock()
    until = clock.elapsed_s() + seconds

    def again(shorter: Plan) -> tuple[Broken, float] | None:
        found = play(shorter, prepare=prepare)
        return None if found.law is None else (Broken(found.law, found.detail), found.at_s)

    assert played.law is not None
    broken = Broken(played.law, played.detail)
    return shorten(plan, broken, played.at_s, again, lambda: clock.elapsed_s() > until)
