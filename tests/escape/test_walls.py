"""Each wall stops an attack by itself, and the same attack succeeds without it.

A case names other walls that would stop the attack; they are removed in both runs. Snippets give the result of a system call as JSON, a
negative errno on failure.
"""

import asyncio
import errno
import os
import platform
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.escape.probing import Echo, probe, probe_job, probe_pool

from lodger.escape.runner import started
from lodger.sandbox import Outcome, Report
from lodger.sandbox.job import LogLine
from lodger.sandbox.walls.syscalls import NUMBER
from lodger.sandbox.workers.worker_run import cpu_ms

X86 = platform.machine() == "x86_64"
SOCKET, CONNECT, KILL, SETPRIORITY = (41, 42, 62, 141) if X86 else (198, 203, 129, 140)
READV_OF = 310 if X86 else 270
ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED as root: a uid of its own needs an engine that is root (run as root)"
)
OPEN = 'import_error = None\ntry:\n    os.read(os.open("/etc/passwd", 0), 1)\n    done("0")\nexcept OSError as e:\n    done(str(-e.errno))'


@dataclass(frozen=True)
class Case:
    wall: str
    story: str
    code: str
    held: tuple[int, ...] | Outcome
    broken: tuple[int, ...] = (0,)
    also_without: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)


CASES = (
    Case(
        "seccomp",
        "make a socket",
        f"done(str(min(0, syscall({SOCKET}, 1, 1, 0))))",
        Outcome.CRASHED,
    ),
    Case(
        "seccomp",
        "make memory executable",
        f"mine = ctypes.create_string_buffer(8192)\n"
        f"done(str(syscall({NUMBER['mprotect']}, (ctypes.addressof(mine) + 4095) // 4096 * 4096, 4096, 7)))",
        Outcome.CRASHED,
    ),
    Case(
        "seccomp",
        "raise the CPU timer after arming",
        f"never = ctypes.create_string_buffer(32)\ndone(str(syscall({NUMBER['timer_settime']}, 0, 0, never, 0)))",
        Outcome.CRASHED,
    ),
    Case(
        "seccomp",
        "put a filter of one's own",
        f"done(str(syscall({NUMBER['seccomp']}, 1, 0, 0)))",
        Outcome.CRASHED,
        broken=(-errno.EFAULT,),
    ),
    Case("landlock", "open a file", OPEN, (-errno.EACCES,), also_without=("seccomp", "root")),
    Case("root", "open a file", OPEN, (-errno.ENOENT,), also_without=("seccomp", "landlock")),
    Case(
        "rlimits",
        "fork",
        "try:\n    pid = os.fork()\n    if pid == 0:\n        os._exit(0)\n    os.waitpid(pid, 0)\n    done('0')\n"
        "except OSError as e:\n    done(str(-e.errno))",
        (-errno.EAGAIN,),
        also_without=("seccomp",),
    ),
    Case(
        "rlimits",
        "hold many descriptors",
        "try:\n    [os.dup(channel._descriptor) for _ in range(20)]\n    done('0')\nexcept OSError as e:\n    done(str(-e.errno))",
        (-errno.EMFILE,),
        also_without=("seccomp",),
    ),
    Case(
        "rlimits",
        "take memory beyond the limit",
        "hold = bytearray(200 << 20)\ndone('0')",
        Outcome.MEMORY_LIMIT,
    ),
    Case(
        "namespaces",
        "signal the engine by its pid",
        f"done(str(syscall({KILL}, int(context), 0)))",
        (-errno.ESRCH,),
        also_without=("seccomp", "landlock", "uid", "root"),
    ),
    Case(
        "undumpable",
        "read the zygote's memory",
        "text = ctypes.create_string_buffer(b'mine')\n"
        "into = ctypes.create_string_buffer(4)\n"
        "here = struct.pack('QQ', ctypes.addressof(into), 4)\nthere = struct.pack('QQ', ctypes.addressof(text) & ~4095, 4)\n"
        f"done(str(min(0, syscall({READV_OF}, os.getppid(), here, 1, there, 1, 0))))",
        (-errno.EPERM,),
        also_without=("seccomp", "landlock", "uid"),  # a change of uid clears the dumpable flag too
    ),
)


def wanted(report: Report, answer: "tuple[int, ...] | Outcome") -> bool:
    if isinstance(answer, Outcome):
        return report.outcome is answer
    return report.outcome is Outcome.OK and report.result is not None and int(report.result) in answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.wall}: {case.story}")
def test_holds_alone_and_is_missed(case: Case) -> None:
    context = str(os.getpid())
    report = probe(case.code, case.also_without, context=context, **case.limits)
    assert wanted(report, case.held), report
    report = probe(case.code, (*case.also_without, case.wall), context=context, **case.limits)
    assert wanted(report, case.broken), report


