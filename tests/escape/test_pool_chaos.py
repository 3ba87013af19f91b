"""Bombs, cancellations and kills of workers, zygotes and launchers at once: every attempt ends with a verdict, no process is left.

Seeded; ``LODGER_CHAOS_S`` sets the duration. Only children of this process are killed.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter

import pytest
from tests.escape.commands import HELLO, LOOP, command
from tests.escape.probing import Echo

from lodger.escape.invariants import children
from lodger.sandbox import Bundle, Job, Limits, Outcome, Pool
from lodger.sandbox.errors import ZygoteFailed

SECONDS = float(os.environ.get("LODGER_CHAOS_S", "1"))
PATIENCE_S = 60
SCRIPTS = (
    "return 1",
    "for (;;);",
    "const a = []; for (;;) a.push({})",
    "(function f() { f() })()",
    "throw 1",
    "await new Promise((r) => setTimeout(r, 30))",
    "for (;;) await kv.get('k')",
    "return 'x'.repeat(300000)",
    "for (;;) console.log('x'.repeat(9000))",
    "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
)
MODULES = (
    HELLO,
    LOOP,
    command("unreachable"),
    command("(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable"),
    command("(call $f)", extra="(func $f (call $f))"),
    b"\0asm",
)
#: Outcomes that no attempt may have: a fault of the engine or a protocol error.
NEVER = {Outcome.ENGINE_FAULT, Outcome.PROTOCOL_ERROR}


class Storm:
    """Random attempts and kills from one seed."""

    def __init__(self, runtime: str, seed: int) -> None:
        self.runtime = runtime
        self.pool = Pool(runtime="quickjs" if runtime == "wasm" else runtime, size=3)
        self.drawn = random.Random(f"{runtime}/{seed}")
        self.until = time.monotonic() + SECONDS
        self.ended: Counter[str] = Counter()
        self.others = set(children(os.getpid()))

    def launchers(self) -> list[int]:
        """Return new children of this process, without earlier ones such as a database."""
        return [child for child in children(os.getpid()) if child not in self.others]

    def job(self) -> Job:
        draw = self.drawn
        limits = Limits(cpu_ms=60, wall_ms=700, memory_bytes=24 << 20)
        if self.runtime != "wasm":
            return Job(Bundle({"main.js": draw.choice(SCRIPTS)}), limits, now_us=1, tenant=draw.choice("abc"))
        again = (
            b"" if draw.random() < 0.7 else b"\0\2\1" + bytes([draw.randrange(97, 120)])
        )  # an unknown section, so that the module is compiled again
        return Job(Bundle({}, wasm=draw.choice(MODULES) + again), limits, now_us=1, tenant=draw.choice("abc"))

    async def attempts(self) -> None:
        while time.monotonic() < self.until:
            running = asyncio.ensure_future(self.pool.run(self.job(), Echo()))
            if self.drawn.random() < 0.15:
                await asyncio.sleep(self.drawn.random() * 0.05)
                running.cancel()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    self.ended[(await running).outcome] += 1
            except asyncio.CancelledError:
                self.ended["taken back"] += 1
            except ZygoteFailed:  # killed while it was starting
                self.ended["no zygote"] += 1

    async def kills(self) -> None:
        while time.monotonic() < self.until:
            await asyncio.sleep(self.drawn.random() * 0.3)
            launchers = self.launchers()
            zygotes = [zygote for launcher in launchers for zygote in children(launcher)]
            workers = [worker for zygote in zygotes for worker in children(zygote)]
            drawn = self.drawn.random()
            victims = workers if drawn < 0.75 else zygotes if drawn < 0.92 else launchers
            # A stopped compiler ends only after a minute: two of them would exceed the test's timeout.
            ways = (signal.SIGKILL, signal.SIGSEGV, *((signal.SIGSTOP,) if self.runtime != "wasm" else ()))
            number = self.drawn.choice(ways) if drawn < 0.75 else signal.SIGKILL
            if victims:
                try:
                    os.kill(self.drawn.choice(victims), number)
                    self.ended["killed"] += 1
                except ProcessLookupError:
                    pass

    async def go(self) -> None:
        await self.pool.start()
        try:
            await asyncio.gather(*(self.attempts() for _ in range(4)), self.kills())
            await self.last()
        finally:
            await self.pool.stop()

    async def last(self) -> None:
        """Check that the pool works after the kills; a zygote killed while starting, or a stopped spare, may fail once."""
        bundle = Bundle({}, wasm=HELLO) if self.runtime == "wasm" else Bundle({"main.js": "return 7"})
        for _ in range(3):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    outcome = (await self.pool.run(Job(bundle, Limits(), now_us=1), Echo())).outcome
            except ZygoteFailed:
                continue
            self.ended[f"then {outcome}"] += 1
            if outcome is Outcome.OK:
                return


@pytest.mark.timeout(120 + 4 * SECONDS)
@pytest.mark.parametrize("runtime", ["quickjs", "quickjs-native", "wasm"])
def test_every_attempt_ends_and_nothing_is_left(runtime: str) -> None:
    storm = Storm(runtime, seed=7)
    before = set(os.listdir("/proc/self/fd"))
    asyncio.run(storm.go())
    assert storm.ended["then ok"] == 1, storm.ended
    assert storm.ended["killed"] > 0
    assert not NEVER & set(storm.ended), storm.ended
    assert not storm.launchers()
    assert len(os.listdir("/proc/self/fd")) <= len(before)
