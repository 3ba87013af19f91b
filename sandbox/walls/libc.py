"""System calls through ctypes, resolved once: the first use of a ctypes function in a fork costs up to 200 µs of page faults.

A worker's system calls are prepared in the zygote as tuples of numbers and made by one loop (:func:`make_calls`), which the interpreter has
already specialised. Each further Python function would cost every worker two pages.
"""

import ctypes
import os

#: A prepared system call: its number and its arguments.
Call = tuple[int | ctypes.c_int | ctypes.c_void_p, ...]
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
_READ, _WRITE, _PRIVATE, _ANONYMOUS = 1, 2, 2, 0x20
_FAILED = ctypes.c_void_p(-1).value


def syscall(number: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
    """Make one system call by number and return its result; memory is passed by its :func:`address`. Raises OSError."""
    answer: int = _syscall(number, a, b, c, d, e)
    if answer == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


_bare = ctypes.PyDLL(None)  # without a copy of errno for each thread
# Without argument types: their converters would make two objects per argument. ctypes passes small integers as a sign-extended C int;
# larger ones are already c_void_p.
_raw_syscall = _bare.syscall
_raw_syscall.restype = ctypes.c_long
#: fork(2) of the C library, without Python's handling of threads, locks and hooks: the zygote has none, and it costs 20 page faults per
#: worker.
fork = _bare.fork
_where = _bare.__errno_location
_where.restype = ctypes.c_void_p


def prepare_call(number: int, *arguments: int) -> Call:
    """Return a system call for :func:`make_calls`; every argument that the kernel reads must be given, zeros too."""
    return number, *(word if 0 <= word <= _MAX_INT else ctypes.c_void_p(word) for word in arguments)


def make_calls(calls: "tuple[Call, ...]") -> None:
    """Make prepared system calls in order. Raises OSError for the first that fails."""
    for call in calls:
        if _raw_syscall(*call) < 0:
            code = ctypes.c_int.from_address(_where()).value
            raise OSError(code, os.strerror(code))


def mount(source: bytes, target: bytes, kind: "bytes | None", flags: int, data: "bytes | None") -> None:
    """Call mount(2). Raises OSError."""
    if _mount(source, target, kind, ctypes.c_ulong(flags), data):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def unmount_lazily(target: bytes) -> None:
    """Detach a mount now; it is freed when no longer used. Raises OSError."""
    if _umount2(target, 2):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def map_anonymous(size: int) -> int:
    """Map new memory and return its address. Raises OSError."""
    at: int = _mmap(None, size, _READ | _WRITE, _PRIVATE | _ANONYMOUS, -1, 0)
    if at == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return at


def map_readable(descriptor: int, size: int) -> int:
    """Map a file read-only and return the address. Raises OSError."""
    at: int = _mmap(None, size, _READ, _PRIVATE, descriptor, 0)
    if at == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return at


def buffer(content: bytes) -> "ctypes.Array[ctypes.c_char]":
    """Return memory with this content at a fixed address, for prepared system calls."""
    return ctypes.create_string_buffer(content, len(content))


def address(memory: "ctypes.Array[ctypes.c_char]") -> int:
    """Return the address of a buffer."""
    return ctypes.addressof(memory)
