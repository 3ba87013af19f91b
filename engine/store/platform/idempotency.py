"""What was answered to a request with an idempotency key: written with the change itself, given again to whoever asks again."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from lodger.engine.core.errors import Conflict
from lodger.engine.store.schema.access import answers

#: How long an answer is kept.
KEPT_US = 24 * 3600 * 1_000_000
#: Most that one clean-up removes.
MAX_KEYS = 1000

_t = answers.c


@dataclass(frozen=True, slots=True)
class Answer:
    """``digest`` is that of the request: another request under the same key is a mistake."""

    digest: str
    status: int
    body: str


class Repeated(Conflict):
    """Another request with this key was carried out just now: read its answer."""


def find(connection: Connection, token_id: str, key: str) -> Answer | None:
    """Give what was answered to this caller under this key."""
    row = connection.execute(select(answers).where(_t.token_id == token_id, _t.key == key)).first()
    return None if row is None else Answer(row.digest, row.status, row.body)


def keep(connection: Connection, token_id: str, tenant_id: str | None, key: str, answer: Answer, now_us: int) -> None:
    """Store an answer in the transaction of its change.

    Raises:
        Repeated: there is one already; the transaction is lost, as it should be.
    """
    values = {"token_id": token_id, "key": key, "tenant_id": tenant_id, "created_us": now_us}
    said = {"digest": answer.digest, "status": answer.status, "body": answer.body}
    try:
        connection.execute(insert(answers).values(values | said))
    except IntegrityError as error:
        raise Repeated("idempotency_repeated", "this key was used just now", fix="ask again") from error


def mend(connection: Connection, token_id: str, key: str, body: str) -> None:
    """Replace an answer's body."""
    connection.execute(update(answers).where(_t.token_id == token_id, _t.key == key).values(body=body))


def forget(connection: Connection, now_us: int) -> int:
    """Remove answers that are too old; give how many."""
    old = select(_t.token_id, _t.key).where(_t.created_us < now_us - KEPT_US).limit(MAX_KEYS)
    rows = connection.execute(old).all()
    for row in rows:
        connection.execute(delete(answers).where(_t.token_id == row.token_id, _t.key == row.key))
    return len(rows)
