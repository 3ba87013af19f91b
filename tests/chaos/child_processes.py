"""Child processes that end together with the test's process, even if that is killed."""

import os
import sys

from tests.e2e.ready import Ready

#: The kernel sends the signal (PR_SET_PDEATHSIG), also to a stopped process. A process in between requests it and then executes the
#: command, because the request survives an exec.
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


class Child(Ready):
    """A process of this tree, begun without the time to import it; its output is read by the test."""

    def __init__(self, module: str, *arguments: str, env: dict[str, str]) -> None:
        out, said = os.pipe()
        with open(os.devnull) as nothing, os.fdopen(said, "w"):
            self.stdout = os.fdopen(out, encoding="utf-8")
            super().__init__(module, arguments, (nothing.fileno(), said, 2), env)

    def remove(self) -> None:
        """Kill it, wait until it has ended, and close what it wrote to."""
        with self, self.stdout:
            self.kill()
            self.wait()
