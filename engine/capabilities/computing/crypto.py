"""Host side of ``crypto.subtle``: AES-GCM, key derivation and verification of signatures, by the library ``cryptography``.

Each call brings its key; nothing of it is kept, logged or recorded. Every size is bounded, and key derivations are bounded by the
number of hash iterations, so that no call takes more than some tens of milliseconds of a thread beside the event loop. That CPU time
is charged to the attempt, and the calls of a tenant are computed one after another.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from lodger.engine.capabilities.session import Session
from lodger.engine.core.refusal import CallRefused, bad_request

#: Iterations of PBKDF2, times the number of digests in the result, twice that for long digests: of one call, and of all of an attempt.
MAX_ITERATIONS = 100_000
MAX_ATTEMPT_ITERATIONS = 500_000
MAX_DERIVED_BYTES = 1024
MAX_RSA_BITS, MIN_RSA_BITS, MAX_EXPONENT = 4096, 1024, 2**32
MAX_KEY_BYTES = 4096
_HASHES = {"SHA-1": 20, "SHA-256": 32, "SHA-384": 48, "SHA-512": 64}
_CURVES = {"P-256": ("SECP256R1", 32), "P-384": ("SECP384R1", 48), "P-521": ("SECP521R1", 66)}
T = TypeVar("T")
_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


async def _compute(session: Session, work: Callable[[], T]) -> T:
    """Return the result of a computation in a thread, in the tenant's turn, and charge its CPU time."""
    turn = _turns.setdefault(session.claim.tenant_id, asyncio.Lock())
    async with turn:

        def work_charged() -> T:
            """Do the work and charge its CPU time to the script."""
            with session.computing():
                return work()

        return await asyncio.to_thread(work_charged)


def _failed(message: str) -> CallRefused:
    """Return the refusal of a cryptographic operation that failed."""
    return CallRefused("crypto_failed", message)


def _library(name: str) -> Any:
    """Import a module of the cryptography package."""
    try:
        return import_module("cryptography." + name)
    except ImportError:
        raise CallRefused(
            "crypto_missing", "the engine lacks the package cryptography: install lodger with the extra secrets"
        ) from None


def _hash(name: str) -> Any:
    """Return the hash function of this name."""
    if name not in _HASHES:
        raise bad_request("the hash must be one of: " + ", ".join(_HASHES))
    return getattr(_library("hazmat.primitives.hashes"), name.replace("-", ""))()


def _text(data: bytes) -> str:
    """Return bytes as base64."""
    return b64encode(data).decode("ascii")


async def aes(session: Session, given: dict[str, Any]) -> str:
    """Handle crypto.aes: encrypt or decrypt with AES-GCM; the tag follows the ciphertext."""
    ciphers, algorithms = _library("hazmat.primitives.ciphers"), _library("hazmat.primitives.ciphers.algorithms")
    modes = _library("hazmat.primitives.ciphers.modes")
    key, iv, data, extra, bits = given["key"], given["iv"], given["data"], given["extra"] or b"", given["tagBits"]
    if len(key) not in (16, 24, 32):
        raise bad_request("an AES key has 128, 192 or 256 bits")
    if not 8 <= len(iv) <= 128:
        raise bad_request("the iv of AES-GCM has 8 to 128 bytes; 12 are usual")
    if bits not in (96, 104, 112, 120, 128):
        raise bad_request("the tag of AES-GCM has 96, 104, 112, 120 or 128 bits")
    size = bits // 8

    def encrypt() -> bytes:
        """Return the encrypted data with the tag after it."""
        work = ciphers.Cipher(algorithms.AES(key), modes.GCM(iv)).encryptor()
        work.authenticate_additional_data(extra)
        return bytes(work.update(data) + work.finalize() + work.tag[:size])

    def decrypt() -> bytes | None:
        """Return the plain data, None if the tag does not fit."""
        if len(data) < size:
            return None
        work = ciphers.Cipher(algorithms.AES(key), modes.GCM(iv, data[-size:], min_tag_length=size)).decryptor()
        work.authenticate_additional_data(extra)
        plain = work.update(data[:-size])
        try:
            return bytes(plain + work.finalize())
        except _library("exceptions").InvalidTag:
            return None

    made = await _compute(session, decrypt if given["decrypt"] else encrypt)
    if made is None:
        raise _failed("the data cannot be decrypted: wrong key, iv or additional data, or it was changed")
    return _text(made)


