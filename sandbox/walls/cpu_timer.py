"""The kernel's CPU timer: SIGKILL when this process has used so much CPU time (user and system), to the tick (4 ms at HZ=250).

A fork does not inherit timers, and the init of a pid namespace ignores the signal: it is armed in each worker.
"""

import ctypes
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, carry_out, prepared
from lodger.sandbox.walls.syscalls import NUMBER

SETTIME = NUMBER["timer_settime"]
_PROCESS_CPUTIME = 2
_SIGKILL = 9
_SIGEV_SIGNAL = 0

# Made once in the zygote, written to by each worker in its own copy.
_event = buffer(struct.pack("=Qii48x", 0, _SIGKILL, _SIGEV_SIGNAL))
_id = ctypes.c_int()

#: Makes the timer, unarmed.
CREATION: Call = prepared(NUMBER["timer_create"], _PROCESS_CPUTIME, address(_event), ctypes.addressof(_id))


def create() -> None:
    """Make the timer, unarmed. Raises OSError."""
    carry_out((CREATION,))


def number() -> int:
    """Give the number of the timer that this process made last; the first of a process has been 0 so far."""
    return _id.value


def arming(timer: int, at: int) -> Call:
    """Give the call that sets a timer by the numbers at an address; it replaces an earlier arming."""
    return prepared(SETTIME, timer, 0, at, 0)
