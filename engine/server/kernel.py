"""Accepts and reads without letting go of the interpreter: neither waits here, and each would come back only after another thread.

Python lets other threads run around every call of the kernel. Beside three threads that ask the database, accepting one connection and
reading what it said took ten times as long as alone, most of it waiting to go on, and a neighbour stands behind a thousand of them.
"""

import ctypes
import errno
import os
import socket
import sys

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.recv.restype = ctypes.c_ssize_t
#: Bytes that are read at once; sockaddr_storage of sys/socket.h.
_SAID, _STORAGE = 32 * 1024, 128


class Kernel:
    """Where the kernel puts what it is asked for. Belongs to one thread: what one reads stands here until the next is read."""

    def __init__(self) -> None:
        self._said = ctypes.create_string_buffer(_SAID)
        self._address = ctypes.create_string_buffer(_STORAGE)
        self._length = ctypes.c_uint32()

    def accept(self, listening: socket.socket) -> tuple[socket.socket, str]:
        """Take the next connection that waits, and give the address from which it comes.

        Args:
            listening: never waits (``setblocking(False)``).

        Raises:
            OSError: as :meth:`socket.socket.accept`; BlockingIOError when nobody waits.
        """
        self._length.value = _STORAGE
        flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        descriptor = _libc.accept4(listening.fileno(), self._address, ctypes.byref(self._length), flags)
        if descriptor < 0:
            raise _error()
        own = socket.socket(listening.family, listening.type, listening.proto, fileno=descriptor)
        return own, _host(self._address.raw[: self._length.value])

    def read(self, own: socket.socket, *, peek: bool = False) -> bytes | None:
        """Give what a connection said, None when it says nothing now; ``peek``: its first byte, which stays there. Empty: it said all.

        Raises:
            OSError: as :meth:`socket.socket.recv`.
        """
        most, flags = (1, socket.MSG_PEEK) if peek else (_SAID, 0)
        count = _libc.recv(own.fileno(), self._said, ctypes.c_size_t(most), flags | socket.MSG_DONTWAIT)
        if count < 0:
            if ctypes.get_errno() in {errno.EAGAIN, errno.EINTR}:
                return None
            raise _error()
        return ctypes.string_at(self._said, count)


def _host(address: bytes) -> str:
    """Give the host of a sockaddr_in or sockaddr_in6 (netinet/in.h); a socket of this host's has none."""
    family = int.from_bytes(address[:2], sys.byteorder)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[4:8])
    if family == socket.AF_INET6:
        return socket.inet_ntop(socket.AF_INET6, address[8:24])
    return ""


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
