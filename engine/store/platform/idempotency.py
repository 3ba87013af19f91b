"""Responses to requests with an idempotency key: written with the change itself, and returned to repeated requests."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.errors import Conflict
from lodger.engine.store.drivers import prepared
from lodger.engine.store.schema.access import answers

#: How long a response is kept, microseconds.
KEPT_US = 24 * 3600 * 1_000_000
#: Maximum number of responses that one clean-up deletes.
MAX_KEYS = 1000

_t = answers.c


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response. ``digest`` is that of the request: a different request under the same key is an error."""

    digest: str
    status: int
    body: str
    headers: Mapping[str, str]


class Repeated(Conflict):
    """A concurrent request with this key has just been carried out; its response can be read."""


def find(connection: Connection, token_id: str, key: str) -> StoredResponse | None:
    """Return the stored response to this token's request with this key, or None."""
    prepared.last(connection)
    row = connection.execute(select(answers).where(_t.token_id == token_id, _t.key == key)).first()
    return None if row is None else StoredResponse(row.digest, row.status, row.body, json.loads(row.headers))


def store(
    connection: Connection, token_id: str, tenant_id: str | None, key: str, answer: StoredResponse, now_us: int
) -> None:
    """Store a response in the transaction of its change.

    Raises:
        Repeated: there is one already; the transaction must be rolled back.
    """
    values = {"token_id": token_id, "key": key, "tenant_id": tenant_id, "created_us": now_us}
    said = {
        "digest": answer.digest,
        "status": answer.status,
        "body": answer.body,
        "headers": json.dumps(answer.headers),
    }
    # A server says with the commit that there is one already.
    before = prepared.mark(connection, Repeated)
    with naming_repeated():
        prepared.write(connection, insert(answers).values(values | said))
    prepared.mark(connection, before)


@contextmanager
def naming_repeated() -> Iterator[None]:
    """Raise Repeated instead of the database's error about a response that is stored already."""
    try:
        yield
    except IntegrityError as error:
        if prepared.mark_of(error) is not Repeated and "lodger_answers" not in str(error.statement):
            raise
        raise Repeated("idempotency_repeated") from error


def replace_body(connection: Connection, token_id: str, key: str, body: str) -> None:
    """Replace the body of the response that is stored under a key."""
    connection.execute(update(answers).where(_t.token_id == token_id, _t.key == key).values(body=body))


def delete_expired(connection: Connection, now_us: int) -> int:
    """Delete expired responses; return their number."""
    old = select(_t.token_id, _t.key).where(_t.created_us < now_us - KEPT_US).limit(MAX_KEYS)
    return connection.execute(delete(answers).where(tuple_(_t.token_id, _t.key).in_(old))).rowcount
