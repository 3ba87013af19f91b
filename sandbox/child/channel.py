"""The worker's end of its socket: sends whole frames and reads exactly one frame at a time, on the bare descriptor."""

import os
import select
import struct

from lodger.sandbox.frames import HEAD
from lodger.sandbox.walls.libc import address, buffer, make_calls, prepare_call
from lodger.sandbox.walls.syscalls import NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_LEAVING = (prepare_call(NUMBER["exit_group"], 0),)
_HEAD_BYTES = HEAD.size
_NO_HEAD = bytes(_HEAD_BYTES)
_CONTROL = struct.Struct("@Niii4x")  # struct cmsghdr with one descriptor
_RIGHTS = (1, 1)  # SOL_SOCKET, SCM_RIGHTS
#: Memory of a worker's one recvmsg(2), made in the zygote: the head of a frame, the descriptor beside it, struct iovec, struct msghdr.
_head, _control = buffer(_NO_HEAD), buffer(bytes(_CONTROL.size))
_part = buffer(struct.pack("@PN", address(_head), _HEAD_BYTES))
_message = buffer(struct.pack("@PI4xPNPNi4x", 0, 0, address(_part), 1, address(_control), _CONTROL.size, 0))
_RECEIVE, _, *_INTO = prepare_call(NUMBER["recvmsg"], 0, address(_message), 0)


class Disconnected(Exception):
    """The parent closed the socket."""


class SocketChannel:
    """Frames over a stream socket; never reads a byte of the next frame."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, kind: int, payload: bytes) -> None:
        """Send one frame; blocks while the parent does not read."""
        view = memoryview(HEAD.pack(len(payload), kind) + payload)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def answer(self, kind: int, payload: bytes) -> "NoReturn":
        """Send the last frame and end this process."""
        self.send(kind, payload)
        make_calls(_LEAVING)
        raise AssertionError

    def receive(self) -> "tuple[int, bytes]":
        """Wait for one frame. Raises Disconnected."""
        length, kind = HEAD.unpack(self._exactly(_HEAD_BYTES))
        return kind, self._exactly(length)

    def receive_descriptor(self) -> "tuple[int, int, bytes]":
        """Wait for a frame whose first byte carries a descriptor; return descriptor, kind and payload. Raises Disconnected.

        One recvmsg(2), which only filter A allows: Python's own needs a socket object, and more calls to make one.
        """
        make_calls(((_RECEIVE, self._descriptor, *_INTO),))
        length, kind = HEAD.unpack(_head)
        _size, *rights, descriptor = _CONTROL.unpack(_control)
        if tuple(rights) != _RIGHTS:
            raise Disconnected
        return descriptor, kind, self._exactly(length)

    def rehearse(self) -> None:
        """Run the code of :meth:`receive` without reading a byte, so that its page faults happen before a job waits."""
        self._exactly(0)
        HEAD.unpack(_NO_HEAD)

    def wait(self, timeout_ms: int) -> bool:
        """Return whether a frame arrived within the timeout."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(timeout_ms))

    def _exactly(self, count: int) -> bytes:
        """Read exactly this many bytes; raises Disconnected."""
        chunk = os.read(self._descriptor, count)  # a count of 0 returns at once
        if len(chunk) == count:
            return chunk
        parts = [chunk]
        missing = count - len(chunk)
        while missing:
            if not chunk:
                raise Disconnected
            chunk = os.read(self._descriptor, min(missing, 1 << 20))
            parts.append(chunk)
            missing -= len(chunk)
        return b"".join(parts)
