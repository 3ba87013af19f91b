"""A process with a pool: one armed worker blocked in a call, others ready. Prints their process ids, then waits for the end of its input.

Run as ``python standing_pool.py PACKAGES SETTINGS_JSON CODE``, so that it can run as another user and be killed.
"""

import asyncio
import json
import sys
from pathlib import Path

sys.path[:0] = [sys.argv[1], str(Path(__file__).resolve().parents[2])]

from tests.escape.matrix.pools import WeakPool

from lodger.sandbox import Bundle, Job, Limits
from lodger.sandbox.job import LogLine, Reply


class Holding:
    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def call(self, name: str, arguments: str) -> Reply:
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    def log(self, line: LogLine) -> None:
        self.reached.set()


async def main() -> None:
    pool = WeakPool(json.loads(sys.argv[2]), size=2, profile="trusted")
    await pool.start()
    host = Holding()
    oldest = pool.ready[0]
    code = sys.argv[3] if len(sys.argv) > 3 else 'ask(1, "hold", "[]"); hear()'
    job = Job(Bundle({"main.js": code}), Limits(wall_ms=60_000, cpu_ms=30_000))
    running = asyncio.create_task(pool.run(job, host))
    await host.reached.wait()
    while not pool.ready:  # noqa: ASYNC110 - the pool announces readiness to run() only
        await asyncio.sleep(0.005)
    assert pool.zygote is not None
    launcher = pool.zygote.launcher_pid
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()  # noqa: ASYNC240 - procfs does not block
    said = {
        "armed": oldest,
        "ready": pool.ready[0],
        "launcher": launcher,
        "zygote": int(children[0]),
        "walls": pool.walls,
    }
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.add_reader(0, lambda: ended.done() or ended.set_result(None))
    await ended
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await pool.stop()


asyncio.run(main())
