"""Host side of ``events``: an event enters the journal, and is sent to webhooks after the commit."""

from typing import Any

from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.refusal import bad_request
from lodger.engine.effects.effect import Emit
from lodger.engine.store.queue.webhook_events import ENGINE_PREFIX, EVENT_NAME

MAX_DATA = 64 * 1024


async def emit(session: Session, given: dict[str, Any]) -> None:
    """Handle events.emit."""
    name = given["name"]
    if not EVENT_NAME.fullmatch(name) or name.startswith(ENGINE_PREFIX):
        raise bad_request(
            f"an event is named by lower-case words with dots between, like order.paid, and not {ENGINE_PREFIX}…"
        )
    data = strict_json.dump(strict_json.normal(given["data"]))
    if len(data.encode()) > MAX_DATA:
        raise bad_request(f"the data of an event is at most {MAX_DATA} bytes of JSON")
    session.budgets.spend("events")
    session.journal.send(Emit(name, data, line=given["line"]))


HANDLERS = {"events.emit": emit}
