"""The CPU timer: the kernel sends SIGKILL after a CPU time (user and system), to the tick (4 ms at HZ=250).

A second timer sends SIGPROF before, for runtimes that handle it. Armed in each worker: a fork does not inherit timers, and the init process
of a pid namespace ignores SIGKILL.
"""

import ctypes
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, make_calls, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

_PROCESS_CPUTIME = 2
_SIGKILL, _SIGPROF = 9, 27
_SIGEV_SIGNAL = 0

# Allocated in the zygote; each worker writes to its own copy.
_events = [buffer(struct.pack("=Qii48x", 0, number, _SIGEV_SIGNAL)) for number in (_SIGKILL, _SIGPROF)]
_ids = [ctypes.c_int(), ctypes.c_int()]

#: Create the timer that kills and the one that signals, unarmed.
CREATE_CALLS: tuple[Call, ...] = tuple(
    prepare_call(NUMBER["timer_create"], _PROCESS_CPUTIME, address(event), ctypes.addressof(number))
    for event, number in zip(_events, _ids, strict=True)
)


def create() -> None:
    """Create the timers, unarmed. Raises OSError."""
    make_calls(CREATE_CALLS)


def set_call(timer: int, at: int) -> Call:
    """Return the call that sets one of the two timers, by the number that this process was given, to the itimerspec at an address."""
    number, *arguments = prepare_call(NUMBER["timer_settime"], 0, at, 0)
    return number, _ids[timer], *arguments
