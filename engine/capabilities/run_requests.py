"""Host side of ``schedule``: later one-off runs enter the journal, and become actions in the commit."""

import json
from typing import Any

from lodger.engine.capabilities.permits import missing_grant
from lodger.engine.capabilities.session import Session
from lodger.engine.core import strict_json
from lodger.engine.core.clock import to_us
from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import bad_request
from lodger.engine.effects.effect import CancelRun, RunLater
from lodger.engine.recurrence.duration import parse_duration
from lodger.sandbox.prescan import JsonRefused, require

#: Maximum size of the input of a later run, bytes of JSON; a tenant's limit ``input_bytes`` may be lower.
MAX_INPUT = 16 * 1024
MAX_KEY = 120
#: A later run is due at the earliest and at the latest so long after the run that requests it began.
MIN_DISTANCE_US = 1_000_000
MAX_DAYS = 366
MAX_DISTANCE_US = MAX_DAYS * 86_400_000_000
#: Levels of a run's input around its params.
CONTEXT_DEPTH = 2


async def run(session: Session, given: dict[str, Any]) -> str:
    """Handle schedule.runAt: return the id of the later action."""
    script = _script(session, given["script"])
    at_us = _due_us(session, given)
    key = None if given["key"] is None else _key(given["key"])
    value = strict_json.plain(strict_json.normal(given["input"]))
    text = strict_json.dump(value)
    limit = min(MAX_INPUT, session.claim.limits.input_bytes)
    if len(text.encode()) > limit:
        raise bad_request(f"the input of a later run has at most {limit} bytes of JSON; store more in a collection")
    try:
        require(text.encode(), max_depth=session.claim.limits.json_depth - CONTEXT_DEPTH)
    except JsonRefused:
        raise bad_request("the input of a later run is nested too deep") from None
    session.budgets.spend("queries")
    await session.check_script(script, json.loads(text))
    session.budgets.spend("later_runs")
    action_id = session.new_id()
    session.journal.add(RunLater(action_id, script, at_us, text, key, line=given["line"]))
    return action_id


async def cancel(session: Session, given: dict[str, Any]) -> None:
    """Handle schedule.cancel: the cancellation of a later run enters the journal."""
    script, run_ = _script(session, given["script"]), _key(given["run"])
    session.budgets.spend("rows_written")
    session.journal.add(CancelRun(script, run_, line=given["line"]))


def _script(session: Session, named: str | None) -> str:
    """Return the name of the script to run, if the grants allow it."""
    script = session.claim.script_name if named is None else named
    if not session.claim.grants.of_run(script, own=script == session.claim.script_name):
        raise missing_grant("run" if script == session.claim.script_name else f"run:{script[:200]}")
    return script


def _due_us(session: Session, given: dict[str, Any]) -> int:
    """Return when a later run is due, microseconds since 1970, from the instant or delay that the script gave."""
    at, delay = given["at"], given["delay"]
    if (at is None) == (delay is None):
        raise bad_request("a later run needs an instant or a delay")
    if at is not None:
        at_us = to_us(strict_json.read_instant(at))
    elif isinstance(delay, str) and len(delay) <= 100:
        try:
            at_us = session.now_us + parse_duration(delay)
        except InputError as error:
            raise bad_request(f"{error.what}: a delay is like 90s, 1h30m or PT5M") from None
    elif isinstance(delay, int | float) and not isinstance(delay, bool) and 0 <= delay <= MAX_DISTANCE_US:
        at_us = session.now_us + round(delay * 1000)
    else:
        raise bad_request("a delay is an object like { minutes: 5 }, text like 90s or PT5M, or milliseconds from 0")
    if at_us > session.now_us + MAX_DISTANCE_US:
        raise bad_request(f"a later run is due at most {MAX_DAYS} days after now")
    return max(at_us, session.now_us + MIN_DISTANCE_US)


def _key(key: str) -> str:
    """Return the key of a later run, checked."""
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise bad_request(f"the key of a later run has 1 to {MAX_KEY} printable characters")
    return key


HANDLERS = {"schedule.runAt": run, "schedule.cancel": cancel}
