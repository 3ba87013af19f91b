"""Help for people about operations and their parameters, read from docstrings."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from lodger.engine.core.access.roles import Role

#: Help of parameters that an operation's docstring does not explain.
WORDS = {
    "tenant_id": "ID of the tenant.", "schedule": "Name or ID of the schedule.",
    "action_id": "ID of the action; 4 or more characters of its beginning or end are enough.",
    "name": "Name.", "tz": "IANA time zone, such as Europe/Berlin. Default: UTC.", "params": "Input of the script.",
    "exclusions": "Rule with slots to exclude, or with whole days when it names no time of day; may be repeated.",
    "start": "Leave out slots before this instant.", "end": "Leave out slots at or after this instant.",
    "after": "Show slots after this instant. Default: now.", "n": "Number of slots.",
    "limits": "Limits of one attempt, such as {\"cpu_ms\": 500}.", "retry": "Number of attempts, or a retry policy.",
    "dst": "Handling of daylight saving time, such as {\"gap\": \"skip\", \"fold\": \"both\"}.",
    "missed": "Policy for missed slots: skip, latest, all or within:DURATION.",
    "overlap": "Policy for slots while an earlier action is unfinished: skip, queue_one, queue_all, cancel_other, cancel_running or allow.",
    "jitter_s": "Maximum random delay of an action after its slot, in seconds.",
    "expires_s": "Time after which an action that has not started expires, in seconds; 0: never.",
    "priority": "Priority among the tenant's actions: high, normal or low.",
    "pause_after": "Number of consecutive failed actions after which the schedule is paused; 0: never.",
    "labels": "Label that a node must have; may be repeated.", "placement": "Nodes that run a slot: any (one node) or every_node.",
    "grants": "Grant that the scripts may use; may be repeated.", "headers": "Headers of the request.",
    "filter": "Filter, such as state:failed script:night* since:24h sort:-due.",
    "limit": "Maximum number of entries.", "cursor": "Cursor of the next page, from the end of the previous one.",
    "script": "Name of the script.", "rules": "Rule; may be repeated for several rules.",
    "state": "Show only entries in this state.", "outcome": "Show only entries with this outcome.",
    "origin": "Show only entries of this origin: slot, backfill, run_now, replay, once or change.",
    "actor": "Show only changes by this actor.", "gone": "Also list stopped and lost nodes.",
    "grace_s": "Minimum delay in seconds.", "holder": "Name of the holder.", "why": "Reason of the change, for the audit log.",
    "role": f"Role: {', '.join(Role)}.",
    "older": "Earlier version or revision.", "newer": "Later version or revision. Default: the current one.",
    "request_key": "Idempotency key: a repeated request with the same key creates no further action.",
    "note": "Note that is shown with the schedule.",
    "until": "Show only entries before this instant.", "since": "Show only entries at or after this instant.",
    "collection": "Name of the collection.", "path": "Path of a field, such as address.city.",
    "document": "ID of the document.",
    "at": "Instant, such as 2027-01-31T09:00:00Z or +30m.", "token": "ID or prefix of the token.",
    "version": "Version number.", "revision": "Revision number.",
}  # fmt: skip
_ARGUMENT = re.compile(r"^ {4}(\w+(?:, \w+)*): (.*?)(?=\n {4}\w|\n\n|\Z)", re.MULTILINE | re.DOTALL)


def summary(function: Callable[..., Any]) -> str:
    """Return the first sentence of an operation's docstring, for help."""
    return plain((inspect.getdoc(function) or "").partition("\n\n")[0])


def explained(function: Callable[..., Any]) -> dict[str, str]:
    """Return the texts about parameters in an operation's docstring."""
    text = (inspect.getdoc(function) or "").partition("Args:\n")[2].partition("\nRaises:")[0]
    found: dict[str, str] = {}
    for names, about in _ARGUMENT.findall(text):
        for name in names.split(", "):
            found[name] = plain(about)
    return found


def plain(text: str) -> str:
    """Return a docstring's text without markup and references."""
    text = re.sub(r"[,;]? (?:see |\():\w+:`[^`]*`\)?", "", " ".join(text.split()))
    return re.sub(r":\w+:`(?:[^`]*\.)?(\w+)`|``([^`]*)``", r"\1\2", text)
