"""Numbers of the system calls that the walls name, per architecture."""

import os

#: AUDIT_ARCH_* of linux/audit.h: what seccomp_data.arch holds.
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64), -1 where the architecture has no such call; from the kernel's syscall_64.tbl and asm-generic/unistd.h
_NUMBERS = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "poll": (7, -1),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "recvmsg": (47, 212),
    "exit": (60, 93),
    "wait4": (61, 260),
    "getrusage": (98, 165),
    "setsid": (112, 157),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "capset": (126, 91),
    "sigaltstack": (131, 132),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "gettid": (186, 178),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "timer_create": (222, 107),
    "timer_settime": (223, 110),
    "clock_gettime": (228, 113),
    "exit_group": (231, 94),
    "tgkill": (234, 131),
    "unshare": (272, 97),
    "ppoll": (271, 73),
    "membarrier": (324, 283),
    "prlimit64": (302, 261),
    "seccomp": (317, 277),
    "getrandom": (318, 278),
    "pidfd_open": (434, 434),
    "close_range": (436, 436),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}

MACHINE = os.uname().machine

_COLUMN = 1 if MACHINE == "aarch64" else 0
#: The running machine's numbers by name.
NUMBER = {name: row[_COLUMN] for name, row in _NUMBERS.items()}


def table(machine: str) -> "dict[str, int]":
    """Return the call numbers of one architecture by name, -1 for calls that it lacks."""
    column = list(AUDIT).index(machine)
    return {name: row[column] for name, row in _NUMBERS.items()}
