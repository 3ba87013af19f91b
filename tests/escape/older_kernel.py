"""Run as ``python older_kernel.py PACKAGES CALL ERRNO COMMAND…``: run a command as on a kernel without a system call."""

import os
import sys

sys.path.insert(0, sys.argv[1])

from lodger.sandbox.walls import bpf, seccomp
from lodger.sandbox.walls.libc import make_calls
from lodger.sandbox.walls.syscalls import MACHINE, NUMBER

_ERRNO = 0x00050000
_answer = bpf.answer(_ERRNO | int(sys.argv[3]))
_filter = seccomp.Filter(bpf.program(MACHINE, {NUMBER[sys.argv[2]]: _answer}, seccomp.ALLOW, seccomp.ALLOW))
make_calls((_filter.install_call(),))
os.execv(sys.argv[4], sys.argv[4:])
