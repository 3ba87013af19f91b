"""Count the system calls of each process that a process forks: ``python call_counter.py PID NUMBER`` prints NUMBER counts, one a line.

Needs the right to trace it. The first line is printed when counting has begun.
"""

import ctypes
import os
import signal
import sys

_CONTINUE, _SYSCALL, _SEIZE = 7, 24, 0x4206
_TELL_CALLS, _FOLLOW_FORKS = 1, 2
_OF_CALL = signal.SIGTRAP | 0x80
_ALL_CHILDREN = 0x40000000  # __WALL

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.argtypes = [ctypes.c_long] * 4
_ptrace.restype = ctypes.c_long


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(traced: int, wanted: int) -> None:
    """Print the counts."""
    if _ptrace(_SEIZE, traced, 0, _TELL_CALLS | _FOLLOW_FORKS) < 0:
        raise PermissionError(ctypes.get_errno(), "the process cannot be traced")
    _say("counting")
    stops: dict[int, int] = {}
    while wanted:
        pid, status = os.waitpid(-1, _ALL_CHILDREN)
        if not os.WIFSTOPPED(status):
            _say((stops.pop(pid) + 1) // 2)  # the last call does not return
            wanted -= 1
            continue
        number = os.WSTOPSIG(status)
        if number == _OF_CALL:
            stops[pid] += 1
        elif pid != traced:
            stops.setdefault(pid, 0)
        passed = 0 if number == _OF_CALL or status >> 16 else number  # events are not signals
        _ptrace(_CONTINUE if pid == traced else _SYSCALL, pid, 0, passed)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
