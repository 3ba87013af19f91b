"""The system call filters: A is an allow-list that kills by default, B removes the calls that only arming needs.

Both are assembled in the zygote (:mod:`lodger.sandbox.walls.bpf`) and installed by each worker. The default kills the process: an unlisted
system call is an attack or a bug, and an errno would allow a second try; the parent recognises SIGSYS.
The calls that return EPERM are those of the C library's abort, which then ends the process by a trap instruction.
"""

import struct

from lodger.sandbox.walls import bpf
from lodger.sandbox.walls.libc import Call, address, buffer, prepare_call, syscall
from lodger.sandbox.walls.syscalls import AUDIT, MACHINE, NUMBER, table

KILL, ALLOW, EPERM = 0x80000000, 0x7FFF0000, 0x00050001
_PROT_WRITE, _PROT_EXEC = 2, 4
_SET_MODE_FILTER = 1
_WORD = 0xFFFFFFFF
_FUTEX_COMMAND = 0xFF  # with the flag PRIVATE, without CLOCK_REALTIME
_FUTEX_WAIT_AND_WAKE = (0x80, 0x81, 0x89, 0x8A)  # WAIT, WAKE, WAIT_BITSET, WAKE_BITSET, each PRIVATE
_ADVICE = (4, 8)  # DONTNEED, FREE
_OWN_CLOCKS = 0xF
#: SHARED and GROWSDOWN: memory that RLIMIT_DATA does not count; HUGETLB: pages reserved for other uses.
_UNCOUNTED = 0x1 | 0x100 | 0x40000
_ONLY_PRIVATE = bpf.never(3, _UNCOUNTED, KILL)
_NOT_EXECUTABLE = bpf.never(2, _PROT_EXEC, KILL)
#: Denies pages that are executable and writable at once.
_NOT_BOTH = bpf.never_both(2, _PROT_EXEC, _PROT_WRITE, KILL)

#: Allowed with any arguments, and why.
PLAIN: "dict[str, str]" = {
    "read": "frames from the parent: the socket is the only descriptor",
    "write": "frames to the parent",
    "poll": "waits for an answer or for a timer of the script; aarch64 has ppoll instead",
    "ppoll": "the same on aarch64, and in the C library where it prefers it",
    "munmap": "the allocators",
    "brk": "the C library's heap, bounded by RLIMIT_DATA",
    "mremap": "the allocators grow large blocks; the mapping keeps its protection",
    "getrandom": "seeding the random generator, crypto of scripts, random_get of modules",
    "rt_sigreturn": "a WebAssembly trap is a fault that libwasmtime handles",
    "sigaltstack": "libwasmtime's stack for handling it",
    "gettid": "the C library before it aborts; returns an id of this process only",
    "getpid": "the same",
    "sched_yield": "spinning locks of libwasmtime and of the allocator",
    "restart_syscall": "the kernel's way to resume an interrupted wait",
    "exit": "the end of a thread",
    "exit_group": "the end",
}
#: Further calls of a runtime, by its name; declared here because a runtime must not widen its own wall.
RUNTIME_CALLS: "dict[str, tuple[str, ...]]" = {
    "quickjs-native": ("getrusage",),  # its own peak memory, to explain a thrown null
}
#: Further calls of a runtime on one architecture: aarch64 must synchronise other cores with new code.
RUNTIME_CALLS_ON: "dict[tuple[str, str], tuple[str, ...]]" = {
    ("wasm", "aarch64"): ("membarrier",),
    ("wasm_compiler", "aarch64"): ("membarrier",),
}
#: Runtimes that may make pages executable, never writable at once: until armed, or always.
EXECUTABLE_UNTIL_ARMED = ("wasm",)
EXECUTABLE = ("wasm_compiler",)
#: Allowed while argument 2 (protection) has no PROT_EXEC: the allocators, and growth of WebAssembly's memory.
NEVER_EXECUTABLE = ("mprotect", "mmap")
#: Refused with EPERM: abort of the C library, see the module's docstring.
REFUSED = ("tgkill", "rt_sigprocmask", "rt_sigaction")
#: SIGILL, SIGBUS, SIGFPE, SIGSEGV: for a fault outside WebAssembly, wasmtime's handler restores the default action and returns to the
#: faulting instruction. If that were refused, a process that aborts would loop until its CPU limit.
FAULTS = (4, 7, 8, 11)
#: Allowed until a worker is armed: name and required arguments (index, value).
UNTIL_ARMED = (
    ("prlimit64", ((0, 0),)),
    ("timer_settime", ()),
    ("seccomp", ((0, _SET_MODE_FILTER), (1, 0))),
)
#: Further calls of a runtime until a worker is armed.
RUNTIME_CALLS_UNTIL_ARMED: "dict[str, tuple[str, ...]]" = {
    "quickjs": ("recvmsg", "pread64", "close"),
    "wasm": ("recvmsg", "close"),
}