#: Tries all processes of the pid namespace except the zygote and itself, until one exists; 0 if one could be reached.
SIBLINGS = """
me, answer = os.getpid(), -{missing}
while answer == -{missing}:
    answer = max(syscall({call}) for pid in range(2, me + 8) if pid != me)
done(str(answer))
"""


@ROOT_ONLY
@pytest.mark.parametrize(
    "call",
    [f"{KILL}, pid, 0", f"{SETPRIORITY}, 0, pid, 19", f"{NUMBER['prlimit64']}, pid, 7, 0, 0"],
    ids=["signal", "priority", "limits"],
)
def test_uid_of_its_own_reaches_no_other_worker(call: str) -> None:
    code = SIBLINGS.format(missing=errno.ESRCH, call=call)
    held = probe(code, ("seccomp",))
    assert held.result == str(-errno.EPERM), held
    broken = probe(code, ("seccomp", "uid"))
    assert broken.result == "0", broken


@ROOT_ONLY
def test_uid_of_its_own_reads_no_file_of_the_engine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/") and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o755)
    code = OPEN.replace("/etc/passwd", str(secret))
    others = ("seccomp", "landlock", "root", "namespaces")
    held = probe(code, others)
    assert held.result == str(-errno.EACCES), held
    broken = probe(code, (*others, "uid"))
    assert broken.result == "0", broken


def test_network_namespace_has_no_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            f"fd = syscall({SOCKET}, 2, 1, 0)\n"
            f"address = struct.pack('=H', 2) + struct.pack('>H', {port}) + bytes((127, 0, 0, 1)) + bytes(8)\n"
            f"done(str(syscall({CONNECT}, fd, address, 16)))"
        )
        others = ("seccomp", "landlock", "root", "uid")
        held = probe(code, others)
        assert held.result is not None
        assert int(held.result) in (-errno.ENETUNREACH, -errno.ECONNREFUSED), held
        broken = probe(code, (*others, "namespaces"))
        assert broken.result == "0", broken
        alone = probe(code, ("seccomp", "namespaces", "root", "uid"))
        assert alone.result == str(-errno.EACCES), "Landlock alone refuses the connection too"


def test_denied_call_names_the_wall() -> None:
    report = probe('os.mkdir("/x")')
    assert report.outcome is Outcome.CRASHED
    assert report.error is not None
    assert "seccomp" in report.error.message
    assert "SIGSYS" in report.error.message


LOOP = "while True: pass"
SPEAK_THEN_LOOP = 'log("go")\nwhile True: pass'


class Stalled(Echo):
    """Host that blocks the event loop from the first log line until the worker ended or used some CPU time."""

    def __init__(self, until_ms: float) -> None:
        super().__init__()
        self.until_ms = until_ms
        self.pid = 0

    def log(self, line: LogLine) -> None:
        patience = time.monotonic() + 60
        while 0 <= cpu_ms(self.pid) < self.until_ms and time.monotonic() < patience:
            time.sleep(0.005)


def probe_stalled(without: tuple[str, ...], until_ms: float, **limits: int) -> Report:
    async def go() -> Report:
        host = Stalled(until_ms)
        async with started(probe_pool(without)) as pool:
            host.pid = pool.ready[0]
            return await pool.run(probe_job(SPEAK_THEN_LOOP, **limits), host)

    return asyncio.run(go())


def test_kernel_timer_alone() -> None:
    report = probe_stalled((), 500, cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms < 400
    report = probe_stalled(("cpu_timer",), 500, cpu_ms=50)
    assert report.outcome is Outcome.CPU_LIMIT, "the parent's look stops it, late"
    assert report.usage.cpu_ms > 450


def test_parents_look_alone() -> None:
    report = probe(LOOP, ("cpu_timer", "rlimits"), cpu_ms=100)
    assert report.outcome is Outcome.CPU_LIMIT
    assert report.usage.cpu_ms <= 1000


def test_with_all_three_gone_only_the_wall_limit_is_left() -> None:
    report = probe(LOOP, ("cpu_timer", "rlimits"), cpu_ms=100, wall_ms=140)  # the parent's CPU deadline is at 150 ms
    assert report.outcome is Outcome.WALL_LIMIT


@pytest.mark.slow
def test_rlimit_cpu_is_the_last_line() -> None:
    report = probe_stalled(("cpu_timer",), 4000, cpu_ms=10)
    assert report.outcome is Outcome.CPU_LIMIT
    assert 1500 < report.usage.cpu_ms < 3500


def test_warm_up_is_not_charged() -> None:
    report = probe('done("1")')
    assert report.outcome is Outcome.OK
    assert 0 <= report.usage.cpu_ms < 60
