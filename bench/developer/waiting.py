"""A quiet tenant's lateness alone, beside runs that never end, and beside runs that wait for an answer; time and memory of the latter.

``python bench/developer/waiting.py [WAITING [LOOPS]]``, by default 1000 and 300. One node on embedded SQLite with its defaults. Lateness is
from the due instant to the start, by the events of the node; memory is that of all processes, shared pages counted once.
"""

import asyncio
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from scale import memory_mib

from lodger.bench.load import tree
from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.settings import Settings
from lodger.engine.recurrence.rule import RuleSpec

ANSWER_AFTER_S = 2
#: Schedules of the quiet tenant with a slot each second, and slots that are measured.
SCHEDULES, PROBES = 4, 40
TENANTS = 20


async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request after two seconds."""
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(ANSWER_AFTER_S)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
    writer.close()


async def probes(late: "asyncio.Queue[float]") -> list[float]:
    """Return the lateness of a quiet tenant's next slots, milliseconds."""
    while not late.empty():
        late.get_nowait()
    return [await late.get() for _ in range(PROBES)]


def show(name: str, late_ms: list[float]) -> None:
    """Print one row."""
    print(f"{name:34} p50 {median(late_ms):6.1f} ms   p99 {quantiles(late_ms, n=100)[98]:6.1f} ms", flush=True)


async def main(waiting: int, loops: int) -> None:
    """Measure alone, beside loops, beside waiting runs."""
    server = await asyncio.start_server(answer_late, "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    settings = Settings(
        egress_networks="127.0.0.1/32",
        egress_ports=str(port),
        egress_per_s=10_000,
        egress_host_per_s=10_000,
        min_interval_s=1,
    )
    late: asyncio.Queue[float] = asyncio.Queue()
    ended: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def heard(event: Event) -> None:
        if event.tenant_id == "quiet" and event.kind == "started":
            loop.call_soon_threadsafe(late.put_nowait, event.details["lateness_ms"])
        elif event.kind == "finished" and event.tenant_id != "quiet":
            loop.call_soon_threadsafe(ended.put_nowait, str(event.details["outcome"].value))

    with tempfile.TemporaryDirectory() as folder:
        async with Engine.open(f"{folder}/l.db", settings=settings) as engine:
            engine.on_event(heard)
            await engine.tenants.create("quiet")
            await engine.scripts.put("quiet", "s", "return 1")
            for number in range(TENANTS):
                tenant, limits = f"busy{number}", {"concurrent_runs": waiting, "wall_ms": 60_000, "cpu_ms": 500}
                await engine.tenants.create(tenant, grants=[f"fetch:http://127.0.0.1:{port}"], limits=limits)
                await engine.scripts.put(tenant, "waits", f"return (await fetch('http://127.0.0.1:{port}/')).status")
                await engine.scripts.put(tenant, "loops", "for (;;);")
            async with engine.node():
                for number in range(SCHEDULES):
                    begin = datetime.fromtimestamp(int(time.time()) + number / SCHEDULES, UTC)
                    rule = RuleSpec("every 1s", dtstart=begin.isoformat())
                    await engine.schedules.create("quiet", f"s{number}", script="s", rules=rule)
                await probes(late)  # the first runs pay for what is made once
                show("alone", await probes(late))
                for script, number in (("loops", loops), ("waits", waiting)):
                    for each in range(number):
                        await engine.run_in(f"busy{each % TENANTS}", script, 0)
                    begun = time.monotonic()
                    most = [0.0]
                    watch = asyncio.create_task(watched_memory(most))
                    show(f"beside {number} runs of {script}", await probes(late))
                    outcomes = [await ended.get() for _ in range(number)]
                    watch.cancel()
                    took, kinds = time.monotonic() - begun, sorted(set(outcomes))
                    print(
                        f"{'':34} {number} ended {took:.1f} s after the last was asked for, as {kinds}, at most {max(most):.0f} MiB",
                        flush=True,
                    )
    server.close()


async def watched_memory(most: list[float]) -> None:
    """Note the memory of this process and all below it, twice a second."""
    while True:
        most.append(await asyncio.to_thread(lambda: memory_mib(list(tree(os.getpid())))))
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    given = [int(each) for each in sys.argv[1:]]
    asyncio.run(main(*given, *(1000, 300)[len(given) :]))
