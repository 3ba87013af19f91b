"""Resource limits: what cannot be raised again. Hard limits are set with the soft ones, so each call only ever lowers."""

import resource
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, prepared
from lodger.sandbox.walls.syscalls import NUMBER

_PRLIMIT = NUMBER["prlimit64"]
_PAIR = struct.Struct("=QQ")  # struct rlimit: soft, hard
MIB = 1024 * 1024

#: What a worker's writable memory may exceed its memory limit by, beside the copies of what crosses the wall: with the default
#: limits 16 MiB together. The interpreter's own growth and the runtime's tables live in it.
DATA_SLACK_BYTES = 11 * MIB
#: What a worker's address space may grow by beside its memory and copies: each 2 MiB of it can cost a page table of 4 KiB, which
#: no other limit of a process counts.
ADDRESS_SLACK_BYTES = 32 * MIB
#: Runtimes that reserve address space for a guest's memory after the limits are set: 4 GiB and guard regions.
ADDRESS_RESERVED_BYTES = {"wasm": 8192 * MIB, "wasm_compiler": 8192 * MIB}


def lower(kind: int, value: int) -> None:
    """Set soft and hard limit to the value, or leave them where they are lower."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def bound_for_all(data_bytes: int, stack_bytes: int) -> None:
    """In the zygote: everything that the zygote itself can live under and a fork inherits."""
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, 0)
    lower(resource.RLIMIT_MEMLOCK, 0)
    lower(resource.RLIMIT_MSGQUEUE, 0)
    lower(resource.RLIMIT_STACK, stack_bytes)
    lower(resource.RLIMIT_DATA, data_bytes)


def ceilings() -> "tuple[int, int, int]":
    """Return the hard limits of this process: CPU seconds, data bytes, address space bytes. Nothing may be set above them."""
    found = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    cpu, data, address_space = (1 << 46 if hard == resource.RLIM_INFINITY else hard for hard in found)
    return cpu, data, address_space


def setting(kind: int, at: int) -> Call:
    """Give the call that sets a limit of this process to the pair of numbers at an address; what would raise it is refused."""
    return prepared(_PRLIMIT, 0, kind, at, 0)


#: Pairs that never change, at addresses that every fork has.
_pairs = [buffer(_PAIR.pack(0, 0))]
_NONE = address(_pairs[0])


def of_worker(open_files: int) -> "tuple[Call, ...]":
    """In each worker: what would stop the zygote's own work."""
    _pairs.append(buffer(_PAIR.pack(open_files, open_files)))
    return setting(resource.RLIMIT_NPROC, _NONE), setting(resource.RLIMIT_NOFILE, address(_pairs[-1]))


def of_armed_worker() -> "tuple[Call, ...]":
    """In an armed worker: no more queued signals.

    Not earlier: each worker's CPU timer counts against what all processes of its uid may have pending together.
    """
    return (setting(resource.RLIMIT_SIGPENDING, _NONE),)


class JobNumbers:
    """The limits that each job lowers, at a fixed address: RLIMIT_CPU, RLIMIT_DATA, RLIMIT_AS and what the CPU timer is set to."""

    _ALL = struct.Struct("=10Q")

    def __init__(self) -> None:
        self._memory = buffer(bytes(self._ALL.size))
        self._at = address(self._memory)

    def write(self, cpu_seconds: int, data_bytes: int, address_bytes: int, timer_ms: int) -> None:
        """Store the numbers; they count when the calls are carried out."""
        seconds, ms = divmod(timer_ms, 1000)
        self._ALL.pack_into(
            self._memory,
            0,
            cpu_seconds,
            cpu_seconds,
            data_bytes,
            data_bytes,
            address_bytes,
            address_bytes,
            0,
            0,
            seconds,
            ms * 1_000_000,
        )

    def settings(self) -> "tuple[Call, ...]":
        """Return the calls that set the three limits."""
        kinds = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS)
        return tuple(setting(kind, self._at + place * _PAIR.size) for place, kind in enumerate(kinds))

    @property
    def timer_at(self) -> int:
        """Where the timer's numbers lie (struct itimerspec)."""
        return self._at + 3 * _PAIR.size
