"""Classes 5, 6 and 39: a script replaces built-ins before the glue uses them, and changes values between check and use.

The glue stored its built-ins when the realm was baked; the matrix bakes a realm that looks them up on use.
"""

from lodger.escape.attack_files import cases_of, texts

_SHARED = texts(__file__, "shared")
_STOLEN = "globalThis.stolen = (globalThis.stolen ?? 0) + 1;"


def _poisoned(poison: str) -> dict[str, str]:
    """Return a script that replaces a built-in, works, and tells how often the glue has called the replacement."""
    return {"script": _SHARED["work"].replace("POISON", poison.replace("STEAL", _STOLEN))}


def _keyed(hash_: str) -> dict[str, str]:
    """Return a script that watches the use of a key.

    Every way known to see its bytes is replaced: methods, getters, iterators, setters and conversions. The spies look for the key, as bytes
    or as a text, and for the pads of HMAC.
    """
    return {"script": _SHARED["key"].replace("HASH", hash_)}


CASES = [*cases_of(__file__, poisoned=_poisoned, keyed=_keyed)]
