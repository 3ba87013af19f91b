"""The zygote as seen by the parent process: starts it through the launcher, requests workers and receives their exit status.

The thread that starts a zygote must outlive it: the launcher's death signal is bound to that thread.
"""

import array
import asyncio
import fcntl
import itertools
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lodger.sandbox.child.settings import encode
from lodger.sandbox.child.zygote import DEATH, PID
from lodger.sandbox.errors import ZygoteFailed
from lodger.sandbox.limits import LIMITS
from lodger.sandbox.runtimes.libwasmtime import STACK_BYTES
from lodger.sandbox.walls.cgroup import NoGroup
from lodger.sandbox.walls.identity import UIDS_PER_ZYGOTE
from lodger.sandbox.workers.worker_cgroup import WorkerCgroup

FOLDER = Path(__file__).resolve().parents[1]
_ANCILLARY = socket.CMSG_SPACE(8)
_START_S = 20.0
_UID_BASE = 0x70000000
_ZYGOTES_OF_A_PROCESS = 32
_UID_RANGES = (1 << 31) // UIDS_PER_ZYGOTE - _UID_BASE // UIDS_PER_ZYGOTE
_started = itertools.count()
_MAXIMUM = {spec.name: spec.maximum for spec in LIMITS}

_PIDFD_GET_INFO = 0xC040FF0B  # _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info) of its first version, 64 bytes
_PIDFD_INFO = (1).to_bytes(8, "little") + bytes(56)  # requests the process ids
_PID_AT = struct.Struct("=i")

#: Time between the soft CPU limit and the kernel's timer, for the guest to send its logs.
CPU_GRACE_MS = 50


def _first_uid() -> int:
    """Return the first user id of a new zygote: above the range that systemd uses for containers, below 2³¹."""
    number = os.getpid() * _ZYGOTES_OF_A_PROCESS + next(_started) % _ZYGOTES_OF_A_PROCESS
    return _UID_BASE + number % _UID_RANGES * UIDS_PER_ZYGOTE


def zygote_settings(runtime: str, runtime_settings: dict[str, str]) -> dict[str, str]:
    """Return the settings of a zygote, with the maxima from the table of limits."""
    return {
        "runtime": runtime,
        "uid": str(_first_uid()),
        "stack_bytes": str(STACK_BYTES),
        "memory_max_bytes": str(_MAXIMUM["memory_bytes"]),
        "cpu_ms_max": str(_MAXIMUM["cpu_ms"]),
        "cpu_grace_ms": str(CPU_GRACE_MS),
        "open_files": "4",
        **runtime_settings,
    }


@dataclass(frozen=True, slots=True)
class Death:
    """Exit of a worker: wait status and exact usage, including warm-up and exit."""

    status: int
    cpu_us: int
    peak_bytes: int
    minor_faults: int


class WorkerEnd:
    """Handle of one worker: socket, pidfd, and its exit when known."""

    __slots__ = ("_died", "_killed", "death", "inner_pid", "lost", "on_end", "pid", "pidfd", "socket")

    def __init__(self, inner_pid: int, end: socket.socket, pidfd: int) -> None:
        self.inner_pid = inner_pid
        self.socket = end
        self.pidfd = pidfd
        self.pid = pid_of(pidfd)
        self.death: Death | None = None
        self.lost = False
        #: Called when the exit is known.
        self.on_end: Callable[[], None] | None = None
        self._killed = False
        self._died: asyncio.Future[None] | None = None

    def kill(self) -> None:
        """Send SIGKILL through the pidfd, which never reaches another process."""
        if self.pidfd >= 0 and not self._killed:
            self._killed = True
            try:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def close(self) -> None:
        """Close socket and pidfd; safe to call twice."""
        self.socket.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def resident_bytes(self) -> int:
        """Return the worker's resident memory, 0 if it ended."""
        try:
            with Path(f"/proc/{self.pid}/statm").open("rb") as statm:
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def record_end(self, death: Death | None) -> None:
        """Record the exit; None if the zygote ended and the exit status is lost."""
        self.death = death
        self.lost = death is None
        if self._died is not None and not self._died.done():
            self._died.set_result(None)
        if self.on_end is not None:
            self.on_end()

    @property
    def ended(self) -> bool:
        """Whether the worker ended: its exit is known or lost."""
        return self.death is not None or self.lost

    async def wait_ended(self, max_s: float) -> bool:
        """Wait for the end of the worker; return whether it came in time."""
        if not self.ended:
            loop = asyncio.get_running_loop()
            died = self._died = loop.create_future()
            patience = loop.call_later(max_s, _settle_once, died)
            try:
                await died
            finally:
                patience.cancel()
        return self.ended


