"""Handlers of host calls by name, one for each call in ``lodger.stdlib.calls``, including those of ``events`` and ``limits``.

None is looked up by attribute.
"""

from dataclasses import asdict
from typing import Any

from lodger.engine.capabilities import (
    changes,
    db_bulk,
    db_read,
    db_write,
    fetch,
    functions,
    kv,
    mail,
    run_requests,
    secrets,
)
from lodger.engine.capabilities.computing import crypto, intl, text
from lodger.engine.capabilities.session import Handler, Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.engine.effects.effect import Emit
from lodger.engine.policy.budget_table import STORAGE
from lodger.engine.recurrence.calendar.zone_tables import zone_table
from lodger.engine.store.queue.events import ENGINE_PREFIX, EVENT_NAME

#: Maximum size of the data of an event, bytes of JSON.
MAX_EVENT_DATA = 64 * 1024


async def emit(session: Session, given: dict[str, Any]) -> None:
    """Handle events.emit: the event enters the journal, and is sent to webhooks after the commit."""
    name = given["name"]
    if not EVENT_NAME.fullmatch(name) or name.startswith(ENGINE_PREFIX):
        raise bad_request(
            f"the name of an event must be lower-case words separated by dots, like order.paid, and must not begin with {ENGINE_PREFIX}"
        )
    data = strict_json.dump(strict_json.normal(given["data"]))
    if secrets.holds_handle(data):
        raise bad_request("an event cannot hold the handle of a secret: handles are replaced in requests of fetch only")
    if len(data.encode()) > MAX_EVENT_DATA:
        raise bad_request(f"the data of an event must be at most {MAX_EVENT_DATA} bytes of JSON")
    session.budgets.spend("events")
    session.journal.add(Emit(name, data, line=given["line"]))


async def limits(session: Session, _given: dict[str, Any]) -> dict[str, Any]:
    """Handle limits.get: return the budgets of the attempt, with used and remaining amounts."""
    tenant = {}
    if session.claim.storage is not None:
        maximum, used = session.claim.storage
        tenant[STORAGE] = {"limit": maximum, "used": used, "left": max(0, maximum - used)}
    return session.budgets.rows() | {"tenant": tenant, "process": asdict(session.claim.limits)}


async def time_zone(session: Session, given: dict[str, Any]) -> dict[str, Any] | None:
    """Handle time.zone: return the changes of a zone's offset, by the database that slots are computed with.

    The years from 2100 of a zone that was not asked for lately take some milliseconds, which are charged to the attempt.
    """
    if not given["far"]:
        return zone_table(given["name"], far=False)
    with session.computing():
        return zone_table(given["name"], far=True)


_MODULES = (
    db_read, db_write, db_bulk, changes, kv, mail, run_requests, fetch, functions, secrets, crypto, intl, text,
)  # fmt: skip
HANDLERS: dict[str, Handler] = {name: handler for module in _MODULES for name, handler in module.HANDLERS.items()}
HANDLERS |= {"events.emit": emit, "limits.get": limits, "time.zone": time_zone}
