"""How the command line speaks of the verbs' arguments: what it calls them, and what it says of them, from their documentation."""

import inspect
import re
from collections.abc import Callable
from typing import Any

_ARGUMENT = re.compile(r"^ {4}(\w+(?:, \w+)*): (.*?)(?=\n {4}\w|\n\n|\Z)", re.MULTILINE | re.DOTALL)

#: What the command line calls an argument of the verbs.
CALLED = {
    "rules": "rule", "exclusions": "exclude", "grants": "grant", "labels": "label", "hosts": "host", "events": "event",
    "tenant_id": "tenant", "schedule_id": "schedule", "action_id": "action", "n": "slots",
}  # fmt: skip
#: What the verbs' own documentation need not say.
WORDS = {
    "tenant_id": "The tenant's id.", "schedule": "The schedule's name or id.", "action_id": "The action's id.",
    "name": "Its name.", "tz": "IANA time zone, such as Europe/Berlin; UTC when left out.", "params": "The script's input.",
    "exclusions": "A rule whose slots are taken away.", "start": "No slot before then.", "end": "No slot from then on.",
    "limits": "Process limits.", "retry": "How often to try, or a whole policy.", "dst": 'Such as {"gap": "skip", "fold": "both"}.',
    "limit": "Most entries.", "cursor": "Where to go on: next of the page before.", "script": "The script's name.",
    "rules": "A rule; several make a union.", "state": "Only those in this state.", "outcome": "Only those that ended so.",
    "origin": "Only slot, backfill, run_now, replay, once or change.", "why": "The reason, for the audit log.",
    "role": "admin, operator, editor or viewer.",
    "older": "The version or revision before.", "newer": "The one after; the present one when left out.",
    "request_key": "Asking again with the same key asks for nothing new.", "note": "Why, for people.",
    "schedule_id": "Only those of this schedule, by its name or id.", "until": "Only those before.", "since": "Only those from then on.",
    "at": "When.", "token": "Its id, or its prefix.", "version": "Which version.", "revision": "Which revision.",
}  # fmt: skip


def summary(function: Callable[..., Any]) -> str:
    """Give the first sentence of a verb's documentation, for help."""
    return _plain((inspect.getdoc(function) or "").partition("\n\n")[0])


def described(function: Callable[..., Any]) -> dict[str, str]:
    """Give what a verb's documentation says of each argument."""
    text = (inspect.getdoc(function) or "").partition("Args:\n")[2].partition("\nRaises:")[0]
    found: dict[str, str] = {}
    for names, about in _ARGUMENT.findall(text):
        for name in names.split(", "):
            found[name] = _plain(about)
    return found


def _plain(text: str) -> str:
    return re.sub(r":\w+:`[^`]*`", "the reference", re.sub(r"``([^`]*)``", r"\1", " ".join(text.split())))