def pid_of(pidfd: int) -> int:
    """Return the process id in this process's PID namespace. Raises OSError, ValueError or IndexError if it is no pidfd."""
    info = bytearray(_PIDFD_INFO)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:  # before Linux 6.13
        return pid_in_text(pidfd)
    (pid,) = _PID_AT.unpack_from(info, 16)  # struct pidfd_info: mask, cgroupid, pid, …
    return int(pid)


def pid_in_text(pidfd: int) -> int:
    """Return the same as :func:`pid_of`, read from ``/proc/self/fdinfo``."""
    info = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY)
    try:
        return int(os.read(info, 512).partition(b"Pid:")[2].split(None, 1)[0])
    finally:
        os.close(info)


def _settle_once(future: "asyncio.Future[None]") -> None:
    """Complete a future, unless it is completed."""
    if not future.done():
        future.set_result(None)


class Zygote:
    """One zygote, from its start to its end.

    Attributes:
        walls: maps a wall's name to "" if it is active, otherwise to the reason why it is not.
        modules: names of the modules that the zygote had imported when it was ready.
        requested: number of requested workers that have neither arrived nor been refused.
        program: path of the zygote's program.
    """

    program = FOLDER / "child" / "zygote.py"

    def __init__(
        self,
        on_worker: Callable[[WorkerEnd], None],
        on_lost: Callable[[], None],
        on_refused: Callable[[], None],
        cgroup: WorkerCgroup | None = None,
    ) -> None:
        self._on_worker = on_worker
        self._on_lost = on_lost
        self._on_refused = on_refused
        self._cgroup = cgroup
        self._grouped = False
        self._stopping: asyncio.Task[None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self.requested = 0
        self.workers: dict[int, WorkerEnd] = {}
        self.walls: dict[str, str] = {}
        self.modules: tuple[str, ...] = ()

    @property
    def launcher_pid(self) -> int:
        """The launcher's process id, for tests and reports; -1 if there is none."""
        return -1 if self._process is None else self._process.pid

    async def start(self, settings: dict[str, str]) -> None:
        """Start the zygote and wait until it is ready. Raises ZygoteFailed with its last message."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - a fork and exec of two milliseconds, before any work
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-E",
                    "-X",
                    "no_debug_ranges",
                    str(self.program),
                    str(theirs.fileno()),
                    str(FOLDER),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        ours.setblocking(False)
        self._control = ours
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        loop.add_reader(ours.fileno(), self._on_control)
        try:
            if self._cgroup is not None:
                ungrouped = self._join(self._cgroup, self._process.pid)
            ours.send(encode(settings))
            async with asyncio.timeout(_START_S):
                await self._ready
            if self._cgroup is not None:
                self.walls["cgroup"] = ungrouped
        except (TimeoutError, OSError):
            await self.stop()
            raise _not_started(f"it did not report within {_START_S:g} s") from None
        except BaseException:
            await self.stop()
            raise

    def spawn(self) -> None:
        """Request one worker; ``on_worker`` is called with each, ``on_refused`` if one could not be forked."""
        self.requested += 1
        if self._control is not None:
            try:
                self._control.send(b"s")
            except OSError:
                self._lose()

    async def stop(self) -> None:
        """End the zygote with all its processes and wait for them; safe to call twice. A cancellation is raised after that."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        cancelled = None
        while not self._stopping.done():
            try:
                await asyncio.shield(self._stopping)
            except (
                asyncio.CancelledError
            ) as problem:  # still waits, because a process that is not waited for stays as a zombie
                cancelled = problem
        if cancelled is not None:
            raise cancelled
        self._stopping.result()

    async def _stop(self) -> None:
        """Stop the process of the launcher and wait for its end."""
        self._disconnect()
        process = self._process
        if process is None:
            return
        await self._wait(process, 2.0)
        if process.poll() is None:
            process.kill()
            await self._wait(process, 5.0)
        process.wait()
        self._process = None
        if self._grouped and self._cgroup is not None:
            self._grouped = False
            await asyncio.to_thread(self._cgroup.leave)

    def _join(self, cgroup: WorkerCgroup, launcher: int) -> str:
        """Put the launcher, and so all its children, into the control group. Return "" or the reason why not."""
        try:
            cgroup.join(launcher)
        except NoGroup as reason:
            return str(reason)
        self._grouped = True
        return ""

    @staticmethod
    async def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
        """Wait for the end of a process, so many seconds at most."""
        loop = asyncio.get_running_loop()
        try:
            pidfd = os.pidfd_open(process.pid)
        except OSError:
            return
        exited: asyncio.Future[None] = loop.create_future()
        loop.add_reader(pidfd, _settle_once, exited)
        try:
            async with asyncio.timeout(seconds):
                await exited
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)

    def _on_control(self) -> None:
        """Read the zygote's messages: that it is ready, forked workers, refusals, and exits of workers."""
        control = self._control
        while control is not None and control is self._control:
            try:
                message, ancillary, _flags, _ = control.recvmsg(1 << 16, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                message, ancillary = b"", []
            kind = message[:1]
            if kind == b"D":
                self._record_death(message[1:])
            elif kind == b"W":
                self._adopt(message[1:], ancillary)
            elif kind == b"N":
                self._refuse()
            elif kind == b"Z":
                words = message[1:].decode().split("\0")
                self.walls = dict(zip(words[0::2], words[1::2], strict=False))
                self.modules = tuple(self.walls.pop("modules", "").split())
                self._settle(None)
            elif kind == b"F":
                self._settle(_not_started(message[1:].decode("utf-8", "replace")))
            else:
                self._settle(_not_started("it ended before it was ready: its control socket closed"))
                self._lose()

    def _settle(self, problem: ZygoteFailed | None) -> None:
        """End the wait for the start: the zygote is ready (None), or why it failed."""
        if self._ready is not None and not self._ready.done():
            if problem is None:
                self._ready.set_result(None)
            else:
                self._ready.set_exception(problem)

    def _adopt(self, message: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        """Receive the socket and descriptor of a forked worker."""
        rights = array.array("i")
        for _level, _kind, content in ancillary:
            rights.frombytes(content[: len(content) - len(content) % rights.itemsize])
        if len(rights) != 2:
            # This process is out of descriptors. The kernel closes those that did not arrive, and a worker with a closed socket
            # exits: treated as a failed fork.
            for number in rights:
                os.close(number)
            self._refuse()
            return
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=rights[0])
        end.setblocking(False)
        worker = WorkerEnd(PID.unpack(message)[0], end, rights[1])
        self.workers[worker.inner_pid] = worker
        self.requested -= 1
        self._on_worker(worker)

    def _refuse(self) -> None:
        """Note that a requested worker could not be forked."""
        self.requested -= 1
        self._on_refused()
        self._settle_drained()

    def _settle_drained(self) -> None:
        """Wake :meth:`drained` once no worker lives or is requested."""
        if self._drained is not None and not self.requested and not self.workers:
            _settle_once(self._drained)

    async def drained(self) -> None:
        """Wait until no worker lives or is requested; the caller must request no more."""
        self._drained = asyncio.get_running_loop().create_future()
        self._settle_drained()
        await self._drained

    def _record_death(self, message: bytes) -> None:
        """Record the exit of a worker that the zygote has reported."""
        pid, status, user_us, system_us, peak_bytes, minor_faults = DEATH.unpack(message)
        worker = self.workers.pop(pid, None)
        if worker is not None:
            worker.record_end(Death(status, user_us + system_us, peak_bytes, minor_faults))
        self._settle_drained()

    def _lose(self) -> None:
        """Handle the end of the zygote: its workers end too, and their exit status is lost."""
        if self._control is not None:
            self._disconnect()
            self._on_lost()

    def _disconnect(self) -> None:
        """Close the connection to the zygote."""
        control, self._control = self._control, None
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        living, self.workers = self.workers, {}
        for worker in living.values():
            worker.kill()
            worker.record_end(None)
        self.requested = 0
        self._settle_drained()


def _not_started(why: str) -> ZygoteFailed:
    """Return the error of a zygote that did not start."""
    return ZygoteFailed("zygote_failed", "the zygote did not start", why=why, fix=_advice())


def _advice() -> str:
    """Return what an operator can do about a zygote that does not start."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        return (
            f"raise the limit of address space, which is {limit >> 20} MiB (ulimit -v unlimited, LimitAS=infinity of systemd): "
            "workers reserve gigabytes that they do not use"
        )
    return "run lodger doctor to see what this host lacks"
