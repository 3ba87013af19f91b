"""Process attributes: death signal, no_new_privs, dumpable flag, capability sets, OOM score, descriptors."""

import os

from lodger.sandbox.walls.libc import Call, make_calls, prepare_call, syscall
from lodger.sandbox.walls.syscalls import NUMBER

_PRCTL = NUMBER["prctl"]
_SET_PDEATHSIG = 1
_SET_DUMPABLE = 4
_SET_KEEPCAPS = 8
_CAPBSET_READ = 23
_CAPBSET_DROP = 24
_SET_NO_NEW_PRIVS = 38
_CAP_AMBIENT = 47
_CAP_AMBIENT_CLEAR_ALL = 4
_SIGKILL = 9
_PROT_READ_EXEC = 5
_SET_SPECULATION_CTRL = 53
_STORE_BYPASS, _INDIRECT_BRANCH = 0, 1
_FORCE_DISABLE = 8


#: Requests SIGKILL when the parent thread dies. A fork and a change of uid both clear it.
DEATH_SIGNAL: Call = prepare_call(_PRCTL, _SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
#: Makes the process not dumpable. Inherited by a fork; a change of uid may clear it.
UNDUMPABLE: Call = prepare_call(_PRCTL, _SET_DUMPABLE, 0, 0, 0, 0)
#: Starts a session, so that no terminal's signals arrive.
OWN_SESSION: Call = prepare_call(NUMBER["setsid"])


def die_with_parent() -> None:
    """Request SIGKILL when the parent thread dies. Raises OSError."""
    make_calls((DEATH_SIGNAL,))


def renounce_new_privileges() -> None:
    """Set no_new_privs: exec grants no privileges. Seccomp and Landlock require it of an ordinary user."""
    syscall(_PRCTL, _SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def hide_memory() -> None:
    """Make the process not dumpable: no core dump, no ptrace by the same uid, /proc/self owned by root. Inherited by forks."""
    make_calls((UNDUMPABLE,))


def keep_capabilities(on: bool) -> None:
    """Set whether the next change of uid keeps the permitted capabilities."""
    syscall(_PRCTL, _SET_KEEPCAPS, int(on), 0, 0, 0)


def drop_bounding_set() -> None:
    """Empty the bounding and ambient capability sets as far as permitted."""
    for capability in range(64):
        try:
            if syscall(_PRCTL, _CAPBSET_READ, capability, 0, 0, 0):
                syscall(_PRCTL, _CAPBSET_DROP, capability, 0, 0, 0)
        except OSError:
            break
    try:
        syscall(_PRCTL, _CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    except OSError:
        pass


def offer_to_oom_killer() -> None:
    """Set the highest OOM score, so that the kernel kills a worker before the engine. Must precede dumpable 0."""
    score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(score, b"1000")
    finally:
        os.close(score)


def seal_code() -> None:
    """Make every executable mapping read-only. Raises OSError.

    ctypes keeps its closures in a writable executable page, which an arbitrary write in a worker could turn into native code. They are
    written only when created, in the zygote. Needs /proc; the seccomp filter denies undoing it.
    """
    with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123 - pathlib would make every fork slower
        lines = maps.read().split(b"\n")
    for line in lines:
        place, _, rights = line.partition(b" ")
        if rights[1:3] == b"wx":
            start, end = (int(bound, 16) for bound in place.split(b"-"))
            syscall(NUMBER["mprotect"], start, end - start, _PROT_READ_EXEC)


def close_all_but(kept: "tuple[int, ...]") -> None:
    """Close every descriptor except the given ones."""
    low = 0
    for number in sorted(kept):
        if number > low:
            syscall(NUMBER["close_range"], low, number - 1, 0)
        low = number + 1
    syscall(NUMBER["close_range"], low, 0xFFFFFFFF, 0)


def restrict_speculation() -> None:
    """Request mitigation of speculative store bypass and indirect branches until the process ends. Inherited by forks.

    Not a wall: the kernel refuses if the host controls it or the processor does not need it (ENXIO, EPERM, ENODEV).
    """
    for feature in (_STORE_BYPASS, _INDIRECT_BRANCH):
        try:
            syscall(_PRCTL, _SET_SPECULATION_CTRL, feature, _FORCE_DISABLE, 0, 0)
        except OSError:
            continue
