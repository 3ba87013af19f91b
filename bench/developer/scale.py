"""A node with very many schedules: what it costs while nothing is due.

``python bench/developer/scale.py [--schedules 100000] [--tenants 1000] [--full] [--database sqlite|postgresql|URL] [--check]``.
``--full`` is 1 000 000 schedules of 10 000 tenants. CPU time and memory of the node with its workers, from the kernel.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lodger.bench import crowd
from lodger.bench.load import tree
from lodger.engine import Engine
from lodger.engine.core.settings import Settings

SOURCE = "export default () => null"
#: What the design promises.
IDLE_PERCENT = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with suppress(OSError):  # a worker that has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def memory_mib(pids: list[int]) -> float:
    """What they hold of the machine's memory, what they share counted once."""
    total = 0
    for pid in pids:
        with suppress(OSError):  # a worker that has ended
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


async def idle(seconds: float) -> dict[str, float]:
    """Watch this process, in which the node is, and its workers, while nothing is due: five seconds after five seconds.

    The middle one counts: what makes a node ready at its start, or something else on the machine, is in some of them.
    """
    spans: list[float] = []
    memory: list[float] = []
    for _ in range(max(3, round(seconds / 5))):
        pids = list(tree(os.getpid()))
        cpu, begun = cpu_s(pids), time.monotonic()
        await asyncio.sleep(5)
        spans.append(100 * (cpu_s(pids) - cpu) / (time.monotonic() - begun))
        memory.append(memory_mib(pids))
    return {
        "idle_cpu_percent": sorted(spans)[len(spans) // 2],
        "idle_cpu_percent_least": min(spans),
        "idle_cpu_percent_most": max(spans),
        "memory_mib": memory[-1],
        "memory_grown_mib": memory[-1] - memory[len(memory) // 2],
    }


async def measure(url: str, arguments: argparse.Namespace, say: Callable[[str], None]) -> dict[str, float]:
    settings = Settings(sqlite_synchronous="NORMAL", min_interval_s=1)
    async with Engine.open(url, settings=settings) as engine:
        begun = time.monotonic()
        crowd.fill(engine.inner, arguments.schedules, arguments.tenants, SOURCE)
        say(f"{arguments.schedules} schedules of {arguments.tenants} tenants in {time.monotonic() - begun:.0f} s")
        async with engine.node():
            figures = await idle(arguments.idle)
        say(f"idle: {figures['idle_cpu_percent']:.2f} % of a core ({figures['idle_cpu_percent_least']:.2f} to "
            f"{figures['idle_cpu_percent_most']:.2f}), {figures['memory_mib']:.0f} MiB, {figures['memory_grown_mib']:+.1f} MiB "
            f"in the last {arguments.idle / 2:.0f} s")  # fmt: skip
    return figures


@contextmanager
def place(wanted: str) -> Iterator[str]:
    """Return the address of the ledger."""
    if "://" in wanted:
        yield wanted
    elif wanted == "postgresql":
        sys.path.append(str(Path(__file__).resolve().parents[2]))
        from tests.databases import server

        own = server.own()
        try:
            yield own.url(own.database())
        finally:
            own.remove()
    else:
        with tempfile.TemporaryDirectory(prefix="lodger-scale-") as folder:
            yield str(Path(folder) / "ledger.db")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--full", action="store_true", help="1 000 000 schedules of 10 000 tenants")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds")
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 when a promise does not hold")
    arguments = parser.parse_args()
    if arguments.full:
        arguments.schedules, arguments.tenants = 1_000_000, 10_000

    def say(text: str) -> None:
        if not arguments.json:
            print(text, flush=True)

    with place(arguments.database) as url:
        figures = asyncio.run(measure(url, arguments, say))
    if arguments.json:
        print(json.dumps({name: round(value, 3) for name, value in figures.items()}))
    sys.exit(int(arguments.check and figures["idle_cpu_percent"] >= IDLE_PERCENT))


if __name__ == "__main__":
    main()
