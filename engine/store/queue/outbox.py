"""The outbox: mails and webhooks of committed steps, inserted once and sent at least once, always under the same id.

A row is ``queued``, then ``sending`` under a lease, then ``sent`` or ``failed``. Retries wait for a growing pause.
Tenants take turns, so that a tenant with many rows or a slow receiver does not delay others; rows of a suspended tenant
wait.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, insert, select, tuple_, update

from lodger.engine.store.drivers import prepared
from lodger.engine.store.rows import record
from lodger.engine.store.schema.scheduling import tenants
from lodger.engine.store.schema.script_data import outbox

LEASE_US = 180_000_000
#: A receiver: tenant and target. The mails of a tenant are one lane, each webhook is another.
Lane = tuple[str, str]

_c = outbox.c
_held_up = exists().where(tenants.c.id == _c.tenant_id, tenants.c.state != "active")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retry policy of a delivery: maximum tries, and pauses that double from the first to the longest."""

    tries: int = 10
    pause_s: float = 30.0
    longest_pause_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason of a failed delivery. ``final``: retries cannot help; ``partly``: some recipients have received it."""

    text: str
    final: bool
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """State of one mail or webhook of an action.

    Attributes:
        action_id: of an alert's message the rule's id.
        kind: mail or webhook; ``to``: recipients, or the webhook's name; ``about``: subject, or the event's name.
        state: queued, sending, sent or failed; ``error``: the receiver's last error.
    """

    tenant_id: str
    action_id: str
    id: str
    kind: str
    to: tuple[str, ...]
    about: str
    state: str
    attempts: int
    error: str | None
    next_at: datetime | None
    sent_at: datetime | None


def due_lanes(connection: Connection, kind: str, now_us: int, busy: Collection[Lane], maximum: int) -> list[Lane]:
    """Return the receivers with due rows, longest waiting first."""
    due = and_(_c.kind == kind, _c.state.in_(["queued", "sending"]), _c.next_at_us <= now_us, ~_held_up)
    found = select(_c.tenant_id, _c.target).where(due).group_by(_c.tenant_id, _c.target)
    if busy:
        found = found.where(tuple_(_c.tenant_id, _c.target).not_in(list(busy)))
    rows = connection.execute(found.order_by(func.min(_c.next_at_us), _c.tenant_id, _c.target).limit(maximum))
    return [(row.tenant_id, row.target) for row in rows]


def lease_rows(connection: Connection, kind: str, lanes: Iterable[Lane], now_us: int, each: int) -> list[Row[Any]]:
    """Lease up to ``each`` due rows of each of these receivers, oldest first."""
    taken: list[Row[Any]] = []
    for tenant_id, target in lanes:
        mine = (_c.tenant_id == tenant_id, _c.target == target, _c.kind == kind)
        due = (_c.state.in_(["queued", "sending"]), _c.next_at_us <= now_us)
        found = select(outbox).where(*mine, *due).order_by(_c.next_at_us, _c.created_us, _c.n).limit(each)
        for row in connection.execute(found.with_for_update(skip_locked=True)).all():
            values = {"state": "sending", "attempts": row.attempts + 1, "next_at_us": now_us + LEASE_US}
            prepared.write(connection, update(outbox).where(_key(row)).values(values))
            taken.append(row)
    return taken


def record_result(
    connection: Connection, row: Row[Any], failure: Failure | None, patience: RetryPolicy, now_us: int
) -> str:
    """Store the result of a delivery and return the row's state; a row that was leased again since is left unchanged."""
    tried = row.attempts + 1
    values: dict[str, Any]
    if failure is None or failure.partly:
        values = {"state": "sent", "sent_us": now_us, "next_at_us": None, "last_error": failure and failure.text}
    elif failure.final or tried >= patience.tries:
        values = {"state": "failed", "next_at_us": None, "last_error": failure.text}
    else:
        pause = min(patience.pause_s * 2 ** (tried - 1), patience.longest_pause_s)
        values = {"state": "queued", "next_at_us": now_us + int(pause * 1_000_000), "last_error": failure.text}
    mine = and_(_key(row), _c.state == "sending", _c.attempts == tried)
    changed = connection.execute(update(outbox).where(mine).values(values)).rowcount
    return str(values["state"]) if changed else "taken"


def put_back(connection: Connection, rows: Iterable[Row[Any]], failed: Row[Any], now_us: int) -> None:
    """Let leased rows that were not tried wait as long as the one that has failed before them; no try of theirs is counted."""
    next_us = connection.scalar(select(_c.next_at_us).where(_key(failed)))
    values = {"state": "queued", "next_at_us": now_us if next_us is None else next_us}
    for row in rows:
        mine = and_(_key(row), _c.state == "sending", _c.attempts == row.attempts + 1)
        connection.execute(update(outbox).where(mine).values(values | {"attempts": row.attempts}))


def give_up(connection: Connection, kind: str, target: str, tenant_id: str | None, reason: str) -> None:
    """Let the waiting rows of a receiver fail for a reason; of all tenants if the tenant is None."""
    of = () if tenant_id is None else (_c.tenant_id == tenant_id,)
    waiting = (_c.kind == kind, _c.target == target, _c.state.in_(["queued", "sending"]))
    values = {"state": "failed", "next_at_us": None, "last_error": reason}
    prepared.write(connection, update(outbox).where(*of, *waiting).values(values))


def enqueue(connection: Connection, rows: list[dict[str, Any]], now_us: int) -> None:
    """Insert rows that are due now; each has tenant, id, action, step, n, kind, target, message_id and payload."""
    if rows:
        fixed = {"state": "queued", "attempts": 0, "next_at_us": now_us, "created_us": now_us}
        connection.execute(insert(outbox), [row | fixed for row in rows])


def deliveries(connection: Connection, tenant_id: str, action_id: str) -> list[Delivery]:
    """Return the mails and webhooks of an action, in the order of its calls."""
    mine = select(outbox).where(_c.tenant_id == tenant_id, _c.action_id == action_id)
    return [_delivery(row) for row in connection.execute(mine.order_by(_c.step, _c.n, _c.target))]


def unsent(connection: Connection, tenant_id: str | None, limit: int, *, failed: bool) -> list[Delivery]:
    """Return the waiting mails and webhooks, longest due first, or the failed ones, newest first; of all active tenants or of one."""
    states, order = (("failed",), _c.created_us.desc()) if failed else (("queued", "sending"), _c.next_at_us)
    of = ~_held_up if tenant_id is None else _c.tenant_id == tenant_id
    found = select(outbox).where(_c.state.in_(states), of).order_by(order, _c.id).limit(limit)
    return [_delivery(row) for row in connection.execute(found)]


def _delivery(row: Row[Any]) -> Delivery:
    """Return a mail or webhook from its row."""
    payload = json.loads(row.payload)
    mail = row.kind == "mail"
    return record(
        Delivery,
        row,
        id=row.message_id,
        to=tuple(each for name in ("to", "cc", "bcc") for each in payload.get(name, ())) if mail else (row.target,),
        about=payload["subject"] if mail else payload["type"],
        error=row.last_error,
    )


def _key(row: Row[Any]) -> Any:
    """Return the condition for a row of the outbox."""
    return and_(_c.tenant_id == row.tenant_id, _c.id == row.id)
