"""Pages that an attempt writes: found by a rehearsal in a fork of the zygote, then copied in each worker before its job arrives.

A fork shares its pages until one side writes. Copying them by a rehearsal in each worker cost half a millisecond of CPU time; copying them
by madvise(2) costs a fifth of that.
"""

import os
import struct

from lodger.sandbox.walls.libc import Call, make_calls, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 4096
# proc_pid_pagemap(5): present, file-backed, exclusively mapped
_PRESENT, _OF_FILE, _OWN = 1 << 63, 1 << 61, 1 << 56
_POPULATE_WRITE = 23  # madvise(2), Linux 5.14


def copy_calls(rehearse: "Callable[[], None]", start: int, end: int) -> "tuple[Call, ...]":
    """Return the system calls by which a fork copies the pages between two addresses that a rehearsal writes; none if unsupported.

    Args:
        rehearse: called in a fork of this process.
        start, end: addresses of the memory, multiples of the page size.
    """
    calls = tuple(
        prepare_call(NUMBER["madvise"], start + first * PAGE, count * PAGE, _POPULATE_WRITE)
        for first, count in _ranges(_written_pages(rehearse, start, end))
    )
    try:
        make_calls(calls)  # a test whether the kernel supports it
    except OSError:
        return ()
    return calls


def region(name: str) -> "tuple[int, int]":
    """Return start and end of a named region of this process, such as ``[heap]``; zeros if there is none."""
    with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123 - pathlib would make every fork slower
        for line in maps.read().split(b"\n"):
            if line.endswith(name.encode()):
                start, end = line.split(b" ")[0].split(b"-")
                return int(start, 16), int(end, 16)
    return 0, 0


def _written_pages(rehearse: "Callable[[], None]", start: int, end: int) -> "list[int]":
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            rehearse()
            os.write(writing, _private_pages(start, end))
        finally:
            os._exit(0)
    os.close(writing)
    data = b""
    while part := os.read(reading, 1 << 16):
        data += part
    os.close(reading)
    os.waitpid(pid, 0)
    return list(struct.unpack(f"={len(data) // 4}I", data[: len(data) // 4 * 4]))


def _private_pages(start: int, end: int) -> bytes:
    count = (end - start) // PAGE
    map_of = os.open("/proc/self/pagemap", os.O_RDONLY)
    entries = struct.unpack(f"={count}Q", os.pread(map_of, 8 * count, start // PAGE * 8))
    private = [
        number for number, entry in enumerate(entries) if entry & _PRESENT and entry & _OWN and not entry & _OF_FILE
    ]
    return struct.pack(f"={len(private)}I", *private)


def _ranges(numbers: "list[int]") -> "list[tuple[int, int]]":
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and sum(found[-1]) == number:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found
