"""The kernel's CPU timer: SIGKILL when this process has used so much CPU time (user and system), to the tick (4 ms at HZ=250).

A fork does not inherit timers, and the init of a pid namespace ignores the signal: it is armed in each worker.
"""

import ctypes
import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.syscalls import NUMBER

_CREATE = NUMBER["timer_create"]
_SETTIME = NUMBER["timer_settime"]
_PROCESS_CPUTIME = 2
_SIGKILL = 9
_SIGEV_SIGNAL = 0

# Made once in the zygote, written to by each worker in its own copy.
_event = buffer(struct.pack("=Qii48x", 0, _SIGKILL, _SIGEV_SIGNAL))
_id = ctypes.c_int()
_spec = (ctypes.c_long * 4)()
_EVENT, _ID, _SPEC = address(_event), ctypes.addressof(_id), ctypes.addressof(_spec)


def create() -> None:
    """Make the timer, unarmed. Raises OSError."""
    syscall(_CREATE, _PROCESS_CPUTIME, _EVENT, _ID)


def arm(milliseconds: int) -> None:
    """Let it fire after that much more CPU time; replaces an earlier arming. Raises OSError."""
    _spec[2] = milliseconds // 1000
    _spec[3] = milliseconds % 1000 * 1_000_000
    syscall(_SETTIME, _id.value, 0, _SPEC)
