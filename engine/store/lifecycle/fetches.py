"""Responses to the HTTP requests of a repeated attempt: kept until its step is over, and replayed to the next attempt."""

import json
import zlib
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select

from lodger.engine.core.execution import Answer, Claim, Fetched
from lodger.engine.store.lifecycle.endings import Settled
from lodger.engine.store.schema.script_data import fetches
from lodger.sandbox.outcome import Outcome

#: After these outcomes the step is repeated through no fault of its script: the responses are still valid.
REPEATED = (Outcome.CONFLICT, Outcome.ENGINE_FAULT, Outcome.WORKER_LOST)

_c = fetches.c
_of_step = (_c.tenant_id == bindparam("tenant"), _c.action_id == bindparam("action"), _c.step == bindparam("step"))
_kept = select(_c.key, _c.answer, _c.body).where(*_of_step)
_forget = delete(fetches).where(*_of_step)


def load(connection: Connection, tenant_id: str, action_id: str, step: int) -> dict[str, Answer]:
    """Return the kept responses of earlier attempts, by request key."""
    rows = connection.execute(_kept, {"tenant": tenant_id, "action": action_id, "step": step})
    return {row.key: _answer(row.answer, zlib.decompress(row.body)) for row in rows}


def store(connection: Connection, claim: Claim, fetched: Sequence[Fetched], outcome: Outcome) -> None:
    """Keep the responses of an attempt that will be repeated; delete those of a finished step."""
    step = {"tenant": claim.tenant_id, "action": claim.action_id, "step": claim.step}
    if outcome not in REPEATED:
        if claim.tries > 1:
            connection.execute(_forget, step)
        return
    if fetched:
        known = set(connection.scalars(select(_c.key).where(*_of_step), step))
        rows = [_row(claim, each) for each in fetched if each.key not in known]
        if rows:
            connection.execute(insert(fetches), rows)


def delete_kept(connection: Connection, over: Sequence[Settled]) -> None:
    """Delete the kept responses of steps that are not repeated."""
    steps = [{"tenant": each.tenant_id, "action": each.action_id, "step": each.step} for each in over]
    if steps:
        connection.execute(_forget, steps)


def _row(claim: Claim, fetched: Fetched) -> dict[str, object]:
    """Return the row of a kept response."""
    answer = fetched.answer
    head = [answer.status, answer.reason, answer.url, answer.headers, answer.redirected]
    return {
        "tenant_id": claim.tenant_id,
        "action_id": claim.action_id,
        "step": claim.step,
        "key": fetched.key,
        "answer": json.dumps(head, ensure_ascii=True),
        "body": zlib.compress(answer.body, 1),
    }


def _answer(head: str, body: bytes) -> Answer:
    """Return the response of a row."""
    status, reason, url, headers, redirected = json.loads(head)
    return Answer(status, reason, url, tuple((name, value) for name, value in headers), body, redirected, 0, 0)
