"""A process of a test that ends when the test's process does, however that ends: a hard kill gives nobody the time to clean up.

The kernel sends the signal (PR_SET_PDEATHSIG), also to a process that is stopped. It is asked for by a process in between,
which then becomes what was to be started: what is set for one's own death stays over an exec.
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
    """Give the command that runs this Python with such arguments on a leash; to be started by this very process."""
    return [sys.executable, "-ISc", _HOLD, str(os.getpid()), sys.executable, *arguments]
