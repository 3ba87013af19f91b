"""Child processes that end together with the test's process, even if that is killed.

The kernel sends the signal (PR_SET_PDEATHSIG), also to a stopped process. A process in between requests it and then executes the command,
because the request survives an exec.
"""

import os
import sys

_HOLD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("whoever started this is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


def python(*arguments: str) -> list[str]:
    """Return the command that runs this Python with a death signal bound to this process, which must start it."""
    return [sys.executable, "-ISc", _HOLD, str(os.getpid()), sys.executable, *arguments]
