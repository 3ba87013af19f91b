"""The system call filters: A is an allow-list that kills by default, B takes back what only arming needed.

Both are classic BPF programs over seccomp_data (nr, arch, instruction pointer, six arguments). They are assembled in the zygote,
a worker only points the kernel at them. Killing the whole process is the default, because a system call that the filter does not know is
either an attack or a mistake of ours, and an errno would give an attack a second try; the parent reads SIGSYS as such.
The few calls that answer EPERM are those by which the C library ends itself (abort): it then dies by its trap instruction.
"""

import struct

from lodger.sandbox.walls.libc import address, buffer, syscall
from lodger.sandbox.walls.syscalls import AUDIT, MACHINE, NUMBER, table

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
KILL, ALLOW, EPERM = 0x80000000, 0x7FFF0000, 0x00050001
_PROT_WRITE, _PROT_EXEC = 2, 4
_X32 = 0x40000000
_SET_MODE_FILTER = 1

#: Allowed as they are, the frequent ones first: the filter is walked from the top.
PLAIN = (
    "read",
    "write",
    "poll",
    "ppoll",
    "futex",
    "madvise",
    "munmap",
    "brk",
    "mremap",
    "getrandom",
    "clock_gettime",
    "rt_sigreturn",
    "sigaltstack",
    "gettid",
    "getpid",
    "sched_yield",
    "restart_syscall",
    "exit",
    "exit_group",
)
#: What a runtime needs beyond the plain ones, by its name; it stands here, because a runtime may not widen its own wall.
ADDED: "dict[str, tuple[str, ...]]" = {
    "quickjs-native": ("getrusage",),  # its own peak memory: what a bare null thrown means
}
#: The same, where only this architecture needs it: aarch64 tells other cores that there is new code.
ADDED_ON: "dict[tuple[str, str], tuple[str, ...]]" = {
    ("wasm", "aarch64"): ("membarrier",),
    ("wasm_compiler", "aarch64"): ("membarrier",),
}
#: Runtimes that make compiled code executable, never while it is writable: the first until it is armed, the second to its end.
EXECUTABLE_UNTIL_ARMED = ("wasm",)
EXECUTABLE = ("wasm_compiler",)
#: Allowed while argument 2 (protection) has no PROT_EXEC.
NEVER_EXECUTABLE = ("mprotect", "mmap")
#: Refused with EPERM, see above.
REFUSED = ("tgkill", "rt_sigprocmask", "rt_sigaction")
#: SIGILL, SIGBUS, SIGFPE, SIGSEGV: for a fault that is not WebAssembly's, wasmtime's handler sets the default again and returns into the
#: faulting instruction. Were that refused, a process that aborts (out of memory in native code) would spin to its CPU limit.
FAULTS = (4, 7, 8, 11)
#: Only until a worker is armed: name and the arguments (index, value) that must hold.
UNTIL_ARMED = (
    ("prlimit64", ((0, 0),)),
    ("timer_settime", ()),
    ("seccomp", ((0, _SET_MODE_FILTER), (1, 0))),
)


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _return(verdict: int) -> bytes:
    return _op(_RETURN, verdict)


def _guard(machine: str) -> bytes:
    program = _op(_LOAD, _ARCH) + _op(_EQUAL, AUDIT[machine], 1, 0) + _return(KILL) + _op(_LOAD, _NR)
    if machine == "x86_64":  # the x32 table shares the architecture mark and differs by one bit
        program += _op(_AT_LEAST, _X32, 0, 1) + _return(KILL)
    return program


def _when(number: int, body: bytes) -> bytes:
    return _op(_EQUAL, number, 0, len(body) // 8) + body


def _argument_is(index: int, value: int) -> bytes:
    low, high = _ARGUMENTS + 8 * index, _ARGUMENTS + 8 * index + 4
    return b"".join(
        _op(_LOAD, offset) + _op(_EQUAL, word, 1, 0) + _return(KILL)
        for offset, word in ((low, value & 0xFFFFFFFF), (high, value >> 32))
    )


_GIVE_BACK = _op(_LOAD, _ARGUMENTS) + b"".join(_op(_EQUAL, number, 0, 1) + _return(ALLOW) for number in FAULTS)
_PROTECTION = _op(_LOAD, _ARGUMENTS + 16)
_NOT_EXECUTABLE = _PROTECTION + _op(_ANY_BIT, _PROT_EXEC, 0, 1) + _return(KILL)
#: Executable is allowed, executable and writable at once is not.
_NOT_BOTH = _PROTECTION + _op(_ANY_BIT, _PROT_EXEC, 0, 2) + _op(_ANY_BIT, _PROT_WRITE, 0, 1) + _return(KILL)


def first(machine: str = MACHINE, runtime: str = "") -> bytes:
    """Filter A for a machine and a runtime."""
    numbers = table(machine)
    program = _guard(machine)
    for name in (*PLAIN, *ADDED.get(runtime, ()), *ADDED_ON.get((runtime, machine), ())):
        if numbers[name] >= 0:
            program += _when(numbers[name], _return(ALLOW))
    makes_code = runtime in (*EXECUTABLE_UNTIL_ARMED, *EXECUTABLE)
    for name in NEVER_EXECUTABLE:
        test = _NOT_BOTH if makes_code and name == "mprotect" else _NOT_EXECUTABLE
        program += _when(numbers[name], test + _return(ALLOW))
    for name in REFUSED:
        program += _when(numbers[name], (_GIVE_BACK if name == "rt_sigaction" else b"") + _return(EPERM))
    for name, arguments in UNTIL_ARMED:
        program += _when(numbers[name], b"".join(_argument_is(*pair) for pair in arguments) + _return(ALLOW))
    return program + _return(KILL)


def second(machine: str = MACHINE, runtime: str = "") -> bytes:
    """Filter B: the calls of arming are gone, and no page becomes executable any more; what A says of the others stays."""
    numbers = table(machine)
    program = _guard(machine)
    for name, _ in UNTIL_ARMED:
        program += _when(numbers[name], _return(KILL))
    if runtime in EXECUTABLE_UNTIL_ARMED:
        program += _when(numbers["mprotect"], _NOT_EXECUTABLE + _return(ALLOW))
    return program + _return(ALLOW)


class Filter:
    """An assembled program at a fixed address, ready to be installed by any fork of this process."""

    def __init__(self, program: bytes) -> None:
        self._code = buffer(program)
        self._fprog = buffer(struct.pack("=H6xQ", len(program) // 8, address(self._code)))
        self._at = address(self._fprog)

    def install(self) -> None:
        """Raise the filter on this thread; needs no_new_privs. Raises OSError."""
        syscall(NUMBER["seccomp"], _SET_MODE_FILTER, 0, self._at)


def available() -> bool:
    """Whether the kernel knows killing the whole process (seccomp(2), GET_ACTION_AVAIL)."""
    if MACHINE not in AUDIT:
        return False
    try:
        action = buffer(struct.pack("=I", KILL))
        return syscall(NUMBER["seccomp"], 2, 0, address(action)) == 0
    except OSError:
        return False
