"""Encryption with AES-256-GCM, bound to the place where the ciphertext is stored.

A ciphertext moved to another tenant, name or set of hosts (a row edited in the database without the key) does not decrypt
there.
"""

import base64
import os
from typing import Any, NamedTuple

from lodger.engine.core.errors import Unavailable
from lodger.engine.vault.keyring import Keyring

_NONCE = 12


class Sealed(NamedTuple):
    """An encrypted value: the key's id, and the ciphertext as text."""

    key_id: str
    text: str


class Vault:
    """Encrypts values with the newest key of a keyring, and decrypts values of any of its keys."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring

    def seal(self, value: str, *place: str) -> Sealed:
        """Encrypt a value for its place.

        Raises:
            Unavailable: extra_missing, keys_unset, keys_missing, keys_readable, keys_invalid.
        """
        key_id, key = self.keyring.newest()
        nonce = os.urandom(_NONCE)
        sealed = nonce + _cipher(key).encrypt(nonce, value.encode(), _bound(place))
        return Sealed(key_id, base64.b64encode(sealed).decode())

    def again(self, sealed: Sealed, *place: str) -> Sealed:
        """Re-encrypt a value with the newest key; raises the errors of :meth:`open`."""
        return self.seal(self.open(sealed, *place), *place)

    def open(self, sealed: Sealed, *place: str) -> str:
        """Decrypt a value that was encrypted for this place.

        Raises:
            Unavailable: key_unknown, secret_tampered, and those of :meth:`seal`.
        """
        key = self.keyring.keys().get(sealed.key_id)
        if key is None:
            raise Unavailable("key_unknown", key_id=sealed.key_id)  # fmt: skip
        data = base64.b64decode(sealed.text)
        cipher = _cipher(key)
        from cryptography.exceptions import InvalidTag

        try:
            return str(cipher.decrypt(data[:_NONCE], data[_NONCE:], _bound(place)).decode())
        except InvalidTag as error:
            raise Unavailable("secret_tampered") from error  # fmt: skip


def _bound(place: tuple[str, ...]) -> bytes:
    """Return the associated data of AES-GCM that binds a ciphertext to its place."""
    # Each part with its length: no two places have the same bytes.
    return b"lodger 1" + b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in place)


def _cipher(key: bytes) -> Any:
    """Return the cipher AES-GCM with this key."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise Unavailable("extra_missing.secrets", reason=str(error)) from error
    return AESGCM(key)
