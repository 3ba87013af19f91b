"""Reads server-sent events of live streams: actions and log lines, as the engine's own records."""

import json
from urllib.parse import quote

from lodger.engine.core.serialization import unshaped
from lodger.engine.service.operations.route import ROOT
from lodger.engine.store.records import Action
from lodger.sandbox.job import LogLine

#: Longest silence of a stream that lives, seconds: the server says that it does every fifteen.
SILENCE_S = 60.0
KINDS: dict[str, type[Action] | type[LogLine]] = {"action": Action, "log": LogLine}


def path(tenant_id: str, action_id: str | None) -> str:
    """Give where a stream is listened to."""
    tenant = f"{ROOT}/tenants/{quote(tenant_id, safe='')}"
    return f"{tenant}/live" if action_id is None else f"{tenant}/actions/{quote(action_id, safe='')}/live"


class Events:
    """Puts events together from lines."""

    def __init__(self) -> None:
        self._kind = ""

    def read(self, line: str) -> Action | LogLine | None:
        """Give the event that ends with this line, None while there is none; kinds of a later server are passed over."""
        name, _, value = line.partition(": ")
        if name == "event":
            self._kind = value
        elif name == "data" and self._kind in KINDS:
            found: Action | LogLine = unshaped(KINDS[self._kind], json.loads(value))
            return found
        return None
