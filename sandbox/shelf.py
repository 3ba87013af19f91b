"""Keeps compiled modules: one tenant's never serves another, and what somebody changed on disk is never loaded.

Machine code is loaded without a second look, so whoever writes it owns the worker. In memory it lies in sealed files; on disk, where that
is wished, each carries an HMAC over tenant, source, engine and settings with a key that only the engine has.
"""

import contextlib
import functools
import hashlib
import hmac
import logging
import os
import platform
import tempfile
from collections import OrderedDict
from importlib.metadata import version
from pathlib import Path

from lodger.sandbox.runtimes import artefact
from lodger.sandbox.runtimes.module_engine import COMMANDS
from lodger.sandbox.sealed import SEAL_BYTES, Sealed, Sealing

_FORMAT = b"lodger module 1"
_FILES_OF_A_TENANT = 32
_CHUNK = 1 << 20
_journal = logging.getLogger("lodger.sandbox")


@functools.cache
def _compiler(*, fuel: bool) -> tuple[bytes, ...]:
    """Name what compiles here: library, settings, processor."""
    return (
        version("wasmtime").encode(),
        COMMANDS.text(fuel=fuel).encode(),
        platform.machine().encode(),
        artefact.processor().encode(),
    )


class Shelf:
    """Compiled modules by what they are bound to.

    Args:
        key: of the engine; 32 random bytes that live as long as this shelf when nothing is given.
        folder: also keeps them on disk there; needs a key that lasts.
        most_bytes: of code in memory.
        most: modules in memory; each holds one descriptor.
    """

    def __init__(
        self, key: bytes | None = None, *, folder: Path | None = None, most_bytes: int = 128 << 20, most: int = 128
    ) -> None:
        self._key = key or os.urandom(SEAL_BYTES)
        self._folder = folder
        self._most_bytes = most_bytes
        self._most = most
        self._bytes = 0
        self._kept: OrderedDict[bytes, Sealed] = OrderedDict()

    @staticmethod
    def binding(tenant: str, wasm: bytes, *, fuel: bool) -> bytes:
        """Say whose code it is and all that it depends on: source, compiler, settings, processor."""
        parts = (_FORMAT, tenant.encode(), hashlib.sha256(wasm).digest(), *_compiler(fuel=fuel))
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)

    def find(self, binding: bytes) -> Sealed | None:
        """Give what is kept in memory, with a descriptor for the caller to close."""
        found = self._kept.get(binding)
        if found is None:
            return None
        self._kept.move_to_end(binding)
        return found.another()

    def begin(self, binding: bytes) -> Sealing:
        """Begin to take code in."""
        return Sealing(self._key, binding)

    def keep(self, binding: bytes, code: Sealed) -> Sealed:
        """Keep it in memory; gives it with a descriptor for the caller to close."""
        self._forget(self._kept.pop(binding, None))
        self._kept[binding] = code
        self._bytes += code.size
        given = code.another()
        while len(self._kept) > 1 and (self._bytes > self._most_bytes or len(self._kept) > self._most):
            self._forget(self._kept.popitem(last=False)[1])
        return given

    def drop(self, tenant: str, binding: bytes) -> None:
        """Throw code away, in memory and on disk: it could not be loaded."""
        self._forget(self._kept.pop(binding, None))
        place = self.place(tenant, binding)
        if place is not None:
            with contextlib.suppress(OSError):
                place.unlink()

    def close(self) -> None:
        """Let go of all memory; safe twice."""
        while self._kept:
            self._kept.popitem()[1].close()
        self._bytes = 0

    def _forget(self, code: Sealed | None) -> None:
        if code is not None:
            self._bytes -= code.size
            code.close()

    # -- disk --

    def _named(self, what: bytes) -> str:
        return hmac.new(self._key, b"name" + what, "sha256").hexdigest()[:40]

    def place(self, tenant: str, binding: bytes) -> Path | None:
        """Name the file of a module, None when nothing is kept on disk."""
        if self._folder is None:
            return None
        return self._folder / self._named(tenant.encode()) / self._named(binding)

    def fetch(self, tenant: str, binding: bytes) -> Sealed | None:
        """Give what is kept on disk if it is ours, for the caller to keep or close; blocks, touches no memory of the shelf."""
        place = self.place(tenant, binding)
        if place is None or not all(artefact.is_ours(path) for path in (place.parent, place)):
            return None
        sealing = self.begin(binding)
        try:
            with place.open("rb") as file:
                noted = file.read(SEAL_BYTES)
                while chunk := file.read(_CHUNK):
                    sealing.write(chunk)
            code = sealing.finish()
        except OSError as problem:
            _journal.warning("compiled code could not be read: %s", problem.strerror)
            return None
        finally:
            sealing.drop()
        if not hmac.compare_digest(code.seal, noted):
            code.close()
            _journal.warning("compiled code on disk is not what was written there: refused and made anew")
            with contextlib.suppress(OSError):
                place.unlink()
            return None
        return code

    def store(self, tenant: str, binding: bytes, code: Sealed) -> None:
        """Keep it on disk too where that is wished; blocks, touches no memory of the shelf."""
        place = self.place(tenant, binding)
        if place is None:
            return
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=place.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(code.seal)
                file.write(code.content())
            Path(name).replace(place)
            self._prune(place.parent)
        except OSError as problem:
            _journal.warning("compiled code could not be written: %s", problem.strerror)

    @staticmethod
    def _prune(folder: Path) -> None:
        files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in files[_FILES_OF_A_TENANT:]:
            path.unlink(missing_ok=True)
