"""Events for webhooks: names, subscriptions, and insertion into the outbox."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from lodger.engine.store.queue import outbox
from lodger.engine.store.records import Json
from lodger.engine.store.schema.script_data import webhooks

#: Format of an event's name.
EVENT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,62}){0,7}", re.ASCII)
#: Prefix of the names of the engine's own events.
ENGINE_PREFIX = "lodger."
_c = webhooks.c


def enqueue(
    connection: Connection, tenant_id: str, event: str, data: Json, place: tuple[str, int, int], now_us: int
) -> int:
    """Enqueue an event for every webhook of the tenant that subscribes to it; return how many there are.

    Args:
        place: action id, step and number of the effect; the message ids are derived from it.
    """
    rows = connection.execute(select(_c.name, _c.events).where(_c.tenant_id == tenant_id, _c.state == "on")).all()
    wanted = [row.name for row in rows if matches(json.loads(row.events), event)]
    action_id, step, number = place
    body = json.dumps({"type": event, "data": data}, ensure_ascii=False, separators=(",", ":"))
    made: list[dict[str, Any]] = []
    for name in wanted:
        text = json.dumps([tenant_id, action_id, step, number, name])
        identity = "msg_" + hashlib.sha256(text.encode()).hexdigest()[:32]
        made.append({"tenant_id": tenant_id, "id": identity, "action_id": action_id, "step": step, "n": number, "kind": "webhook",
                     "target": name, "message_id": identity, "payload": body})  # fmt: skip
    outbox.enqueue(connection, made, now_us)
    return len(made)


def matches(patterns: Sequence[str], event: str) -> bool:
    """Whether a pattern matches an event. The engine's own events match by name or ``lodger.*``, never by ``*`` alone."""
    if event.startswith(ENGINE_PREFIX):
        patterns = [each for each in patterns if each.startswith(ENGINE_PREFIX)]
    return any(each in ("*", event) or (each.endswith(".*") and event.startswith(each[:-1])) for each in patterns)
