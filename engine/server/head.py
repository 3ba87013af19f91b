"""What stands before a request's body, while it comes: when it is whole, and what it shows of who asks. Nothing here judges it;
what is no HTTP is called whole at once, so that who does judge it says so.
"""

import re

from lodger.engine.server.known import digest

#: Longest line and headers of a request, bytes, and most lines of them.
HEADER_BYTES = 32 * 1024
HEADER_LINES = 128
_END = re.compile(rb"\n\r?\n")
_SHOWN = re.compile(rb"\n(authorization|cookie):([^\n]*)", re.IGNORECASE)


class Head:
    """One request's beginning; ``said`` is all that came, what stands behind the headers too."""

    __slots__ = ("_lines", "_looked", "said")

    def __init__(self) -> None:
        self.said = bytearray()
        self._looked = 0
        self._lines = 0

    def add(self, data: bytes) -> bool:
        """Take what came; tell whether there is nothing more to wait for."""
        begin = max(0, self._looked - 2)
        self.said += data
        self._lines += data.count(b"\n")
        self._looked = len(self.said)
        return (
            self.said[:1] <= b" "  # no request begins so: it is refused without waiting for the rest
            or self._lines > HEADER_LINES
            or self._looked > HEADER_BYTES
            or _END.search(self.said, begin) is not None
        )


def _length(said: bytes | bytearray) -> int:
    """Give how long the headers are with which this begins; all of it while their end has not come."""
    end = _END.search(said)
    return end.end() if end else len(said)


def too_long(said: bytes) -> bool:
    """Tell whether the headers with which this begins are more than is taken."""
    length = _length(said)
    return length > HEADER_BYTES or said.count(b"\n", 0, length) > HEADER_LINES


def shown(said: bytes | bytearray) -> bytes:
    """Give the digest of what the headers with which this begins show of who asks."""
    found = _SHOWN.findall(said, 0, _length(said))
    return digest((name.lower(), value.strip(b" \t\r")) for name, value in found)
