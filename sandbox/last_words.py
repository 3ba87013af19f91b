"""What a worker that is gone has left in its socket, behind a call that has to wait."""

import socket
from collections.abc import Mapping

from lodger.sandbox import frames

_CHUNK = 1 << 16


def behind(end: socket.socket, incoming: bytearray, longest: Mapping[int, int]) -> list[tuple[int, bytes]] | None:
    """Add what is still in the socket to ``incoming``; give its lines and its failure, in order, None when a result is among them.

    A result is worth the calls before it, so these have their turn. Nothing else makes up for the worker: no call that it still asks for.
    """
    try:
        while chunk := end.recv(_CHUNK):
            incoming += chunk
    except OSError:
        pass  # all that there was, or a socket that broke
    found, at, head = [], 0, frames.HEAD
    while len(incoming) - at >= head.size:
        length, kind = head.unpack_from(incoming, at)
        begin, at = at + head.size, at + head.size + length
        if length > longest.get(kind, 0) or len(incoming) < at:
            break
        if kind == frames.DONE:
            return None
        if kind in (frames.LOG, frames.FAIL):
            found.append((kind, bytes(memoryview(incoming)[begin:at])))
        if kind == frames.FAIL:
            break
    return found
