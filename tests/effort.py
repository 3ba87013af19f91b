"""What work costs: CPU time of this thread, the least of a few times; neither the machine's other work nor a collection counts."""

from collections.abc import Callable
from time import thread_time


def min_cpu_s(work: Callable[[], object], times: int = 3) -> float:
    """Return the CPU seconds of the cheapest of so many times."""
    costs = []
    for _ in range(times):
        begun = thread_time()
        work()
        costs.append(thread_time() - begun)
    return min(costs)
