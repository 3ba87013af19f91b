"""Secrets of this ledger's own. Every process that has it open signs with the same."""

from functools import lru_cache

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import Connection, select

from lodger.engine.core.errors import InputError
from lodger.engine.store.records import Json
from lodger.engine.store.schema.access import keys


def signing(connection: Connection) -> bytes:
    """Give the key that this ledger signs with; it was drawn when the ledger was made."""
    found = connection.scalar(select(keys.c.secret).where(keys.c.name == "signing"))
    assert found is not None, "the migration that made the table made the key"
    return bytes(found)


@lru_cache(16)
def _serializer(secret: bytes, salt: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt=f"lodger.{salt}", signer_kwargs={"digest_method": _sha256})


def _sha256(data: bytes = b"") -> object:
    import hashlib

    return hashlib.sha256(data)


def cursor(connection: Connection, of: str, place: Json) -> str:
    """Give a text that names a place in a list and that nobody else can make.

    Args:
        of: which list it is, with everything that filters it: a cursor of one list is none of another.
    """
    text = _serializer(signing(connection), "cursor").dumps([of, place])
    return text.decode() if isinstance(text, bytes) else text


def place(connection: Connection, of: str, text: str) -> Json:
    """Give the place that a cursor names.

    Raises:
        InputError: cursor_invalid.
    """
    try:
        owner, where = _serializer(signing(connection), "cursor").loads(text)
    except (BadSignature, ValueError, TypeError):
        owner, where = None, None
    if owner != of:
        raise InputError(
            "cursor_invalid",
            "this cursor is none of this list's",
            why="a cursor is good for the very list, with the very filters, that it came with",
            fix="begin again without a cursor",
        )
    return where
