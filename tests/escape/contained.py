"""Run as ``python contained.py PACKAGES COMMAND…``: run a command as in a container with the default profile.

It has only the capabilities that container engines give, and a filter denies calls for namespaces and mounts.
"""

import ctypes
import os
import sys

sys.path.insert(0, sys.argv[1])

from lodger.sandbox.walls import bpf, seccomp
from lodger.sandbox.walls.libc import make_calls
from lodger.sandbox.walls.syscalls import MACHINE

REFUSED = {"x86_64": (155, 165, 166, 272, 308, 435), "aarch64": (41, 40, 39, 97, 268, 435)}
#: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap
KEPT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
#: clone3 returns ENOSYS, so that the C library uses clone, for which a filter can check the flags.
CLONE3, ENOSYS = 435, 0x00050026
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

libc = ctypes.CDLL(None, use_errno=True)
program = bpf.program(
    MACHINE,
    {number: bpf.answer(ENOSYS if number == CLONE3 else seccomp.EPERM) for number in REFUSED[MACHINE]},
    seccomp.ALLOW,
    seccomp.ALLOW,
)
if os.geteuid():
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
refusing = seccomp.Filter(program)
make_calls((refusing.install_call(),))
if not os.geteuid():
    for capability in range(64):
        if capability not in KEPT:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.execv(sys.argv[2], sys.argv[2:])  # exec as root drops capabilities outside the bounding set from all sets
