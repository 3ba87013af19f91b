"""The ledger's signing key, shared by every process that has it open, and the cursors that are signed with it."""

import hashlib
from contextvars import ContextVar
from functools import lru_cache

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import Connection, select

from lodger.engine.core.errors import InputError
from lodger.engine.store.records import Json
from lodger.engine.store.schema.access import keys


def signing_key(connection: Connection) -> bytes:
    """Return the signing key of this ledger, created by its first migration."""
    found = connection.scalar(select(keys.c.secret).where(keys.c.name == "signing"))
    assert found is not None, "the migration that made the table made the key"
    return bytes(found)


@lru_cache(16)
def _serializer(secret: bytes, salt: str) -> URLSafeSerializer:
    """Return a signer of texts for one purpose, which ``salt`` names."""
    return URLSafeSerializer(secret, salt=f"lodger.{salt}", signer_kwargs={"digest_method": hashlib.sha256})


#: The list and the position that :func:`decode_cursor` returns, while an engine of several ledgers asks one of them.
PLACE: ContextVar[tuple[str, Json] | None] = ContextVar("place", default=None)


def encode_cursor(connection: Connection, of: str, place: Json) -> str:
    """Return a signed text that encodes a position in a list.

    Args:
        of: the list with all its filters; a cursor of one list is invalid for another.
    """
    return seal_cursor(signing_key(connection), of, place)


def seal_cursor(key: bytes, of: str, place: Json) -> str:
    """Return the text of :func:`encode_cursor`, signed with a key that was read before."""
    text = _serializer(key, "cursor").dumps([of, place])
    return text.decode() if isinstance(text, bytes) else text


def decode_cursor(connection: Connection, of: str, text: str | None) -> Json:
    """Return the position that a cursor encodes, after which a page begins; None without one, for the first page.

    Raises:
        InputError: cursor_invalid.
    """
    if not text:
        return None
    owner, where = PLACE.get() or open_cursor(signing_key(connection), text)
    if owner != of:
        raise InputError("cursor_invalid")
    return where


def open_cursor(key: bytes, text: str) -> tuple[str | None, Json]:
    """Return the list and the position that a text encodes; None twice for any other text."""
    try:
        owner, where = _serializer(key, "cursor").loads(text)
    except (BadSignature, ValueError, TypeError):
        return None, None
    return owner, where
