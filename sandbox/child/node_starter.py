"""Start Node.js in a limited process: namespaces, a uid of its own, no privileges, limits, Landlock, a system call filter, then exec.

Executed by absolute path with an empty environment: ``python -I -S -E node_starter.py SANDBOX_FOLDER NODE UID CPU_S DATA_BYTES ARGUMENT…``.
Node.js opens files and starts threads until it writes R to descriptor 3, before it gets a byte of a tenant. The filter asks this process
about every call that is not on its list; this process lets them pass until the R, and then closes the filter's listener: from then on the
kernel refuses them. It also takes the limits down and the file system away, and passes the R on to standard output. It ends with the exit
code of Node.js, or with 128 and the number of the signal.
"""

import sys

if __name__ == "__main__":  # without site-packages: only the package folder with this file can be imported
    _lodger = type(sys)("lodger")
    _lodger.__path__ = [sys.argv[1].rpartition("/")[0]]
    sys.modules["lodger"] = _lodger

import array
import fcntl
import os
import resource
import select
import socket
import struct

from lodger.sandbox.walls import bpf, identity, landlock, namespaces, process, rlimits, seccomp
from lodger.sandbox.walls.syscalls import AUDIT, MACHINE

#: Calls of Node.js while it answers, by their numbers on x86_64 and aarch64: reading and writing, waiting, memory, time, the end. sendmsg
#: hands over the listener; Node.js has no socket.
_ALLOWED = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "close": (3, 57), "sendmsg": (46, 211),
    "poll": (7, -1), "ppoll": (271, 73), "epoll_wait": (232, -1), "epoll_pwait": (281, 22), "epoll_ctl": (233, 21),
    "mprotect": (10, 226), "pkey_mprotect": (329, 288), "munmap": (11, 215), "mremap": (25, 216), "brk": (12, 214),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "sched_yield": (24, 124), "getrandom": (318, 278),
    "getpid": (39, 172), "gettid": (186, 178), "getrusage": (98, 165), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94),
    "rseq": (334, 293),  # of a thread that still starts when the R is there: the C library ends the process without it
}  # fmt: skip
#: Calls that are allowed for some arguments.
_MMAP, _MADVISE, _FUTEX, _CLOCK_GETTIME = (9, 222), (28, 233), (202, 98), (228, 113)
#: Refused from the start: abort() sends itself a signal and then traps; a ring for input and output would outlast the start.
_REFUSED = {"tgkill": (234, 131), "io_uring_setup": (425, 425)}
#: The verdict that asks the listener, or is ENOSYS without one; EAGAIN; the flag of seccomp(2) for a listener.
_ASK, _TRY_AGAIN, _NEW_LISTENER = 0x7FC00000, 0x0005000B, 8
#: SHARED, GROWSDOWN, HUGETLB: memory that RLIMIT_DATA does not count, or that another process could see.
_UNCOUNTED = 0x1 | 0x100 | 0x40000
#: DONTNEED, FREE, DONTFORK, DOFORK, HUGEPAGE, NOHUGEPAGE, DONTDUMP, DODUMP. Merged pages would tell of other processes.
_ADVICE = (4, 8, 10, 11, 14, 15, 16, 17)
#: WAIT, WAKE, WAIT_BITSET, WAKE_BITSET, each PRIVATE: one that is shared has a key that all processes with the same file mapped have. The
#: C library waits for the end of a thread by a shared one, in a loop that another answer than a wake-up does not end.
_PRIVATE_WAITS, _FUTEX_COMMAND = (0x80, 0x81, 0x89, 0x8A), 0xFF
_OWN_CLOCKS, _WORD = 0xF, 0xFFFFFFFF
#: ioctl requests of a listener, the sizes of what they read and write, and the answer that lets a call pass.
_RECEIVE, _SEND, _ASKED_BYTES, _CONTINUE = 0xC0502100, 0xC0182101, 80, 1
#: Address space beyond that at the R, apart from what RLIMIT_DATA counts, for mappings that are reserved and not used.
ADDRESS_SLACK_BYTES = 512 * 1024 * 1024


def program(machine: str = MACHINE) -> bytes:
    """Return the filter: an allow-list, with the listener as the answer to everything else."""
    column = list(AUDIT).index(machine)
    allow, ask = bpf.answer(seccomp.ALLOW), bpf.answer(_ASK)
    rules = {numbers[column]: allow for numbers in _ALLOWED.values()}
    rules |= {numbers[column]: bpf.answer(seccomp.EPERM) for numbers in _REFUSED.values()}
    rules |= {
        _MMAP[column]: bpf.never(3, _UNCOUNTED, _ASK) + allow,
        _MADVISE[column]: bpf.when(2, _ADVICE, seccomp.ALLOW) + ask,
        _FUTEX[column]: bpf.when_masked(1, _FUTEX_COMMAND, _PRIVATE_WAITS, seccomp.ALLOW) + bpf.answer(_TRY_AGAIN),
        _CLOCK_GETTIME[column]: bpf.never(0, ~_OWN_CLOCKS & _WORD, _ASK) + allow,
    }
    rules.pop(-1, None)  # calls that the architecture lacks
    return bpf.program(machine, rules, _ASK, seccomp.KILL)


