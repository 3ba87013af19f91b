"""The slot of an attempt whose worker sleeps for an answer: given back meanwhile, and taken again before the answer is sent.

Whether a worker sleeps is the kernel's word, not the worker's. Most calls are answered before it is asked.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from lodger.sandbox.job import Slot
from lodger.sandbox.workers.launcher import WorkerEnd

#: Time that a call takes before the kernel is asked; it doubles while the worker still computes.
FIRST_LOOK_S, LAST_LOOK_S = 0.005, 0.08
#: Time until a worker that gave its slot back is looked at: it may be woken up by a timer of its own. It doubles while it sleeps on.
FIRST_WATCH_S, LAST_WATCH_S = 0.1, 0.8
_AWAKE_MS = 5.0


class Waiting:
    """Driver of one attempt's slot.

    Args:
        slot: None for an attempt that holds none.
        cpu_ms: returns the CPU time that the worker has used.
        idle_bytes: resident memory of a worker before its job.
    """

    def __init__(self, slot: Slot | None, worker: WorkerEnd, cpu_ms: Callable[[], float], idle_bytes: int) -> None:
        self._slot = slot
        self._worker = worker
        self._cpu_ms = cpu_ms
        self._idle_bytes = idle_bytes
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None
        self._left = False
        self._left_at_ms = 0.0
        self._entering: asyncio.Task[None] | None = None
        self._since_s: float | None = None
        self._waited_s = 0.0

    @property
    def waited_s(self) -> float:
        """For how long the attempt has waited for a slot: time that is not the script's."""
        return self._waited_s + (0.0 if self._since_s is None else self._loop.time() - self._since_s)

    def called(self) -> None:
        """Note that a host call of the script is under way."""
        if self._slot is not None and self._next is None:
            self._look_after(FIRST_LOOK_S)

    def answered(self) -> None:
        """Note that no call is under way any more."""
        if self._next is not None and not self._left:
            self._next.cancel()
            self._next = None

    def computes(self) -> None:
        """Take a slot, whether one is free or not: the worker was woken up by a timer of its own."""
        if self._left and self._slot is not None and self._entering is None:
            self._left = False
            self._slot.take()
            self._look_after(FIRST_LOOK_S)

    async def enter(self) -> None:
        """Wait for a slot before an answer is sent, if the attempt has none."""
        if not self._left:
            return
        if self._entering is None:
            self._entering = self._loop.create_task(self._enter())
        await asyncio.shield(self._entering)

    def stop(self) -> None:
        """Stop watching the worker; safe to call twice."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._entering is not None:
            self._entering.cancel()

    async def _enter(self) -> None:
        """Wait for a slot before the script continues."""
        assert self._slot is not None
        self._since_s = self._loop.time()
        try:
            await self._slot.enter()
            self._left = False
            self._look_after(FIRST_LOOK_S)
        finally:
            self._waited_s, self._since_s = self.waited_s, None
            self._entering = None

    def _look_after(self, after_s: float) -> None:
        """Look at the worker after so many seconds, and not before."""
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(after_s, self._look, after_s)

    def _look(self, after_s: float) -> None:
        """Leave the slot of a worker that still waits for an answer."""
        assert self._slot is not None
        if self._left:
            if self._cpu_ms() - self._left_at_ms > _AWAKE_MS:
                self.computes()
        elif _sleeps(self._worker.pid):
            self._left, self._left_at_ms = True, self._cpu_ms()
            self._slot.leave(max(0, self._worker.resident_bytes() - self._idle_bytes))
            after_s = FIRST_WATCH_S / 2
        self._look_after(min(2 * after_s, LAST_WATCH_S if self._left else LAST_LOOK_S))


def _sleeps(pid: int) -> bool:
    """Return whether a process waits for an event; False if that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat[stat.rfind(b")") + 2 :][:1] == b"S"
