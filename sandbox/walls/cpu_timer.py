"""The CPU timer: the kernel sends SIGKILL after a CPU time (user and system), to the tick (4 ms at HZ=250).

Armed in each worker: a fork does not inherit timers, and the init process of a pid namespace ignores the signal.
"""

import ctypes
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, make_calls, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

SETTIME = NUMBER["timer_settime"]
_PROCESS_CPUTIME = 2
_SIGKILL = 9
_SIGEV_SIGNAL = 0

# Allocated in the zygote; each worker writes to its own copy.
_event = buffer(struct.pack("=Qii48x", 0, _SIGKILL, _SIGEV_SIGNAL))
_id = ctypes.c_int()

#: Creates the timer, unarmed.
CREATE_CALL: Call = prepare_call(NUMBER["timer_create"], _PROCESS_CPUTIME, address(_event), ctypes.addressof(_id))


def create() -> None:
    """Create the timer, unarmed. Raises OSError."""
    make_calls((CREATE_CALL,))


def created_timer() -> int:
    """Return the number of the timer that this process created last; 0 for the first on known kernels."""
    return _id.value


def set_call(timer: int, at: int) -> Call:
    """Return the call that sets a timer to the itimerspec at an address."""
    return prepare_call(SETTIME, timer, 0, at, 0)
