"""Decoding of response bodies in chunks, stopped at the first byte beyond the limit, whatever Content-Length promised."""

import zlib

from lodger.engine.egress.request_errors import Cut, TooLarge

#: What we say we take; an answer in another encoding, or in several, is no answer.
ACCEPTED = "gzip, deflate"
#: Decoded bytes per encoded byte, once there is enough to tell.
MAX_RATIO = 100
_ENOUGH = 64 * 1024
_STEP = 64 * 1024


class Body:
    """Decodes a body chunk by chunk, up to a maximum size.

    Args:
        encoding: value of Content-Encoding, empty without one.
        maximum: of decoded bytes.

    Raises:
        Cut: an encoding that the request did not accept.
    """

    def __init__(self, encoding: str, maximum: int) -> None:
        self._maximum = maximum
        self._taken = 0
        self._parts = bytearray()
        self._inflate = _decoder(encoding.strip().lower())
        self._raw = encoding.strip().lower() == "deflate"
        self._head = b""

    def take(self, data: bytes) -> None:
        """Decode a chunk.

        Raises:
            TooLarge, Cut.
        """
        self._taken += len(data)
        if (
            self._taken > self._maximum + self._maximum // 64 + 1024
        ):  # bytes after the end of a compressed body are dropped
            raise TooLarge(f"more than {self._maximum} bytes")
        if self._inflate is None:
            self._keep(data)
            return
        if self._raw:
            data = self._sniffed(data)
        try:
            while data:
                self._keep(self._inflate.decompress(data, _STEP))
                data = self._inflate.unconsumed_tail
        except zlib.error:
            raise Cut("the body does not match its Content-Encoding") from None

    def _sniffed(self, data: bytes) -> bytes:
        # deflate is zlib's format by the standard and bare deflate in some servers: the first two bytes tell.
        self._head += data
        if len(self._head) < 2:
            return b""
        if self._head[0] & 0x0F != 8 or int.from_bytes(self._head[:2], "big") % 31:
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._raw = False
        return self._head

    def _keep(self, data: bytes) -> None:
        self._parts += data
        if len(self._parts) > self._maximum:
            raise TooLarge(f"more than {self._maximum} bytes")
        if self._inflate is not None and len(self._parts) > max(_ENOUGH, MAX_RATIO * self._taken):
            raise TooLarge(f"the body is compressed by more than a factor of {MAX_RATIO}")

    @property
    def taken(self) -> int:
        """Encoded bytes so far."""
        return self._taken

    def whole(self) -> bytes:
        """Return the body after its last chunk."""
        if self._inflate is not None and self._taken:
            if not self._inflate.eof:
                raise Cut("the compressed body is incomplete")
            if self._inflate.unused_data:
                raise Cut("data follows the compressed body")
        return bytes(self._parts)


def _decoder(encoding: str) -> "zlib._Decompress | None":
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if encoding == "deflate":
        return zlib.decompressobj()
    raise Cut(f"unexpected Content-Encoding: {encoding[:40]!r}")
