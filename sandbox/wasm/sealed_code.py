"""Compiled code in sealed memory files, each with an HMAC over its tenant, source and compiler."""

import errno
import fcntl
import hmac
import os
from dataclasses import dataclass

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
SEAL_BYTES = 32
_NOEXEC_SEAL = 8  # MFD_NOEXEC_SEAL: the file can never be executed by name


@dataclass(frozen=True, slots=True)
class SealedCode:
    """Compiled code; the holder closes the descriptor.

    Attributes:
        descriptor: of a memory file with every seal of memfd_create(2).
        size: in bytes.
        seal: HMAC-SHA-256 over the binding and the code.
    """

    descriptor: int
    size: int
    seal: bytes

    def duplicate(self) -> "SealedCode":
        """Return the same code with another descriptor."""
        return SealedCode(os.dup(self.descriptor), self.size, self.seal)

    def content(self) -> bytes:
        """Return the bytes of the code."""
        return os.pread(self.descriptor, self.size, 0)

    def close(self) -> None:
        """Close the descriptor; call once."""
        os.close(self.descriptor)


def _memory_file() -> int:
    """Return the descriptor of a new file in memory that can be sealed."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create("lodger-code", flags | _NOEXEC_SEAL)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # kernels before 6.3 do not know the flag
            raise
        return os.memfd_create("lodger-code", flags)


class SealedCodeWriter:
    """Writer of compiled code into a memory file.

    Args:
        key: of the engine.
        binding: tenant, source and compiler of the code.

    Attributes:
        descriptor: of the file; -1 once it was sealed or discarded.
        size: bytes written so far.
    """

    def __init__(self, key: bytes, binding: bytes) -> None:
        self.descriptor = _memory_file()
        self._mac = hmac.new(key, len(binding).to_bytes(8, "little") + binding, "sha256")
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError if there is no memory."""
        self._mac.update(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]
        self.size += len(data)

    def finish(self) -> SealedCode:
        """Seal the file and return the code."""
        descriptor, self.descriptor = self.descriptor, -1
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return SealedCode(descriptor, self.size, self._mac.digest())

    def drop(self) -> None:
        """Discard the file unless it was sealed; safe to call twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
