"""Cache of compiled modules per tenant, in memory and on disk; a file that was modified is never loaded.

Machine code is loaded without validation, so its author controls the worker. In memory it is kept in sealed files; on disk each file
carries an HMAC over tenant, source, engine and settings, with a key of the engine.
"""

import asyncio
import functools
import hashlib
import logging
import os
import platform
from collections import Counter, OrderedDict
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Self

from lodger.sandbox.runtimes.command.wasm_engine import COMMANDS
from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.wasm.disk_cache import DiskCache, lasting_key
from lodger.sandbox.wasm.sealed_code import SEAL_BYTES, SealedCode, SealedCodeWriter

_FORMAT = b"lodger module 1"
#: Maximum size of the code in memory, and number of modules, each of which holds a descriptor.
KEPT_BYTES, KEPT = 128 << 20, 128
_journal = logging.getLogger("lodger.sandbox")


@functools.cache
def _compiler() -> tuple[bytes, ...]:
    """Return the parts that identify the compiler: its library, settings and processor."""
    return (
        version("wasmtime").encode(),
        COMMANDS.text().encode(),
        platform.machine().encode(),
        artefact.processor().encode(),
    )


def _close_result(reading: "asyncio.Future[SealedCode | None]") -> None:
    """Close the code that an abandoned read from the disk has found."""
    if not reading.cancelled() and reading.exception() is None:
        fetched = reading.result()
        if fetched is not None:
            fetched.close()


def packed(parts: Iterable[bytes]) -> bytes:
    """Return a binding of these parts, each with its length."""
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


class CodeCache:
    """Compiled modules by their binding: tenant, source and compiler.

    Args:
        key: 32 bytes of the engine; random by default.
        folder: also keep modules on disk there; needs a lasting key.

    Attributes:
        disk: the files; None if code is kept in memory only.
    """

    def __init__(
        self,
        key: bytes | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        self._key = key or os.urandom(SEAL_BYTES)
        self.disk = None if folder is None else DiskCache(self._key, folder)
        self._bytes = 0
        self._kept: OrderedDict[bytes, tuple[str, SealedCode]] = OrderedDict()

    @classmethod
    def lasting(cls, cache: Path | None = None) -> Self:
        """Return a cache that keeps code on disk for later processes, under a key that is stored with it.

        Without a usable folder, code is kept in memory only and a warning is logged.

        Args:
            cache: folder; None for ``lodger`` in the user's cache folder.
        """
        try:
            modules = artefact.writable_folder(cache) / "modules"
            modules.mkdir(mode=0o700, exist_ok=True)
            if artefact.is_ours(modules):
                return cls(lasting_key(modules), folder=modules)
            why = f"{modules}: other users can write to it"
        except OSError as problem:
            why = str(problem)
        except artefact.RealmUnavailable as problem:
            why = problem.why
        _journal.warning("compiled modules are kept in memory only: %s", why)
        return cls()

    @staticmethod
    def binding(tenant: str, wasm: bytes) -> bytes:
        """Return the cache key of a module: its tenant, source, compiler, settings and processor."""
        return packed((_FORMAT, tenant.encode(), hashlib.sha256(wasm).digest(), *_compiler()))

    def find(self, binding: bytes) -> SealedCode | None:
        """Return the code in memory, or None; the caller closes its descriptor."""
        if binding not in self._kept:
            return None
        self._kept.move_to_end(binding)
        return self._kept[binding][1].duplicate()

    def begin(self, binding: bytes) -> SealedCodeWriter:
        """Return a writer for the code of a module that is compiled now."""
        return SealedCodeWriter(self._key, binding)

    def keep(self, tenant: str, binding: bytes, code: SealedCode) -> SealedCode:
        """Keep code in memory and return it with another descriptor, which the caller closes."""
        self._forget(binding)
        self._kept[binding] = tenant, code
        self._bytes += code.size
        given = code.duplicate()
        while len(self._kept) > 1 and (self._bytes > KEPT_BYTES or len(self._kept) > KEPT):
            self._forget(self._displaced())
        return given

    def _displaced(self) -> bytes:
        """Return the binding of the code that leaves memory: the least recently used of the tenant with the largest share.

        The newest code stays. So a tenant with many versions displaces its own code, not that of all others.
        """
        shares = Counter[str]()
        *others, _newest = self._kept.items()
        for _, (tenant, code) in others:
            shares[tenant] += code.size * KEPT + KEPT_BYTES  # its parts of both limits
        largest = shares.most_common(1)[0][0]
        return next(binding for binding, (tenant, _) in others if tenant == largest)

    def drop(self, tenant: str, binding: bytes) -> None:
        """Delete code that could not be loaded, in memory and on disk."""
        self._forget(binding)
        if self.disk is not None:
            self.disk.drop(tenant, binding)

    def close(self) -> None:
        """Release the memory of all kept code; safe to call twice."""
        for binding in [*self._kept]:
            self._forget(binding)

    def _forget(self, binding: bytes) -> None:
        """Remove code from memory, if it is there."""
        _, code = self._kept.pop(binding, ("", None))
        if code is not None:
            self._bytes -= code.size
            code.close()

    async def recall(self, tenant: str, binding: bytes) -> SealedCode | None:
        """Return the code on disk, kept in memory from now on, or None; the caller closes it."""
        if self.disk is None:
            return None
        reading = asyncio.ensure_future(asyncio.to_thread(self.disk.fetch, tenant, binding))
        try:
            fetched = await asyncio.shield(reading)
        except asyncio.CancelledError:
            reading.add_done_callback(_close_result)  # the thread cannot be stopped: close what it opens
            raise
        return fetched and self.keep(tenant, binding, fetched)
