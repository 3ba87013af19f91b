"""Compiled modules on disk, for engines that restart: each file is sealed with a key of the engine, and their total size is bounded.

File names are keyed hashes and reveal no tenant. A file with a wrong owner or a wrong seal is never returned.
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
#: A tenant may use this fraction (1/n) of all bytes, so that its modules do not displace all others.
_SHARE_OF_A_TENANT = 8
_CHUNK = 1 << 20
_KEY = "key"
_journal = logging.getLogger("lodger.sandbox")


class DiskCache:
    """Files of compiled code by tenant and binding.

    Args:
        key: of the engine, 32 bytes; files sealed with another key are ignored.
        folder: created at the first write.
    """

    def __init__(self, key: bytes, folder: Path) -> None:
        self._key = key
        self._folder = folder

    def _keyed_name(self, what: bytes) -> str:
        """Return a keyed hash as a file name, which reveals nothing of a tenant."""
        return hmac.new(self._key, b"name" + what, "sha256").hexdigest()[:40]

    def place(self, tenant: str, binding: bytes) -> Path:
        """Return the path of a module's file."""
        return self._folder / self._keyed_name(tenant.encode()) / self._keyed_name(binding)

    def fetch(self, tenant: str, binding: bytes) -> SealedCode | None:
        """Return the verified code of a module, which the caller closes, or None."""
        place = self.place(tenant, binding)
        if not all(artefact.is_ours(path) for path in (self._folder, place.parent, place)):
            return None
        writer = SealedCodeWriter(self._key, binding)
        try:
            with place.open("rb") as file:
                stored_seal = file.read(SEAL_BYTES)
                while writer.size <= MAX_BYTES // _SHARE_OF_A_TENANT and (
                    chunk := file.read(_CHUNK)
                ):  # a longer one is not ours
                    writer.write(chunk)
                os.utime(file.fileno())  # for the order of deletion
            code = writer.finish()
        except OSError as problem:
            _journal.warning("compiled code could not be read: %s", problem.strerror)
            return None
        finally:
            writer.drop()
        if not hmac.compare_digest(code.seal, stored_seal):
            code.close()
            _journal.warning("compiled code on disk has a wrong seal: deleted, the module is compiled again")
            self.drop(tenant, binding)
            return None
        return code

    def store(self, tenant: str, binding: bytes, code: SealedCode) -> None:
        """Write code unless it is too large for its tenant's share, then delete the oldest files above the limits.

        A failure is logged, and the module is compiled again when needed.
        """
        place = self.place(tenant, binding)
        if code.size > MAX_BYTES // _SHARE_OF_A_TENANT:
            return
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(place, code.seal, code.content())
            self._prune(place.parent)
        except OSError as problem:
            _journal.warning("compiled code could not be written: %s", problem.strerror)

    def drop(self, tenant: str, binding: bytes) -> None:
        """Delete a module's file."""
        with contextlib.suppress(OSError):
            self.place(tenant, binding).unlink()

    def _prune(self, mine: Path) -> None:
        """Delete the oldest files beyond the limits of a tenant and of all."""
        _delete_oldest(_files(mine), MAX_BYTES // _SHARE_OF_A_TENANT, _FILES_OF_A_TENANT)
        tenants = [path for path in self._folder.iterdir() if path.is_dir()]
        _delete_oldest([file for tenant in tenants for file in _files(tenant)], MAX_BYTES)
        for tenant in tenants:
            with contextlib.suppress(OSError):
                tenant.rmdir()  # fails unless it is empty


def _files(folder: Path) -> list[tuple[int, int, Path]]:
    """Return (time of last use, size, path) of the files in a folder."""
    found = []
    with contextlib.suppress(OSError):  # another engine may delete files at the same time
        for path in folder.iterdir():
            about = path.lstat()
            found.append((about.st_mtime_ns, about.st_size, path))
    return found


def _delete_oldest(files: list[tuple[int, int, Path]], max_bytes: int, maximum: int | None = None) -> None:
    """Delete files (age, size, path) beyond a total of bytes and a number, the oldest first."""
    held = 0
    for number, (_, size, path) in enumerate(sorted(files, reverse=True), 1):
        held += size
        if held > max_bytes or (maximum is not None and number > maximum):
            with contextlib.suppress(OSError):
                path.unlink()


def lasting_key(folder: Path) -> bytes:
    """Return the key stored in a folder, creating it if there is none that only this user can read. Raises OSError.

    Engines that start at the same time get the same key.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = folder / _KEY
    # Locked, for threads too: otherwise a key just created could be mistaken for an incomplete one.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if artefact.is_ours(place) and not place.stat().st_mode & 0o077:
            key = place.read_bytes()
            if len(key) == SEAL_BYTES:
                return key
        key = os.urandom(SEAL_BYTES)  # incomplete, or readable by others: files sealed with it are no longer valid
        _write(place, key)
        return key
    finally:
        os.close(descriptor)


def _write(place: Path, *parts: bytes) -> None:
    """Write a file that only this user can read, whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
