"""Entity tags: they move when somebody changes a thing, not when its clock ticks; If-Match is checked in the transaction."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from lodger.engine.server.problems import Refused, Stale
from lodger.engine.store.records import Schedule, Script, ScriptVersion, Tenant, Token
from lodger.engine.store.tenants.webhooks import Webhook

#: What of each record somebody can change.
_MOVING: dict[type, tuple[str, ...]] = {
    Tenant: ("id", "generation", "name", "state", "limits", "grants", "people"),
    Script: ("id", "version"),
    ScriptVersion: ("script_id", "version"),
    Schedule: ("id", "revision", "state", "note", "wake_at"),
    Token: ("id", "revoked_at"),
    Webhook: ("name", "created_at", "updated_at", "state"),
}


def of(record: object) -> str | None:
    """Give the tag of a record; None for what has none."""
    names = _MOVING.get(type(record))
    if names is None:
        return None
    said = json.dumps([getattr(record, name) for name in names], sort_keys=True, default=str)
    return f'"{hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:24]}"'


def expectation(request: Request) -> Callable[[Any], None] | None:
    """Give what a change must find stored, by If-Match and If-None-Match; None when it may find anything.

    Raises:
        Refused: header_invalid.
    """
    match, none = request.headers.get("if-match"), request.headers.get("if-none-match")
    if match is None and none is None:
        return None
    if none is not None and none.strip() != "*":
        raise Refused(
            400,
            "header_invalid",
            "If-None-Match of a change can only be *",
            fix="use If-Match with the ETag that you read",
        )
    wanted = None if match is None else {part.strip() for part in match.split(",")}

    def expect(record: object) -> None:
        if none is not None and record is not None:
            raise _stale("it is there already")
        if wanted is not None and (record is None or ("*" not in wanted and of(record) not in wanted)):
            raise _stale("it is not there" if record is None else "somebody else has changed it in between")

    return expect


def _stale(why: str) -> Stale:
    return Stale(
        "precondition_failed",
        "this is not what you had seen",
        why=why,
        fix="read it again, make your change on top of that, and send the new ETag",
    )
