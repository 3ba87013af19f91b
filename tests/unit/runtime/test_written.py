"""Copies of the pages that a rehearsal writes."""

import subprocess
import sys

SHRUNK = """
import ctypes
from lodger.sandbox.runtimes.written import WrittenPages, heap_end, region

libc = ctypes.PyDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
size = 64 << 10
blocks = [libc.malloc(size)]
while heap_end() - max(blocks) > 4 * size:
    blocks.append(libc.malloc(size))
room, last = [libc.malloc(size) for _ in range(8)], libc.malloc(size)
for block in room:
    libc.free(block)  # for what Python allocates from now on
pages = WrittenPages(lambda: ctypes.memset(last, 1, size), region("[heap]")[0], heap_end)
libc.free(last)
libc.malloc_trim(0)
assert heap_end() <= last, "the heap has not shrunk"
pages.copy()
print("copied")
"""


def test_a_page_that_the_heap_has_given_back_is_not_copied() -> None:
    """A process that wrote to it would die of SIGSEGV."""
    ran = subprocess.run([sys.executable, "-c", SHRUNK], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.returncode) == ("copied\n", 0), ran.stderr
