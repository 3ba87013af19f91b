"""Unsafe state that a worker inherits, for the matrix only: a secret in its arguments, a thread, shared memory."""

import _thread
import ctypes
import os
import signal
import time

from lodger.sandbox.walls.libc import syscall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ARGUMENTS = 47  # arg_start in /proc/self/stat, counted from 0
_TRACE_ME = 0
_PTRACE = {"x86_64": 101, "aarch64": 117}
_SHARED, _READ_WRITE = 0x21, 3  # MAP_SHARED | MAP_ANONYMOUS
_kept: "list[Any]" = []


def in_zygote() -> None:
    """Create unsafe state in the zygote that a fork inherits."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.chdir("/tmp")
    libc = ctypes.PyDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    _kept.append(libc.mmap(None, 4096, _READ_WRITE, _SHARED, -1, 0))
    with open("/proc/self/stat", "rb") as stat:
        start = int(stat.read().rpartition(b")")[2].split()[_ARGUMENTS - 2])
    ctypes.memmove(start, b"--password=canary\0", 18)
    try:
        os.setgroups([1])
    except OSError:
        return  # only root may set groups


def note(content: bytes) -> None:
    """Write a tenant's bytes into memory shared by all forks."""
    if _kept:
        ctypes.memmove(_kept[0], content[:4096], min(len(content), 4096))


def in_worker() -> None:
    """Create a second descriptor, a thread and a tracer in a worker without a filter."""
    for number in range(64):
        try:
            _kept.append(os.dup(number))
        except OSError:
            continue
        break
    _thread.start_new_thread(time.sleep, (60,))
    try:
        syscall(_PTRACE[os.uname().machine], _TRACE_ME, 0, 0, 0)
    except (OSError, KeyError):
        return
