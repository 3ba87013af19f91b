"""Run as ``python older_kernel.py PACKAGES CALL ERRNO COMMAND…``: the command on a kernel that lacks one call, as far as it can see."""

import os
import sys

sys.path.insert(0, sys.argv[1])

from lodger.sandbox.walls import bpf, seccomp
from lodger.sandbox.walls.libc import carry_out
from lodger.sandbox.walls.syscalls import MACHINE, NUMBER

_ERRNO = 0x00050000
_answer = bpf.answer(_ERRNO | int(sys.argv[3]))
_filter = seccomp.Filter(bpf.program(MACHINE, {NUMBER[sys.argv[2]]: _answer}, seccomp.ALLOW, seccomp.ALLOW))
carry_out((_filter.raising(),))
os.execv(sys.argv[4], sys.argv[4:])