def main() -> None:
    """Enter the limits and walls in their order, and execute Node.js."""
    _, _, node, uid, cpu_s, data_bytes, *arguments = sys.argv
    opened = os.open(node, os.O_RDONLY)  # another user may not reach its folder
    executable = os.dup2(opened, 10, inheritable=False)  # beyond the descriptors of Node.js
    process.close_all_but((0, 1, 2, executable))
    process.die_with_parent()
    process.offer_to_oom_killer()
    root, own_uid, own_gid = os.geteuid() == 0, os.geteuid(), os.getegid()
    entered = namespaces.enter(tuple(name for name in namespaces.FLAGS if name != "user" or not root))
    if "user" in entered:
        namespaces.write_maps("self", own_uid, own_gid, privileged=False)
    process.renounce_new_privileges()
    lower_limits(int(cpu_s), int(data_bytes))
    ready, write_ready = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        if root:
            identity.change_uid(int(uid))
        identity.drop_capabilities()
        process.die_with_parent()
        forbid_writing()
        os.dup2(write_ready, 3)
        filter_calls(theirs)
        os.execve(executable, ["node", *arguments], {})  # noqa: S606 - no shell is wanted
    os.close(write_ready)
    theirs.close()
    if started(ours, ready):
        address_bytes = mapped_bytes(child) + int(data_bytes) + ADDRESS_SLACK_BYTES
        if "mount" in entered:
            take_files_away()
        if root:
            identity.change_uid(int(uid))
        identity.drop_capabilities()
        process.die_with_parent()  # cleared by the change
        lock(child, address_bytes)
        os.write(1, b"R")
    os.close(0)
    os.close(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def lower_limits(cpu_s: int, data_bytes: int) -> None:
    """Lower the limits that Node.js can start under."""
    for kind, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_DATA, data_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        rlimits.lower(kind, value)


def forbid_writing() -> None:
    """Deny by Landlock all that the kernel handles but reading files, which the start needs. Without Landlock the other walls stand."""
    try:
        landlock.restrict(landlock.READING)
    except OSError:
        return


def filter_calls(parent: socket.socket) -> None:
    """Install the filter and hand its listener to the parent. Where the kernel has no such filter, the other walls stand."""
    if seccomp.available():
        listener = seccomp.Filter(program()).install(_NEW_LISTENER)
        socket.send_fds(parent, [b"l"], [listener])
    else:
        parent.send(b"-")


def started(parent: socket.socket, ready: int) -> bool:
    """Let the calls of the start pass until the R is there; return False if Node.js ended before."""
    said, listeners, _, _ = parent.recvmsg(1, socket.CMSG_SPACE(4))
    if not said:
        return False
    listener = array.array("i", listeners[0][2])[0] if listeners else -1
    wanted = select.poll()
    wanted.register(ready, select.POLLIN)
    if listener >= 0:
        wanted.register(listener, select.POLLIN)
    try:
        while True:
            events = dict(wanted.poll())
            if ready in events:  # first: no call passes once Node.js may have a byte of a tenant
                return os.read(ready, 1) == b"R"
            if events.get(listener, 0) & select.POLLIN:
                let_pass(listener)
    finally:
        if listener >= 0:
            os.close(listener)


def let_pass(listener: int) -> None:
    """Let one call pass; its thread may have ended meanwhile."""
    asked = bytearray(_ASKED_BYTES)
    try:
        fcntl.ioctl(listener, _RECEIVE, asked)
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", struct.unpack_from("=Q", asked)[0], 0, 0, _CONTINUE))
    except OSError:
        return


def mapped_bytes(child: int) -> int:
    """Return the size of a process's address space."""
    with open(f"/proc/{child}/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not loaded
        return int(statm.read().split()[0]) * resource.getpagesize()


def take_files_away() -> None:
    """Make an empty root that of all processes in this mount namespace. Where the host refuses, the other walls stand."""
    try:
        namespaces.empty_root()
    except OSError:
        return


def lock(child: int, address_bytes: int) -> None:
    """Take descriptors, threads, signals and further address space from Node.js, as its own user."""
    for kind, value in (
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_SIGPENDING, 0),
        (resource.RLIMIT_AS, address_bytes),
    ):
        resource.prlimit(child, kind, (value, value))


if __name__ == "__main__":
    main()