#: Rules of the calls that are allowed for some arguments only.
PARTLY_ALLOWED: "dict[str, bytes]" = {
    # Priority-inheriting locks (LOCK_PI and related) reach other processes by their id and were used in exploits.
    # A shared futex on a mapped file has one key for all processes that map it: a channel between workers.
    "futex": bpf.when_masked(1, _FUTEX_COMMAND, _FUTEX_WAIT_AND_WAKE, ALLOW) + bpf.answer(KILL),
    # Merged pages (MERGEABLE) reveal the memory content of other workers.
    "madvise": bpf.when(2, _ADVICE, ALLOW) + bpf.answer(KILL),
    # Higher numbers are CPU clocks of other processes, which reveal their activity.
    "clock_gettime": bpf.never(0, ~_OWN_CLOCKS & _WORD, KILL) + bpf.answer(ALLOW),
}


def first_filter(machine: str = MACHINE, runtime: str = "") -> bytes:
    """Return filter A for an architecture and a runtime."""
    numbers = table(machine)
    allow = bpf.answer(ALLOW)
    rules = {
        numbers[name]: allow
        for name in (*PLAIN, *RUNTIME_CALLS.get(runtime, ()), *RUNTIME_CALLS_ON.get((runtime, machine), ()))
    }
    makes_code = runtime in (*EXECUTABLE_UNTIL_ARMED, *EXECUTABLE)
    for name in NEVER_EXECUTABLE:
        rules[numbers[name]] = (_NOT_BOTH if makes_code and name == "mprotect" else _NOT_EXECUTABLE) + allow
    rules[numbers["mmap"]] = _ONLY_PRIVATE + rules[numbers["mmap"]]
    rules |= {numbers[name]: body for name, body in PARTLY_ALLOWED.items()}
    for name in REFUSED:
        rules[numbers[name]] = bpf.answer(EPERM)
    rules[numbers["rt_sigaction"]] = bpf.when(0, FAULTS, ALLOW) + bpf.answer(EPERM)
    for name in RUNTIME_CALLS_UNTIL_ARMED.get(runtime, ()):
        rules[numbers[name]] = allow
    for name, arguments in UNTIL_ARMED:
        rules[numbers[name]] = b"".join(bpf.exactly(*pair, KILL) for pair in arguments) + allow
    rules.pop(-1, None)  # calls that the architecture lacks
    return bpf.program(machine, rules, KILL, KILL)


def second_filter(machine: str = MACHINE, runtime: str = "") -> bytes:
    """Return filter B: it denies the calls of arming and new executable pages; filter A still applies to the others."""
    numbers = table(machine)
    ended = (*(name for name, _ in UNTIL_ARMED), *RUNTIME_CALLS_UNTIL_ARMED.get(runtime, ()))
    rules = {numbers[name]: bpf.answer(KILL) for name in ended}
    if runtime in EXECUTABLE_UNTIL_ARMED:
        rules[numbers["mprotect"]] = _NOT_EXECUTABLE + bpf.answer(ALLOW)
    return bpf.program(machine, rules, ALLOW, KILL)


class Filter:
    """An assembled program at a fixed address, ready to be installed by any fork of this process."""

    def __init__(self, program: bytes) -> None:
        self._code = buffer(program)
        self._fprog = buffer(struct.pack("=H6xQ", len(program) // 8, address(self._code)))
        self._at = address(self._fprog)

    def install_call(self) -> Call:
        """Return the call that installs the filter on this thread; needs no_new_privs."""
        return prepare_call(NUMBER["seccomp"], _SET_MODE_FILTER, 0, self._at)

    def install(self, flags: int = 0) -> int:
        """Install the filter on this thread now and return what seccomp(2) returns. Raises OSError."""
        return syscall(NUMBER["seccomp"], _SET_MODE_FILTER, flags, self._at)


def available() -> bool:
    """Return whether the kernel supports killing the whole process (seccomp(2), GET_ACTION_AVAIL)."""
    if MACHINE not in AUDIT:
        return False
    try:
        action = buffer(struct.pack("=I", KILL))
        return syscall(NUMBER["seccomp"], 2, 0, address(action)) == 0
    except OSError:
        return False
