"""How often the worker of an attempt that waits for an answer is looked at, in virtual time beside a real process."""

import os
import socket
import subprocess
from pathlib import Path

from tests.chaos.processes import until
from tests.sim.simulator.loop import VirtualLoop

from lodger.sandbox.workers.launcher import WorkerEnd
from lodger.sandbox.workers.waiting import Waiting


class CountedSlot:
    """Notes what happens to a slot."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def leave(self, memory_bytes: int) -> None:
        self.seen.append("left")

    async def enter(self) -> None:
        self.seen.append("entered")

    def take(self) -> None:
        self.seen.append("taken")


def test_a_worker_that_sleeps_on_is_looked_at_less_often_and_soon_again_once_it_has_computed() -> None:
    loop, slot, looks = VirtualLoop(), CountedSlot(), [0.0]
    used_ms = [0.0]

    def cpu_ms() -> float:
        looks.append(loop.time())
        return used_ms[0]

    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        until(lambda: b") S " in Path(f"/proc/{process.pid}/stat").read_bytes(), 10)
        worker = WorkerEnd(process.pid, socket.socket(), os.pidfd_open(process.pid))
        waiting: list[Waiting] = []

        def begin() -> None:
            waiting.append(Waiting(slot, worker, cpu_ms, 0))
            waiting[0].called()

        loop.call_soon(begin)
        loop.run(80)
        assert slot.seen == ["left"]
        assert len(looks) < 110, "ten a second would be eight hundred"
        used_ms[0] = 6
        loop.run(81)
        assert slot.seen == ["left", "taken", "left"], "a timer of its own has woken it up, and it sleeps again"
        loop.call_soon(waiting[0].computes)
        loop.run(81.01)
        assert slot.seen[3:] == ["taken", "left"], "it has said something, and is looked at soon"
        loop.call_soon(waiting[0].stop)
        seen = len(looks)
        loop.run(90)
        assert len(looks) == seen
        worker.close()
        process.kill()
