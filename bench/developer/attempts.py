"""Attempts per second with the ledger: actions of a real node, in real walls, on SQLite, and what the pool alone does in the same run.

``python bench/developer/attempts.py [ACTIONS] [quickjs|quickjs-native]``; wants a quiet machine. Every action is claimed, run in a
fresh locked worker, and committed with its result, attempt and usage.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from lodger.bench.load import NoHost
from lodger.engine import Engine
from lodger.engine.core.events import Event
from lodger.engine.core.settings import Settings
from lodger.engine.node.executors.sandbox_executor import SandboxExecutor
from lodger.sandbox import Bundle, Job

SCRIPT = "export default function () { let n = 0; for (let i = 0; i < 1000; i++) n += i; return n; }"
TENANTS = 20


async def alone(executor: SandboxExecutor, seconds: float) -> float:
    """Attempts per second of the pool, four in flight."""
    job, ran, end = Job(Bundle({"main.js": SCRIPT})), 0, time.perf_counter() + seconds

    async def again() -> None:
        nonlocal ran
        while time.perf_counter() < end:
            await executor.pool.run(job, NoHost())
            ran += 1

    began = time.perf_counter()
    await asyncio.gather(*(again() for _ in range(4)))
    return ran / (time.perf_counter() - began)


async def main(count: int, runtime: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(runtime=runtime, concurrent_runs=100, slots=16)
        async with Engine.open(str(Path(folder) / "ledger.db"), settings=settings) as engine:
            for number in range(TENANTS):
                await engine.tenants.create(f"t{number}")
                await engine.scripts.put(f"t{number}", "job", SCRIPT, force=True)
            for number in range(count):
                await engine.run_in(f"t{number % TENANTS}", "job", 0)
            executor = SandboxExecutor.of(engine.inner.host)
            await executor.start()
            before = await alone(executor, 3)
            done, ran = asyncio.Event(), 0

            def on_event(event: Event) -> None:
                nonlocal ran
                ran += event.kind == "finished"
                if ran == count:
                    done.set()

            engine.on_event(on_event)
            began, used = time.perf_counter(), time.process_time()
            async with engine.node(executor, "bench"):
                await done.wait()
                took, used = time.perf_counter() - began, time.process_time() - used
            print(f"{runtime}: pool alone {before:.0f}/s; with the ledger {count / took:.0f}/s, ", end="")
            print(f"{used / count * 1e6:.0f} µs of the engine's CPU each")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(int(arguments[0]) if arguments else 2000, arguments[1] if len(arguments) > 1 else "quickjs"))
