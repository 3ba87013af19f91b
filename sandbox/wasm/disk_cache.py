"""Compiled modules on disk, for engines that start again: each file under a seal with a key that only the engine has, bounded together.

Nothing here says whose a file is: names are keyed hashes. What is not ours, or not what was written, is never given out.
"""

import contextlib
import fcntl
import hmac
import logging
import os
import tempfile
from pathlib import Path

from lodger.sandbox.runtimes.js import artefact
from lodger.sandbox.wasm.sealed_code import SEAL_BYTES, SealedCode, SealedCodeWriter

MAX_BYTES = 1 << 30
_FILES_OF_A_TENANT = 32
#: One tenant may hold this part of all bytes: its modules never drive out everybody else's.
_SHARE_OF_A_TENANT = 8
_CHUNK = 1 << 20
_KEY = "key"
_journal = logging.getLogger("lodger.sandbox")


class DiskCache:
    """Files by tenant and binding.

    Args:
        key: of the engine, 32 bytes; what another key sealed is not seen.
        folder: made at the first write.
        most_bytes: of all files; the longest unused go first.
    """

    def __init__(self, key: bytes, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._key = key
        self._folder = folder
        self._max_bytes = max_bytes

    def _named(self, what: bytes) -> str:
        return hmac.new(self._key, b"name" + what, "sha256").hexdigest()[:40]

    def place(self, tenant: str, binding: bytes) -> Path:
        """Name the file of a module."""
        return self._folder / self._named(tenant.encode()) / self._named(binding)

    def fetch(self, tenant: str, binding: bytes) -> SealedCode | None:
        """Give what is kept if it is ours, for the caller to close."""
        place = self.place(tenant, binding)
        if not all(artefact.is_ours(path) for path in (self._folder, place.parent, place)):
            return None
        sealing = SealedCodeWriter(self._key, binding)
        try:
            with place.open("rb") as file:
                noted = file.read(SEAL_BYTES)
                while chunk := file.read(_CHUNK):
                    sealing.write(chunk)
                os.utime(file.fileno())  # what was used last is thrown away last
            code = sealing.finish()
        except OSError as problem:
            _journal.warning("compiled code could not be read: %s", problem.strerror)
            return None
        finally:
            sealing.drop()
        if not hmac.compare_digest(code.seal, noted):
            code.close()
            _journal.warning("compiled code on disk is not what was written there: refused and made anew")
            self.drop(tenant, binding)
            return None
        return code

    def store(self, tenant: str, binding: bytes, code: SealedCode) -> None:
        """Keep code; what cannot be written is compiled again one day, and the journal says so."""
        place = self.place(tenant, binding)
        if code.size > self._max_bytes // _SHARE_OF_A_TENANT:
            return
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=place.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(code.seal)
                    file.write(code.content())
                Path(name).replace(place)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._prune(place.parent)
        except OSError as problem:
            _journal.warning("compiled code could not be written: %s", problem.strerror)

    def drop(self, tenant: str, binding: bytes) -> None:
        """Throw a file away."""
        with contextlib.suppress(OSError):
            self.place(tenant, binding).unlink()

    def _prune(self, mine: Path) -> None:
        _throw_away(_files(mine), self._max_bytes // _SHARE_OF_A_TENANT, _FILES_OF_A_TENANT)
        tenants = [path for path in self._folder.iterdir() if path.is_dir()]
        _throw_away([file for tenant in tenants for file in _files(tenant)], self._max_bytes)
        for tenant in tenants:
            with contextlib.suppress(OSError):
                tenant.rmdir()  # only when it is empty


def _files(folder: Path) -> list[tuple[int, int, Path]]:
    found = []
    with contextlib.suppress(OSError):  # another engine prunes too
        for path in folder.iterdir():
            about = path.lstat()
            found.append((about.st_mtime_ns, about.st_size, path))
    return found


def _throw_away(files: list[tuple[int, int, Path]], max_bytes: int, maximum: int | None = None) -> None:
    held = 0
    for number, (_, size, path) in enumerate(sorted(files, reverse=True), 1):
        held += size
        if held > max_bytes or (maximum is not None and number > maximum):
            with contextlib.suppress(OSError):
                path.unlink()


def lasting_key(folder: Path) -> bytes:
    """Give the key kept in a folder, making it when there is none that is ours alone. Raises OSError.

    Engines that start at the same moment get the same one.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / _KEY
    # One at a time, threads too: else what one just made could be taken for torn by another who looked before.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if artefact.is_ours(place) and not place.stat().st_mode & 0o077:
            key = place.read_bytes()
            if len(key) == SEAL_BYTES:
                return key
        return _new_key(place)  # torn, or somebody else could know it: nothing sealed with it is believed
    finally:
        os.close(descriptor)


def _new_key(place: Path) -> bytes:
    key = os.urandom(SEAL_BYTES)
    descriptor, name = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return key
