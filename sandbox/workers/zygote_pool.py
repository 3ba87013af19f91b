"""A pool of workers behind one zygote, without the way in which its workers come about."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lodger.sandbox import frames
from lodger.sandbox.doctor import Doctor
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.job import Job, Report
from lodger.sandbox.workers import verdict
from lodger.sandbox.workers.admission import refuse
from lodger.sandbox.workers.launcher import WorkerEnd, Zygote
from lodger.sandbox.workers.verdict import Verdict
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup
from lodger.sandbox.workers.worker_run import NeverArmed

READY = frames.HEAD.pack(0, frames.READY)
WARM_UP_S = 10.0
_TRIES = 3


def now_us() -> int:
    """Return the time of the host's clock, microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(kw_only=True, eq=False)
class ZygotePool:
    """Workers of one runtime behind one zygote.

    Args:
        cores: number of workers that may start at once.
        profile: ``untrusted`` refuses to start with too few walls, ``trusted`` runs with any.
        minimum: number of layers required for profile ``untrusted``; None for :data:`lodger.sandbox.doctor.MINIMUM`.
        cgroup: the control group around all workers; None for none.
        now_us: clock for log lines, microseconds since 1970.

    Attributes:
        zygote_type: class of the zygote.
        walls: maps each wall's name to whether it is active.
    """

    zygote_type = Zygote

    cores: int | None = None
    profile: str = "untrusted"
    minimum: int | None = None
    cgroup: WorkerCgroup | None = None
    now_us: Callable[[], int] = now_us

    def __post_init__(self) -> None:
        self._cores = self.cores or len(os.sched_getaffinity(0))
        self._settings: dict[str, str] = {}
        self._zygote: Zygote | None = None
        self._starting: asyncio.Lock = asyncio.Lock()
        self._open = False
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        self.walls: dict[str, bool] = {}

    @property
    def zygote(self) -> Zygote | None:
        """The current zygote, for reports and tests."""
        return self._zygote

    async def start(self) -> None:
        """Start the zygote and wait until workers can be had; safe to call twice. Raises ZygoteFailed, WallUnavailable, SandboxError."""
        async with self._starting:
            if self._open:
                return
            self._open = True
            try:
                await self._begin()
            except BaseException:
                await self._close()
                raise

    async def stop(self) -> None:
        """End every worker and the zygote and wait for them; safe to call twice. Running attempts end as worker_lost."""
        async with self._starting:
            await self._close()

    async def _begin(self) -> None:
        """Start what the pool consists of."""
        raise NotImplementedError

    async def _close(self) -> None:
        """Stop what the pool consists of."""
        raise NotImplementedError

    def _adopt(self, worker: WorkerEnd) -> None:
        """Take over a forked worker."""
        raise NotImplementedError

    def _on_lost(self, zygote: Zygote) -> None:
        """Learn that a zygote has ended."""
        raise NotImplementedError

    def _on_refused(self) -> None:
        """Learn that the kernel had no process, memory or descriptor for another worker."""
        raise NotImplementedError

    def _require_started(self) -> None:
        """Raise ZygoteFailed before the pool is started, and once it is stopped."""
        if not self._open:
            raise ZygoteFailed("pool_stopped", "the pool is not started", fix="await pool.start() first")

    def _require_open(self) -> None:
        """Raise ZygoteFailed if the pool was stopped meanwhile."""
        if not self._open:
            raise ZygoteFailed("pool_stopped", "the pool was stopped")

    async def _launch(self) -> Zygote:
        """Start a zygote, check its walls and record them."""
        zygote: Zygote = self.zygote_type(self._adopt, lambda: self._on_lost(zygote), self._on_refused, self.cgroup)
        await zygote.start(self._settings)
        try:
            self._require_walls(zygote.walls)
            self._require_open()
        except BaseException:
            await zygote.stop()
            raise
        self.walls = {wall: not why for wall, why in zygote.walls.items()}
        return zygote

    def _require_walls(self, walls: dict[str, str]) -> None:
        """Raise WallUnavailable if walls that the profile requires are missing; ``walls`` has the reason of each that is."""
        Doctor.require(self.profile, walls, minimum=self.minimum)

    async def _attempts_ended(self) -> None:
        """Wait until no attempt is running."""
        if self._running:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
            self._idle = None

    async def _attempt(
        self, once: Callable[[], Awaitable[Report]], given_up: Callable[[], None] = lambda: None
    ) -> Report:
        """Return the report of an attempt, which is made again with another worker if that dies before it is armed.

        Args:
            once: makes the attempt with one worker.
            given_up: called when no further worker is tried.

        Raises:
            ZygoteFailed: the pool is not started, or no worker comes.
        """
        self._require_started()
        self._running += 1
        try:
            for _ in range(_TRIES):
                try:
                    return await once()
                except NeverArmed:
                    if not self._open:
                        break
            given_up()
            return self._report(verdict.worker_lost("workers ended before they were ready"))
        finally:
            self._running -= 1
            if self._idle is not None and not self._running and not self._idle.done():
                self._idle.set_result(None)

    def _refused(self, job: Job) -> Report | None:
        """Return the report of a job that no worker runs; None for any other."""
        refused = refuse(job)
        return None if refused is None else self._report(refused)

    def _report(self, decided: Verdict) -> Report:
        """Return the report of an attempt that no worker has made."""
        return Report(decided.outcome, error=decided.error, walls=self.walls)


def drop(worker: WorkerEnd) -> None:
    """Kill a worker that is not used."""
    if worker.socket.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(worker.socket.fileno())
    worker.kill()
    worker.close()


def last_words(message: bytes) -> str:
    """Return the text in the message of a worker that failed to warm up; empty if it ended without one."""
    return message[frames.HEAD.size + 5 :].decode("utf-8", "replace")
