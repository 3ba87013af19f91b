"""The host calls and the input of a recorded attempt on the page of its action."""

import json

from lodger.engine.core.access.roles import Role
from lodger.engine.features.replays.attempt_record import AttemptRecord
from lodger.engine.store.records import Action
from lodger.engine.web.page import Reader, Values
from lodger.engine.web.pages import actions


def _recorded(reader: Reader, action: Action) -> Values:
    """Return calls and input of the last attempt; nothing if it has no record, or the caller may not read it."""
    if action.finished_at is None or not reader.caller.role.covers(Role.EDITOR):
        return {}
    record: AttemptRecord | None = reader.find("actions.record", tenant_id=action.tenant_id, action_id=action.id)
    if record is None:
        return {}
    try:
        given = json.loads(record.context)["action"]["input"]
    except (ValueError, KeyError, TypeError):  # a WebAssembly module's standard input
        given = None
    return {"calls": record.calls, "input": given}


actions.VALUES.append(_recorded)
