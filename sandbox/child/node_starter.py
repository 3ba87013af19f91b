"""The start of Node.js for a parser that reads tenants' text: own user and network, no privileges, limits, then exec.

Executed by absolute path with an empty environment: ``python -I -S -E node_starter.py SANDBOX_FOLDER NODE UID CPU_S DATA_BYTES ARGUMENT…``.
Node.js opens files and starts threads until it writes R to descriptor 3; this process then forbids it both, and passes the R on to
standard output. It ends with the exit code of Node.js, or with 128 and the number of the signal.
"""

import sys

if __name__ == "__main__":  # without site-packages: only the package folder with this file can be imported
    _lodger = type(sys)("lodger")
    _lodger.__path__ = [sys.argv[1].rpartition("/")[0]]
    sys.modules["lodger"] = _lodger

import os
import resource

from lodger.sandbox.walls import bpf, identity, namespaces, process, rlimits, seccomp
from lodger.sandbox.walls.libc import make_calls
from lodger.sandbox.walls.syscalls import MACHINE

#: Calls that reach other processes or a part of the kernel that no parser needs: ptrace, process_vm_readv, process_vm_writev, kill, tkill,
#: pidfd_send_signal, keyctl, add_key, request_key, bpf, perf_event_open, userfaultfd, io_uring_setup, unshare, setns, mount, socket.
#: And calls that change a file by its path, without opening it: truncate, mkdirat, mknodat, unlinkat, symlinkat, linkat, renameat,
#: renameat2, fchmodat, fchmodat2, fchownat, utimensat, setxattr, lsetxattr, removexattr, lremovexattr, setxattrat, removexattrat;
#: on x86_64 also rename, mkdir, rmdir, link, unlink, symlink, chmod, chown, lchown, mknod, utime, utimes, futimesat.
_DENIED = {
    "x86_64": (101, 310, 311, 62, 200, 424, 250, 248, 249, 321, 298, 323, 425, 272, 308, 165, 41,
               76, 258, 259, 263, 266, 265, 264, 316, 268, 452, 260, 280, 188, 189, 197, 198, 463, 466,
               82, 83, 84, 86, 87, 88, 90, 92, 94, 133, 132, 235, 261),
    "aarch64": (117, 270, 271, 129, 130, 424, 219, 217, 218, 280, 241, 282, 425, 97, 268, 40, 198,
                45, 34, 33, 35, 36, 37, 38, 276, 53, 452, 54, 88, 5, 6, 14, 15, 463, 466),
}  # fmt: skip


def main() -> None:
    """Take the steps and execute Node.js."""
    _, _, node, uid, cpu_s, data_bytes, *arguments = sys.argv
    opened = os.open(node, os.O_RDONLY)  # another user may not reach its folder
    program = os.dup2(opened, 10, inheritable=False)  # beyond the descriptors of Node.js
    process.close_all_but((0, 1, 2, program))
    process.die_with_parent()
    process.offer_to_oom_killer()
    root = os.geteuid() == 0
    namespaces.enter(("pid", "net", "ipc", "uts") if root else ("user", "pid", "net", "ipc", "uts"))
    if root:
        identity.change_uid(int(uid))
        identity.drop_capabilities()
        process.die_with_parent()  # cleared by the change
    process.renounce_new_privileges()
    for kind, value in (
        (resource.RLIMIT_CPU, int(cpu_s)),
        (resource.RLIMIT_DATA, int(data_bytes)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        rlimits.lower(kind, value)
    ready, write_ready = os.pipe()
    child = os.fork()
    if child == 0:
        process.die_with_parent()
        if seccomp.available():
            denied = dict.fromkeys(_DENIED[MACHINE], bpf.answer(seccomp.EPERM))
            filter_ = seccomp.Filter(
                bpf.program(MACHINE, denied, seccomp.ALLOW, seccomp.KILL)
            )  # the call holds its address
            make_calls((filter_.install_call(),))
        os.dup2(write_ready, 3)
        os.execve(program, ["node", *arguments], {})  # noqa: S606 - no shell is wanted
    os.close(write_ready)
    if os.read(ready, 1):
        for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC):
            resource.prlimit(child, kind, (0, 0))
        os.write(1, b"R")
    os.close(0)
    os.close(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
