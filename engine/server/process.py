"""Settings of a process that does nothing but answer HTTP. An application in which the API is only mounted keeps its own."""

import ctypes
import gc
import sys

#: Seconds that one thread computes before another one may: at Python's 5 ms an answer that needs three turns of the event loop waits
#: for fifteen times as many threads.
SWITCH_S = 0.0005
#: glibc's names (malloc.h), and values: heaps of threads together, and from how many bytes on a block goes back to the system when
#: it is freed. Left alone, both grow with what was ever asked, and large bodies stay in memory that nobody else can use.
_ARENA_MAX, _ARENAS = -8, 2
_MMAP_THRESHOLD, _LARGE = -3, 256 * 1024


def settle() -> None:
    """Make this process answer evenly: short turns for its threads, memory that goes back, and what lives for ever left out of each
    search for garbage.
    """
    sys.setswitchinterval(SWITCH_S)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # another C library has its own ways
    if mallopt is not None:
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_MMAP_THRESHOLD, _LARGE)
    gc.collect()
    gc.freeze()
