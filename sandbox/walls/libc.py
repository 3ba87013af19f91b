"""The C library's raw door, resolved once: the first use of a ctypes function in a fork costs up to 200 µs of page faults.

What every worker does by itself is prepared in the zygote as a list of plain numbers (:func:`carry_out`): one function, one loop, whose
code the interpreter has long specialised when the worker is born. Each function of Python more would cost it two pages.
"""

import ctypes
import os

#: A system call: its number, then its arguments; addresses as ctypes has them.
Call = tuple[int | ctypes.c_void_p, ...]
_MAX_INT = 0x7FFFFFFF

_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * 6
_mount = _libc.mount
_umount2 = _libc.umount2
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_READ, _PRIVATE = 1, 2
_FAILED = ctypes.c_void_p(-1).value


def syscall(number: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
    """Make one system call by number; memory is given by its :func:`address`. Raises OSError."""
    answer: int = _syscall(number, a, b, c, d, e)
    if answer == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


_bare = ctypes.PyDLL(None)  # without a copy of errno for each thread
# Without argument types, whose converters would make two objects for each argument: what is a small int goes as it is (ctypes
# passes it as a C int, widened with its sign), and what is larger is a pointer already.
_raw_syscall = _bare.syscall
_raw_syscall.restype = ctypes.c_long
#: fork(2) of the C library, without what Python does around it: that resets threads, locks and hooks of which the zygote has none, and each
#: worker would pay 20 page faults for it.
fork = _bare.fork
_where = _bare.__errno_location
_where.restype = ctypes.c_void_p


def prepared(number: int, *arguments: int) -> Call:
    """Give a system call for :func:`carry_out`: its number and every argument that the kernel looks at, zeros too."""
    return number, *(word if 0 <= word <= _MAX_INT else ctypes.c_void_p(word) for word in arguments)


def carry_out(calls: "tuple[Call, ...]") -> None:
    """Make prepared system calls one after the other. Raises OSError at the first that fails."""
    for call in calls:
        if _raw_syscall(*call) < 0:
            code = ctypes.c_int.from_address(_where()).value
            raise OSError(code, os.strerror(code))


def mount(source: bytes, target: bytes, kind: "bytes | None", flags: int, data: "bytes | None") -> None:
    """mount(2). Raises OSError."""
    if _mount(source, target, kind, ctypes.c_ulong(flags), data):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def unmount_lazily(target: bytes) -> None:
    """Detach a mount now, let go of it when nothing uses it. Raises OSError."""
    if _umount2(target, 2):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def map_readable(descriptor: int, size: int) -> int:
    """Map a file's bytes, to be read only, and say where. Raises OSError."""
    at: int = _mmap(None, size, _READ, _PRIVATE, descriptor, 0)
    if at == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return at


def buffer(content: bytes) -> "ctypes.Array[ctypes.c_char]":
    """Memory at a fixed address, made in the zygote so that a worker only points at it."""
    return ctypes.create_string_buffer(content, len(content))


def address(memory: "ctypes.Array[ctypes.c_char]") -> int:
    """Where that memory lies."""
    return ctypes.addressof(memory)
