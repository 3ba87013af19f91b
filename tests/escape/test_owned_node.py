"""Native code inside limited Node.js: every system call that it could make is made in its name, by a debugger, and refused.

Each wall is also tried alone, against the calls that it must refuse by itself. With all walls gone the calls succeed: the test can see.
"""

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.escape.matrix import weak_node

from lodger.sandbox.child import node_starter
from lodger.sandbox.errors import SandboxError
from lodger.sandbox.nodejs import limited_node
from lodger.sandbox.walls.syscalls import MACHINE

pytestmark = pytest.mark.skipif(
    MACHINE != "x86_64" or os.geteuid() != 0, reason="the debugger knows the registers of x86_64, and needs root"
)
PROGRAM = 'require("fs").writeSync(3, "R"); require("fs").readSync(0, Buffer.alloc(1))'
WALLS = tuple(weak_node.WALLS)
#: The only wall, of the calls that no other one knows.
FILTER = ("filter",)
_ATTACH, _GETREGS, _SETREGS, _STEP, _WALL = 16, 12, 13, 9, 0x40000000
_REGISTERS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
_NAMES = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip",
          "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs")  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


class Owned:
    """A process that is stopped in a system call, in whose name calls are made."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ptrace(_ATTACH)
        self._wait()
        self._before = self._registers()
        self._free = self._before["rsp"] - 65536

    def place(self, content: bytes) -> int:
        """Write to the process's memory and return the address."""
        with Path(f"/proc/{self.pid}/mem").open("r+b", buffering=0) as memory:
            memory.seek(self._free)
            memory.write(content)
        self._free += len(content) + 16
        return self._free - len(content) - 16

    def call(self, number: int, *arguments: int) -> int | str:
        """Make a system call and return its result, or how the process ended."""
        changed = self._before | dict(zip(_REGISTERS, [*arguments, 0, 0, 0, 0, 0, 0], strict=False))
        changed |= {"rax": number, "orig_rax": -1, "rip": self._before["rip"] - 2}
        self._set(changed)
        stopped = True
        while stopped:  # a signal stops it before the call
            self._ptrace(_STEP)
            status = self._wait()
            stopped = os.WIFSTOPPED(status) and os.WSTOPSIG(status) != signal.SIGTRAP
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        answer = self._registers()["rax"]
        return answer - 2**64 if answer >= 2**63 else answer

    def _registers(self) -> dict[str, int]:
        found = ctypes.create_string_buffer(8 * len(_NAMES))
        self._ptrace(_GETREGS, found)
        return dict(zip(_NAMES, struct.unpack(f"={len(_NAMES)}Q", found.raw), strict=True))

    def _set(self, registers: dict[str, int]) -> None:
        words = [registers[name] % 2**64 for name in _NAMES]
        self._ptrace(_SETREGS, ctypes.create_string_buffer(struct.pack(f"={len(_NAMES)}Q", *words)))

    def _ptrace(self, request: int, data: object = None) -> None:
        if _libc.ptrace(request, self.pid, None, data) < 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def _wait(self) -> int:
        return os.waitpid(self.pid, _WALL)[1]