async def derive(session: Session, given: dict[str, Any]) -> str:
    """Handle crypto.derive: bits from a key or password, by PBKDF2 or HKDF."""
    kind, name, key, salt, bits = given["kind"], given["hash"], given["key"], given["salt"], given["bits"]
    algorithm = _hash(name)
    if not isinstance(bits, int) or not 0 < bits <= MAX_DERIVED_BYTES * 8 or bits % 8:
        raise bad_request(f"the length must be a multiple of 8 bits, at most {MAX_DERIVED_BYTES * 8}")
    size = bits // 8
    if kind == "HKDF":
        info = given["info"] or b""
        if len(info) > 1024:  # the limit of the library
            raise bad_request("info has at most 1024 bytes")
        work = _library("hazmat.primitives.kdf.hkdf").HKDF(algorithm, size, salt, info)
        return _text(await _compute(session, lambda: work.derive(key)))
    if kind != "PBKDF2":
        raise bad_request("the kind must be PBKDF2 or HKDF")
    count = given["iterations"]
    if not isinstance(count, int) or count < 1:
        raise bad_request("iterations must be a whole number from 1")
    times = -(-size // _HASHES[name]) * (2 if _HASHES[name] > 32 else 1)
    cost = count * times
    if cost > MAX_ITERATIONS:
        raise bad_request(f"with {name} and {bits} bits a call has at most {MAX_ITERATIONS // times} iterations")
    spent = session.spent.get("iterations", 0) + cost
    if spent > MAX_ATTEMPT_ITERATIONS:
        raise CallRefused("budget_exceeded", f"a run has at most {MAX_ATTEMPT_ITERATIONS} iterations of PBKDF2")
    session.spent["iterations"] = spent
    digest = name.replace("-", "").lower()
    return _text(await _compute(session, lambda: hashlib.pbkdf2_hmac(digest, key, salt, count, size)))


async def key(session: Session, given: dict[str, Any]) -> dict[str, str]:
    """Handle crypto.key: read a public key; returns it as SPKI and in its parts."""
    if len(given["data"]) > MAX_KEY_BYTES or len(given["exponent"] or b"") > 8:
        raise _failed("the key is too large")
    return await _compute(session, lambda: _checked_parts(_public(given), given["kind"], given["curve"]))


def _public(given: dict[str, Any]) -> Any:
    """Return the public key that the data describe."""
    data, kind, form = given["data"], given["kind"], given["format"]
    unsupported = _library("exceptions").UnsupportedAlgorithm
    try:
        if form == "spki":
            return _library("hazmat.primitives.serialization").load_der_public_key(data)
        if form == "raw" and kind == "EC":
            ec = _library("hazmat.primitives.asymmetric.ec")
            return ec.EllipticCurvePublicKey.from_encoded_point(_curve(given["curve"]), data)
        if form == "numbers" and kind == "RSA":
            modulus, exponent = int.from_bytes(data, "big"), int.from_bytes(given["exponent"] or b"", "big")
            if modulus.bit_length() > MAX_RSA_BITS or exponent > MAX_EXPONENT:
                raise _failed(f"an RSA key has at most {MAX_RSA_BITS} bits and an exponent of 32 bits")
            return _library("hazmat.primitives.asymmetric.rsa").RSAPublicNumbers(exponent, modulus).public_key()
    except (ValueError, unsupported):
        raise _failed("the key cannot be read: it is damaged, or of another kind or curve") from None
    raise bad_request("a public key is read as spki, raw (EC) or numbers (RSA)")


def _curve(name: str | None) -> Any:
    """Return the elliptic curve of this name."""
    if name not in _CURVES:
        raise bad_request("the curve must be one of: " + ", ".join(_CURVES))
    return getattr(_library("hazmat.primitives.asymmetric.ec"), _CURVES[name][0])()


def _checked_parts(found: Any, kind: str, curve: str | None) -> dict[str, str]:
    """Check the kind and size of a public key, of EC also its curve; return its SPKI and its numbers as base64."""
    serialization = _library("hazmat.primitives.serialization")
    if kind == "RSA" and isinstance(found, _library("hazmat.primitives.asymmetric.rsa").RSAPublicKey):
        numbers = found.public_numbers()
        if not MIN_RSA_BITS <= found.key_size <= MAX_RSA_BITS or numbers.e > MAX_EXPONENT:
            raise _failed(f"an RSA key has {MIN_RSA_BITS} to {MAX_RSA_BITS} bits and an exponent of 32 bits")
        parts = {"n": _number(numbers.n), "e": _number(numbers.e)}
    elif kind == "EC" and isinstance(found, _library("hazmat.primitives.asymmetric.ec").EllipticCurvePublicKey):
        if curve not in _CURVES or not isinstance(found.curve, type(_curve(curve))):
            raise _failed("the key is on another curve")
        size, point = _CURVES[curve][1], found.public_numbers()
        parts = {"x": _text(point.x.to_bytes(size, "big")), "y": _text(point.y.to_bytes(size, "big"))}
    else:
        raise _failed("the key is of another kind")
    der = found.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {"spki": _text(der), **parts}


def _number(value: int) -> str:
    """Return a whole number as base64 of its big-endian bytes."""
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


async def verify(session: Session, given: dict[str, Any]) -> bool:
    """Handle crypto.verify: return whether a signature is that of the data."""
    kind, signature, data = given["kind"], given["signature"], given["data"]
    algorithm, family = _hash(given["hash"]), "EC" if kind == "ECDSA" else "RSA"
    if len(given["key"]) > MAX_KEY_BYTES:
        raise _failed("the key is too large")
    pads, salt = _library("hazmat.primitives.asymmetric.padding"), given["saltBytes"]
    if kind == "RSA-PSS" and (not isinstance(salt, int) or not 0 <= salt <= 512):
        raise bad_request("saltLength must be a whole number from 0 to 512")

    def has_valid_signature() -> bool:
        found = _public({"data": given["key"], "kind": family, "format": "spki"})
        _checked_parts(found, family, given["curve"])
        if kind == "ECDSA":
            size = _CURVES[given["curve"]][1]
            if len(signature) != 2 * size:
                return False
            numbers = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            der = _library("hazmat.primitives.asymmetric.utils").encode_dss_signature(*numbers)
            arguments: tuple[Any, ...] = (der, data, _library("hazmat.primitives.asymmetric.ec").ECDSA(algorithm))
        else:
            pad = pads.PKCS1v15() if kind == "RSASSA-PKCS1-v1_5" else pads.PSS(pads.MGF1(algorithm), salt)
            arguments = (signature, data, pad, algorithm)
        try:
            found.verify(*arguments)
        except _library("exceptions").InvalidSignature:
            return False
        except ValueError:  # the salt or digest does not fit into the key
            return False
        return True

    if kind not in ("ECDSA", "RSASSA-PKCS1-v1_5", "RSA-PSS"):
        raise bad_request("the kind must be ECDSA, RSASSA-PKCS1-v1_5 or RSA-PSS")
    return await _compute(session, has_valid_signature)


HANDLERS = {"crypto.aes": aes, "crypto.derive": derive, "crypto.key": key, "crypto.verify": verify}
