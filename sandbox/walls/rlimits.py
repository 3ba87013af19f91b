"""Resource limits of the zygote and its workers. Soft and hard limits are set together, so a limit can only be lowered."""

import resource
import struct

from lodger.sandbox.walls.libc import Call, address, buffer, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

_PRLIMIT = NUMBER["prlimit64"]
_PAIR = struct.Struct("=QQ")  # struct rlimit: soft, hard
MIB = 1024 * 1024
_SIGNAL_INTERVAL_NS = 4_000_000

#: Writable memory of a worker beyond its memory limit and its copies of frames, for the interpreter and the runtime's tables. With the
#: copies, 16 MiB at the default limits.
DATA_SLACK_BYTES = 11 * MIB
#: Address space of a worker beyond its memory and copies. Bounded because each 2 MiB can cost a page table of 4 KiB, which no other limit
#: counts.
ADDRESS_SLACK_BYTES = 32 * MIB
#: Address space that a runtime reserves for a guest's memory after the limits are set: 4 GiB and guard regions.
ADDRESS_RESERVED_BYTES = {"wasm": 8192 * MIB, "wasm_compiler": 8192 * MIB}


def lower(kind: int, value: int) -> None:
    """Set the soft and hard limit to the value, or to the current hard limit if that is lower."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def set_inherited_limits(data_bytes: int, stack_bytes: int) -> None:
    """Set the limits that the zygote can work under; forks inherit them."""
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, 0)
    lower(resource.RLIMIT_MEMLOCK, 0)
    lower(resource.RLIMIT_MSGQUEUE, 0)
    lower(resource.RLIMIT_STACK, stack_bytes)
    lower(resource.RLIMIT_DATA, data_bytes)


def hard_limits() -> "tuple[int, int, int]":
    """Return the hard limits of this process: CPU seconds, data bytes, address space bytes."""
    found = [resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    cpu, data, address_space = (1 << 46 if hard == resource.RLIM_INFINITY else hard for hard in found)
    return cpu, data, address_space


def setting(kind: int, at: int) -> Call:
    """Return the call that sets a limit of this process to the struct rlimit at an address."""
    return prepare_call(_PRLIMIT, 0, kind, at, 0)


#: Constant limits, at addresses that every fork inherits.
_pairs = [buffer(_PAIR.pack(0, 0))]
_NONE = address(_pairs[0])


def worker_calls(open_files: int) -> "tuple[Call, ...]":
    """Return the calls for limits of a worker that the zygote cannot work under: processes and open files."""
    _pairs.append(buffer(_PAIR.pack(open_files, open_files)))
    return setting(resource.RLIMIT_NPROC, _NONE), setting(resource.RLIMIT_NOFILE, address(_pairs[-1]))


def armed_worker_calls() -> "tuple[Call, ...]":
    """Return the calls for limits of an armed worker: no queued signals.

    Not earlier: each worker's CPU timer counts against the queued signals of all processes of its uid.
    """
    return (setting(resource.RLIMIT_SIGPENDING, _NONE),)


class JobNumbers:
    """Limits of a job at a fixed address: RLIMIT_CPU, RLIMIT_DATA, RLIMIT_AS and the settings of both CPU timers."""

    _ALL = struct.Struct("=14Q")

    def __init__(self) -> None:
        self._memory = buffer(bytes(self._ALL.size))
        self._at = address(self._memory)

    def write(self, cpu_seconds: int, data_bytes: int, address_bytes: int, timer_ms: int, signal_ms: int) -> None:
        """Store the numbers, which the prepared calls read."""
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
            0,
            _SIGNAL_INTERVAL_NS,
            signal_ms // 1000,
            signal_ms % 1000 * 1_000_000,
        )

    def settings(self) -> "tuple[Call, ...]":
        """Return the prepared calls that set the limits of CPU time, private memory and address space."""
        kinds = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS)
        return tuple(setting(kind, self._at + place * _PAIR.size) for place, kind in enumerate(kinds))

    def timer_at(self, timer: int) -> int:
        """Return the address of a timer's setting (struct itimerspec)."""
        return self._at + (3 + 2 * timer) * _PAIR.size
