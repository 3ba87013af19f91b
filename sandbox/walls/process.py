"""What a process says about itself through prctl, descriptors and /proc/self: death signal, no_new_privs, dumpable, OOM score."""

import os

from lodger.sandbox.walls.libc import Call, carry_out, prepared, syscall
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


#: Asks for SIGKILL when the parent thread dies. A fork and a change of uid both clear it.
DEATH_SIGNAL: Call = prepared(_PRCTL, _SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
#: Not dumpable. A fork inherits it, a change of uid may clear it.
UNDUMPABLE: Call = prepared(_PRCTL, _SET_DUMPABLE, 0, 0, 0, 0)
#: A session of its own, for which no terminal's signals are meant.
OWN_SESSION: Call = prepared(NUMBER["setsid"])


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent thread dies. Raises OSError."""
    carry_out((DEATH_SIGNAL,))


def renounce_new_privileges() -> None:
    """No exec gives privileges any more; seccomp and Landlock need it from an ordinary user."""
    syscall(_PRCTL, _SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def hide_memory() -> None:
    """Not dumpable: no core, no ptrace by the same uid, /proc/self belongs to root. Inherited by fork."""
    carry_out((UNDUMPABLE,))


def keep_capabilities(on: bool) -> None:
    """Keep the permitted set through the next change of uid."""
    syscall(_PRCTL, _SET_KEEPCAPS, int(on), 0, 0, 0)


def drop_bounding_set() -> None:
    """Empty the bounding and ambient sets as far as this process may."""
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
    """Under memory pressure the kernel takes a worker first, never the engine. Must come before dumpable 0."""
    score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    try:
        os.write(score, b"1000")
    finally:
        os.close(score)


def seal_code() -> None:
    """Take the right to write from every mapping that is also executable. Raises OSError.

    ctypes keeps its closures in one such page: an arbitrary write inside a worker would become native code there without any system
    call. They are written when they are made, in the zygote, and never again. Needs /proc; the filter refuses to undo it.
    """
    with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123 - pathlib would make every fork dearer
        lines = maps.read().split(b"\n")
    for line in lines:
        place, _, rights = line.partition(b" ")
        if rights[1:3] == b"wx":
            start, end = (int(bound, 16) for bound in place.split(b"-"))
            syscall(NUMBER["mprotect"], start, end - start, _PROT_READ_EXEC)


def close_all_but(kept: "tuple[int, ...]") -> None:
    """Close every descriptor except these."""
    low = 0
    for number in sorted(kept):
        if number > low:
            syscall(NUMBER["close_range"], low, number - 1, 0)
        low = number + 1
    syscall(NUMBER["close_range"], low, 0xFFFFFFFF, 0)


def restrict_speculation() -> None:
    """Ask the kernel to mitigate speculative store bypass and indirect branches, for good. Inherited by fork.

    A request and no wall: kernels whose host decides it, or whose processor needs it not, refuse (ENXIO, EPERM, ENODEV).
    """
    for feature in (_STORE_BYPASS, _INDIRECT_BRANCH):
        try:
            syscall(_PRCTL, _SET_SPECULATION_CTRL, feature, _FORCE_DISABLE, 0, 0)
        except OSError:
            continue
