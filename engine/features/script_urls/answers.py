"""Answers of scripts to requests to their URLs: the result of a run becomes a response, for senders that wait for it."""

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from lodger.engine.core.errors import NotFound
from lodger.engine.core.events import Event
from lodger.engine.server.operation_call import Calls
from lodger.engine.server.problems import Refused
from lodger.engine.store.actions import actions
from lodger.engine.store.records import Action
from lodger.engine.store.schema.scheduling import OPEN
from lodger.sandbox.outcome import Outcome

if TYPE_CHECKING:
    from lodger.engine.service.engine import Engine

#: Seconds that a sender waits at most; most senders give up after ten to thirty.
ANSWER_S = 25.0
#: Seconds between two looks at the ledger, where another process runs the action.
POLL_S = 0.25
#: Headers that a script may set, beside those of its own. Proxies obey many of other names: x-accel-redirect, x-sendfile, link, …
ALLOWED = frozenset(
    {"cache-control", "content-language", "content-type", "etag", "location", "retry-after", "x-hook-secret"}
)
_OWN = re.compile(r"x-script-[a-z0-9-]{1,60}", re.ASCII)
_VALUE = re.compile("[ -~\\t\xa0-\xff]{0,2000}")
#: Pages of a script have an origin of their own and load nothing, so that they reach no session of this server.
SANDBOX = {
    "content-security-policy": "sandbox allow-forms; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
}


async def wait(engine: "Engine", calls: Calls, tenant_id: str, action_id: str) -> Response:
    """Return the response of an action's script, once the action has ended.

    Args:
        calls: its threads read the ledger.

    Raises:
        Refused: url_answer_late, url_answer_failed, url_answer_invalid.
    """
    loop, written = asyncio.get_running_loop(), asyncio.Event()

    def read_action() -> Action | None:
        """Return the action as it is now, None if it was deleted."""
        with engine.context.database.read() as connection:
            try:
                return actions.get(connection, action_id, tenant_id)
            except NotFound:  # a deleted tenant
                return None

    def note_end(event: Event) -> None:
        """Wake the waiting request at an event of its action."""
        if event.action_id == action_id:
            loop.call_soon_threadsafe(written.set)

    forget = engine.on_event(note_end)
    try:
        async with asyncio.timeout(ANSWER_S):
            while True:
                written.clear()
                action = await calls.run(tenant_id, read_action)
                if action is None or action.state not in OPEN:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(written.wait(), POLL_S)
    except TimeoutError:
        raise Refused(504, "url_answer_late", action=action_id, seconds=ANSWER_S) from None
    finally:
        forget()
    if action is None or action.outcome is not Outcome.OK:
        raise Refused(502, "url_answer_failed", action=action_id)
    return response(action.result)


def response(result: Any) -> Response:
    """Return the response that a script's result describes: ``{status, headers, body}``, or any other value as a body.

    Raises:
        Refused: url_answer_invalid.
    """
    if (
        not isinstance(result, dict)
        or not result
        or not set(result) <= {"status", "headers", "body"}
        or "status" not in result
    ):
        result = {"body": result}
    status, headers, body = result.get("status"), result.get("headers") or {}, result.get("body")
    if status is None:
        status = 204 if body is None else 200
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        raise Refused(502, "url_answer_invalid", reason="status must be a whole number from 200 to 599")
    if not isinstance(headers, dict):
        raise Refused(502, "url_answer_invalid", reason="headers must be an object of texts")
    given: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower not in ALLOWED and not _OWN.fullmatch(lower):
            raise Refused(502, "url_answer_invalid", reason=f"the header {name[:60]!r} cannot be set")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise Refused(
                502, "url_answer_invalid", reason=f"the value of the header {lower} is not one line of Latin-1 text"
            )
        given[lower] = value
    if isinstance(body, str):
        given.setdefault("content-type", "text/plain; charset=utf-8")
        content = body.encode("utf-8", "replace")
    elif body is None:
        content = b""
    else:
        given.setdefault("content-type", "application/json")
        content = json.dumps(body).encode()
    return Response(b"" if status in (204, 205, 304) else content, status, given | SANDBOX)
