"""The keyring: a file of encryption keys, lines of ``ID KEY``, the newest first, readable only by its owner."""

import base64
import binascii
import re
import secrets
from pathlib import Path

from lodger.engine.core.errors import InputError, Unavailable
from lodger.engine.core.files import replace_whole

KEY_BYTES = 32
_LINE = re.compile(r"([0-9a-z]{4,32})[ \t]+([A-Za-z0-9+/=]{44})", re.ASCII)
_HEAD = "# Keys of Lodger's secrets, the newest first. This file and the ledger together reveal every secret.\n"


class Keyring:
    """The keys of one file, read again when the file has changed.

    Args:
        path: None when the operator has set none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._keys: dict[str, bytes] = {}
        self._read: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        """The path of the key file.

        Raises:
            Unavailable: keys_unset.
        """
        if self._path is None:
            raise Unavailable("keys_unset")  # fmt: skip
        return self._path

    def keys(self) -> dict[str, bytes]:
        """Return every key by its id, the newest first.

        Raises:
            Unavailable: keys_unset, keys_missing, keys_readable, keys_invalid.
        """
        path = self.path
        try:
            about = path.stat()
        except OSError as error:
            raise Unavailable("keys_missing", reason=str(error.strerror)) from error
        if about.st_mode & 0o077:
            raise Unavailable("keys_readable", st_mode=about.st_mode & 511)  # fmt: skip
        stamp = (about.st_mtime_ns, about.st_ino)
        if stamp != self._read:
            self._keys = _parsed(path.read_text(encoding="ascii", errors="replace"))
            self._read = stamp
        return self._keys

    def newest(self) -> tuple[str, bytes]:
        """Return the key for new encryptions, and its id."""
        return next(iter(self.keys().items()))

    def add(self) -> str:
        """Add a new newest key and return its id; create the file if there is none.

        Raises:
            Unavailable: keys_unset, keys_unwritable, and the errors of :meth:`keys`.
        """
        before = self.keys() if self.path.exists() else {}
        made = secrets.token_hex(4)
        self._write({made: secrets.token_bytes(KEY_BYTES)} | before)
        return made

    def drop(self, unused: set[str]) -> None:
        """Remove these keys, by id, except the newest."""
        keys = self.keys()
        newest = next(iter(keys))
        self._write({name: key for name, key in keys.items() if name == newest or name not in unused})

    def _write(self, keys: dict[str, bytes]) -> None:
        """Replace the file of keys atomically."""
        text = _HEAD + "".join(f"{name} {base64.b64encode(key).decode()}\n" for name, key in keys.items())
        try:
            replace_whole(self.path, text.encode())
        except OSError as error:
            raise Unavailable("keys_unwritable", reason=str(error.strerror)) from error


def _parsed(text: str) -> dict[str, bytes]:
    """Return keys by name from the text of a file."""
    found: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        try:
            key = base64.b64decode(match[2], validate=True) if match else b""
        except binascii.Error:
            key = b""
        if match is None or len(key) != KEY_BYTES or match[1] in found:
            raise Unavailable("keys_invalid", number=number)  # fmt: skip
        found[match[1]] = key
    if not found:
        raise Unavailable("keys_invalid.empty")
    return found


def refuse_existing(path: Path) -> None:
    """Raise if a keyring file exists.

    Raises:
        InputError: keys_exist.
    """
    if path.exists():
        raise InputError("keys_exist", path=path)
