"""Keeps compiled modules: one tenant's never serves another, and what somebody changed on disk is never loaded.

Machine code is loaded without a second look, so whoever writes it owns the worker. In memory it lies in sealed files; on disk, where that
is wished, each carries an HMAC over tenant, source, engine and settings with a key that only the engine has.
"""

import functools
import hashlib
import logging
import os
import platform
from collections import OrderedDict
from importlib.metadata import version
from pathlib import Path
from typing import Self

from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.wasm.disk_cache import MAX_BYTES, DiskCache, lasting_key
from lodger.sandbox.wasm.sealed_code import SEAL_BYTES, SealedCode, SealedCodeWriter

_FORMAT = b"lodger module 1"
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


class CodeCache:
    """Compiled modules by what they are bound to.

    Args:
        key: of the engine; 32 random bytes that live as long as this cache when nothing is given.
        folder: also keeps them on disk there; needs a key that lasts.
        most_bytes: of code in memory.
        most: modules in memory; each holds one descriptor.
        most_disk_bytes: of code on disk.
    """

    def __init__(
        self,
        key: bytes | None = None,
        *,
        folder: Path | None = None,
        max_bytes: int = 128 << 20,
        maximum: int = 128,
        max_disk_bytes: int = MAX_BYTES,
    ) -> None:
        self._key = key or os.urandom(SEAL_BYTES)
        self._disk = None if folder is None else DiskCache(self._key, folder, max_disk_bytes)
        self._max_bytes = max_bytes
        self._maximum = maximum
        self._bytes = 0
        self._kept: OrderedDict[bytes, SealedCode] = OrderedDict()

    @classmethod
    def lasting(cls, cache: Path | None = None, *, max_disk_bytes: int = MAX_BYTES) -> Self:
        """Give one whose code outlives this process: in the cache, under a key that is kept there.

        Where no folder can be had it keeps code in memory only, and the journal says so.

        Args:
            cache: folder; None for lodger in the user's cache folder.
            most_disk_bytes: of code on disk.
        """
        tried = []
        for folder in artefact.candidates(cache):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not artefact.is_ours(folder):
                    raise PermissionError(None, "others may write there")
                modules = folder / "modules"
                modules.mkdir(mode=0o700, exist_ok=True)
                if not artefact.is_ours(modules):
                    raise PermissionError(None, "others may write into its modules")
                return cls(lasting_key(modules), folder=modules, max_disk_bytes=max_disk_bytes)
            except OSError as problem:
                tried.append(f"{folder}: {problem.strerror or problem}")
        _journal.warning("compiled modules are kept in memory only: %s", "; ".join(tried))
        return cls()

    @staticmethod
    def binding(tenant: str, wasm: bytes, *, fuel: bool) -> bytes:
        """Say whose code it is and all that it depends on: source, compiler, settings, processor."""
        parts = (_FORMAT, tenant.encode(), hashlib.sha256(wasm).digest(), *_compiler(fuel=fuel))
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)

    def find(self, binding: bytes) -> SealedCode | None:
        """Give what is kept in memory, with a descriptor for the caller to close."""
        found = self._kept.get(binding)
        if found is None:
            return None
        self._kept.move_to_end(binding)
        return found.another()

    def begin(self, binding: bytes) -> SealedCodeWriter:
        """Begin to take code in."""
        return SealedCodeWriter(self._key, binding)

    def keep(self, binding: bytes, code: SealedCode) -> SealedCode:
        """Keep it in memory; gives it with a descriptor for the caller to close."""
        self._forget(self._kept.pop(binding, None))
        self._kept[binding] = code
        self._bytes += code.size
        given = code.another()
        while len(self._kept) > 1 and (self._bytes > self._max_bytes or len(self._kept) > self._maximum):
            self._forget(self._kept.popitem(last=False)[1])
        return given

    def drop(self, tenant: str, binding: bytes) -> None:
        """Throw code away, in memory and on disk: it could not be loaded."""
        self._forget(self._kept.pop(binding, None))
        if self._disk is not None:
            self._disk.drop(tenant, binding)

    def close(self) -> None:
        """Let go of all memory; safe twice."""
        while self._kept:
            self._kept.popitem()[1].close()
        self._bytes = 0

    def _forget(self, code: SealedCode | None) -> None:
        if code is not None:
            self._bytes -= code.size
            code.close()

    # -- disk --

    def place(self, tenant: str, binding: bytes) -> Path | None:
        """Name the file of a module, None when nothing is kept on disk."""
        return None if self._disk is None else self._disk.place(tenant, binding)

    def fetch(self, tenant: str, binding: bytes) -> SealedCode | None:
        """Give what is kept on disk if it is ours, for the caller to keep or close; blocks, touches no memory of the code cache."""
        return None if self._disk is None else self._disk.fetch(tenant, binding)

    def store(self, tenant: str, binding: bytes, code: SealedCode) -> None:
        """Keep it on disk too where that is wished; blocks, touches no memory of the code cache."""
        if self._disk is not None:
            self._disk.store(tenant, binding, code)