@contextmanager
def owned(without: tuple[str, ...]) -> Iterator[Owned]:
    """Start limited Node.js without some walls and take it over after its start."""
    try:
        node = limited_node.find_node("it cannot be attacked")
    except SandboxError as missing:
        pytest.skip(str(missing))
    folder = Path(limited_node.__file__).resolve().parents[1]
    starter = [sys.executable, "-I", "-S", "-E", weak_node.__file__, " ".join(without), str(folder), str(node)]
    limits = [str(limited_node.UID), "20", str(limited_node.DATA_BYTES)]
    with subprocess.Popen(
        [*starter, *limits, "--no-warnings", "-e", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={},
        cwd="/",
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"R"
            (child,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
            # It goes on to its read() of standard input; a debugger that comes before finds it in another call, or in none.
            while not Path(f"/proc/{child}/syscall").read_text().startswith("0 0x0 "):
                os.sched_yield()
            yield Owned(child)
        finally:
            process.kill()


@dataclass(frozen=True)
class Attack:
    """A system call; ``by`` names the walls each of which refuses it alone."""

    number: int
    arguments: Callable[[Owned], tuple[int, ...]]
    by: tuple[str, ...] = FILTER


def _arguments(*words: int | bytes) -> Callable[[Owned], tuple[int, ...]]:
    """Return a function that returns a call's arguments, texts as addresses in the process's memory."""
    return lambda process: tuple(process.place(each) if isinstance(each, bytes) else each for each in words)


FILES, CREATES, DESCRIPTORS = ("filter", "root"), ("filter", "root", "landlock"), ("filter", "limits")
ATTACKS = {
    "signal to a thread": Attack(234, _arguments(1, 1, 0)),
    "signal to a process": Attack(62, _arguments(1, 0)),
    "queued signal": Attack(129, _arguments(1, 0, struct.pack("=3i116x", 0, 0, -1))),
    "queued signal to a thread": Attack(297, _arguments(1, 1, 0, struct.pack("=3i116x", 0, 0, -1))),
    "limits of a process": Attack(302, _arguments(1, 7, 0, bytes(16))),
    "priority": Attack(141, _arguments(0, 0, 19)),
    "priority of input and output": Attack(251, _arguments(1, 0, 3 << 13)),
    "processors": Attack(203, _arguments(0, 8, b"\xff" * 8)),
    "scheduler": Attack(144, _arguments(0, 3, bytes(4))),
    "scheduling attributes": Attack(314, _arguments(0, struct.pack("=IIQiIQQQ", 48, 3, 0, 19, 0, 0, 0, 0), 0)),
    "comparison of processes": Attack(312, _arguments(1, 1, 2, 0, 0)),
    "places of pages": Attack(279, _arguments(0, 0, 0, 0, 0, 0)),
    "process group": Attack(109, _arguments(0, 0)),
    "shared memory of System V": Attack(29, _arguments(0, 4096, 0o1600)),
    "semaphores of System V": Attack(64, _arguments(0, 1, 0o1600)),
    "queue of System V": Attack(68, _arguments(0, 0o1600)),
    "shared mapping": Attack(9, _arguments(0, 4096, 3, 0x21, 2**64 - 1, 0)),
    "shared mapping beyond the limit": Attack(9, _arguments(0, 1536 << 20, 3, 0x21, 2**64 - 1, 0), DESCRIPTORS),
    "private mapping beyond the limit": Attack(9, _arguments(0, 1536 << 20, 3, 0x22, 2**64 - 1, 0), ("limits",)),
    "shared futex": Attack(202, _arguments(bytes(4), 1, 1)),
    "attributes of a file": Attack(4, _arguments(b"/etc/passwd\0", bytes(144)), FILES),
    "file": Attack(257, _arguments(-100, b"/etc/passwd\0", 0, 0), (*FILES, "limits")),
    "new file": Attack(257, _arguments(-100, b"/tmp/lodger-owned-node\0", 0o101, 0o600), (*CREATES, "limits")),
    "new folder": Attack(83, _arguments(b"/tmp/lodger-owned-folder\0", 0o700), CREATES),
    "socket": Attack(41, _arguments(2, 1, 0), DESCRIPTORS),
    "memory file": Attack(319, _arguments(b"x\0", 0), DESCRIPTORS),
    "pipe": Attack(293, _arguments(bytes(8), 0), DESCRIPTORS),
    "own name": Attack(157, _arguments(15, b"x\0", 0, 0, 0)),
    "host's name": Attack(63, _arguments(bytes(390))),
    # Its end sends no signal, which would stop the next call before it is made; without a stack it ends at once.
    "process": Attack(56, _arguments(0, 8, 0, 0, 0), DESCRIPTORS),
    "program": Attack(59, _arguments(b"/bin/true\0", 0, 0), FILES),  # the last: if it succeeds, Node.js is gone
}
LEFT = (Path("/tmp/lodger-owned-node"), Path("/tmp/lodger-owned-folder"))


@pytest.fixture(autouse=True)
def remove_left_files() -> Iterator[None]:
    """Remove what attacks that succeed have created."""
    yield
    LEFT[0].unlink(missing_ok=True)
    if LEFT[1].is_dir():
        LEFT[1].rmdir()


def answers(without: tuple[str, ...]) -> dict[str, int | str]:
    """Make each system call of the attacks in a process without some walls."""
    with owned(without) as process:
        return {name: process.call(each.number, *each.arguments(process)) for name, each in ATTACKS.items()}


def denied(answer: int | str) -> bool:
    return isinstance(answer, str) or answer < 0


def test_native_code_in_it_is_refused_everything() -> None:
    found = answers(())
    assert {name: answer for name, answer in found.items() if not denied(answer)} == {}
    assert not any(path.exists() for path in LEFT)


@pytest.mark.parametrize("wall", WALLS)
def test_each_wall_alone_refuses_what_is_its_own(wall: str) -> None:
    found = answers(tuple(each for each in WALLS if each != wall))
    own = {name for name, each in ATTACKS.items() if wall in each.by}
    assert own
    assert {name: found[name] for name in own if not denied(found[name])} == {}


def test_without_the_walls_the_calls_succeed() -> None:
    found = answers(WALLS)
    assert {name: answer for name, answer in found.items() if denied(answer)} == {}


def test_a_thread_that_starts_when_it_is_ready_goes_on() -> None:
    """The C library ends a process whose new thread cannot register its restartable sequences."""
    with owned(()) as process:
        assert process.call(334, 0, 0, 0, 0) == -22


def test_two_processes_share_no_address_but_those_of_the_program() -> None:
    """Each is executed anew, so that what one tenant learns about its process says nothing about another's."""
    layouts = []
    for _ in range(2):
        with owned(()) as process:
            lines = [line.split() for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
            starts = {int(line[0].partition("-")[0], 16) for line in lines if line[-1] != "[vsyscall]"}
            layouts.append({start for start in starts if start >> 32})  # the program itself is linked below
    assert layouts[0]
    assert not layouts[0] & layouts[1]


def test_all_other_calls_are_unknown_to_it() -> None:
    """Every number that is not on the list is answered as a call that the kernel lacks."""
    probes = {
        335,
        336,
    }  # the kernel's own: it answers them before any filter, with a signal or an error outside of a probe
    listed = probes | {0, 1, 3, 7, 9, 10, 11, 12, 13, 14, 15, 19, 20, 24, 25, 28, 35, 39, 46, 60, 98, 131, 186, 202, 219, 228, 230, 231,
              232, 233, 234, 271, 281, 318, 329, 334, 425}  # fmt: skip
    with owned(()) as process:
        others = {number: process.call(number) for number in range(470) if number not in listed}
    assert {number: answer for number, answer in others.items() if answer != -38} == {}


def test_no_call_passes_once_the_program_is_ready() -> None:
    ready, write_ready = os.pipe()
    listener, asks = os.pipe()  # a question that waits and is never taken away
    parent, child = socket.socketpair()
    os.write(asks, b"?")
    os.write(write_ready, b"R")
    socket.send_fds(child, [b"l"], [listener])
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(node_starter.started, parent, ready)
        try:
            assert started.result(10)
        finally:
            os.read(listener, 1)
            for each in (ready, write_ready, listener, asks):
                os.close(each)
            parent.close()
            child.close()
