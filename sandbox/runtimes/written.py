"""Pages that an attempt writes: found by a rehearsal in a fork of the zygote, then copied in each worker before its job arrives.

A fork shares its pages until one side writes. Copying them by a rehearsal in each worker cost half a millisecond of CPU time; writing one
byte of each back costs a fifth of that, and a fifth less than madvise(2), which would need a place in the filter.
"""

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = os.sysconf("SC_PAGE_SIZE")
# proc_pid_pagemap(5): present, file-backed, exclusively mapped
_PRESENT, _OF_FILE, _OWN = 1 << 63, 1 << 61, 1 << 56


def view(start: int, end: int) -> memoryview:
    """Return the memory of this process between two addresses."""
    return memoryview((ctypes.c_ubyte * (end - start)).from_address(start)).cast("B")


class WrittenPages:
    """The pages between two addresses that a rehearsal writes.

    Args:
        rehearse: called in a fork of this process.
        start, end: addresses of the memory, multiples of the page size.
    """

    def __init__(self, rehearse: "Callable[[], None]", start: int, end: int) -> None:
        self._memory = view(start, end)
        self._places = tuple(PAGE * number for number in _written_pages(rehearse, start, end))

    def copy(self) -> None:
        """Make copies for this process: write a byte of each page back, which nothing changes between both halves of the statement."""
        memory = self._memory
        for place in self._places:
            memory[place] = memory[place]


def region(name: str, rights: str = "rw-p") -> "tuple[int, int]":
    """Return start and end of a named region of this process, such as ``[stack]``, with these rights; zeros if there is none."""
    with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123 - pathlib would make every fork slower
        for line in maps.read().split(b"\n"):
            if line.endswith(name.encode()) and rights.encode() in line:
                start, end = line.split(b" ")[0].split(b"-")
                return int(start, 16), int(end, 16)
    return 0, 0


def _written_pages(rehearse: "Callable[[], None]", start: int, end: int) -> "list[int]":
    """Return the numbers of the pages between two addresses that a rehearsal in a fork writes."""
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
    """Return the packed numbers of the pages between two addresses that only this process has."""
    count = (end - start) // PAGE
    map_of = os.open("/proc/self/pagemap", os.O_RDONLY)
    entries = struct.unpack(f"={count}Q", os.pread(map_of, 8 * count, start // PAGE * 8))
    private = [
        number for number, entry in enumerate(entries) if entry & _PRESENT and entry & _OWN and not entry & _OF_FILE
    ]
    return struct.pack(f"={len(private)}I", *private)
