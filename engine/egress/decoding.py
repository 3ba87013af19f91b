"""Decoding of response bodies in chunks, stopped at the first byte beyond the limit, whatever Content-Length promised."""

import sys
import zlib
from collections.abc import Iterator
from typing import Any

import brotli

from lodger.engine.egress.request_errors import Cut, TooLarge

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Encodings that requests accept; an answer in another one, or in several, is refused.
ACCEPTED = "gzip, br, zstd"
#: Decoded bytes per encoded byte, once there is enough to tell.
MAX_RATIO = 100
#: Largest window of zstd that receivers must support (RFC 9659), as an exponent of two.
ZSTD_WINDOW_LOG = 23
_ENOUGH = 64 * 1024
_STEP = 64 * 1024
_ERRORS = (zlib.error, brotli.error, zstd.ZstdError, EOFError)


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
        self._decoder = _decoder(encoding.strip().lower())

    def take(self, data: bytes) -> None:
        """Decode a received chunk.

        Raises:
            TooLarge, Cut.
        """
        self._taken += len(data)
        if self._taken > self._maximum + self._maximum // 64 + 1024:
            raise TooLarge.than(self._maximum)
        if self._decoder is None:
            self._keep(data)
            return
        try:
            for part in self._decoder.chunks(data):
                self._keep(part)
        except _ERRORS:
            raise Cut(
                "the body does not match its Content-Encoding",
                "the body of the answer does not match its content-encoding",
            ) from None

    def _keep(self, data: bytes) -> None:
        """Append decoded bytes, up to the maximum and a maximum ratio of compression."""
        self._parts += data
        if len(self._parts) > self._maximum:
            raise TooLarge.than(self._maximum)
        if self._decoder is not None and len(self._parts) > max(_ENOUGH, MAX_RATIO * self._taken):
            said = f"the body of the answer is compressed by more than a factor of {MAX_RATIO}"
            raise TooLarge(said, said)

    def whole(self) -> bytes:
        """Return the decoded body after its last chunk; raises Cut if it is incomplete."""
        if self._decoder is not None and self._taken and not self._decoder.complete:
            raise Cut("the compressed body is incomplete", "the compressed body of the answer is incomplete")
        return bytes(self._parts)


class _Decoder:
    """Decodes members or frames of one encoding, one after the other.

    Args:
        make: makes the decompressor of a member; its ``decompress`` takes bytes and a maximum size.
    """

    def __init__(self, make: Any) -> None:
        self._make = make
        self._one = make()

    def chunks(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of the next encoded ones, in pieces of bounded size."""
        more = bool(data)
        while more:
            if self._one.eof:
                self._one = self._make()
            part = self._one.decompress(data, _STEP)
            yield part
            data = self._one.unused_data if self._one.eof else getattr(self._one, "unconsumed_tail", b"")
            more = bool(data or (part and not self._one.eof))

    @property
    def complete(self) -> bool:
        """Whether the body may end here."""
        return bool(self._one.eof)


class _Brotli:
    """A decompressor of Brotli with the names of zlib's."""

    unused_data = b""

    def __init__(self) -> None:
        self._one = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        """Whether the compressed data has ended."""
        return bool(self._one.is_finished())

    def decompress(self, data: bytes, maximum: int) -> bytes:
        """Return up to so many decoded bytes; further ones come with the next call."""
        return bytes(self._one.process(data, output_buffer_limit=maximum))


def _decoder(encoding: str) -> _Decoder | None:
    """Return the decoder of a content encoding; None if the body is not encoded."""
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return _Decoder(lambda: zlib.decompressobj(16 + zlib.MAX_WBITS))
    if encoding == "br":
        stream = _Brotli()  # the only one of a body: it refuses bytes after its end
        return _Decoder(lambda: stream)
    if encoding == "zstd":
        options = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
        return _Decoder(lambda: zstd.ZstdDecompressor(options=options))
    known = f"the answer has the content-encoding {encoding[:40]!r}; {ACCEPTED} are decoded"
    raise Cut(known, known)
