"""Compares another version of a script with a recorded attempt: the same outcome, result and effects, or the first difference."""

import json
from dataclasses import dataclass
from datetime import datetime

from lodger.engine.features.replays.attempt_record import FROM_OUTSIDE, AttemptRecord, Ended, RecordedCall
from lodger.engine.features.replays.recorded_host import STOPPED, MadeCall, RecordedHost, run_again
from lodger.engine.trials.claims import Source
from lodger.sandbox.job import Runs
from lodger.sandbox.outcome import Outcome
from lodger.stdlib.calls import EFFECTS

#: Verdicts on a run.
AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"
#: Maximum length of one value in the text of a difference, in characters.
_MAX_SHOWN = 160
FETCH = "http.fetch"
#: Reads whose answer can depend on the attempt's own changes before them.
_SEES_CHANGES = ("db.", "kv.", "limits.")


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """A run of the live version, compared with the same run of another version: its shadow, or one that is rehearsed.

    Attributes:
        slot: None for a run without one.
        verdict: agrees, differs, undecided if the record does not tell, or in a rehearsal "no record".
        difference: the first difference, or why it is undecided; "" if they agree.
        live, shadow: outcomes.
        live_cpu_ms, shadow_cpu_ms: CPU time; a difference of it is shown and never decides.
    """

    action_id: str
    step: int
    slot: datetime | None
    verdict: str
    difference: str = ""
    live: str = ""
    shadow: str = ""
    live_cpu_ms: float = 0.0
    shadow_cpu_ms: float = 0.0


async def agreement(
    pool: Runs, record: AttemptRecord, live: Source, new: Source, slot: datetime | None, tenant: str = "replay"
) -> tuple[ShadowRun, float]:
    """Run a version on the input and answers of a recorded attempt; return the comparison, and the CPU time of all that was run for it.

    A difference counts only if the recorded version itself, run again in the same way, ends as recorded. Otherwise the
    record lacks something that it depended on, such as the value of a secret.

    Args:
        live: the source that was recorded.
        new: the source to compare with it.
        tenant: as of :func:`lodger.engine.features.replays.recorded_host.run_again`.
    """
    host, now = await run_again(pool, record, new, edited=True, tenant=tenant)
    verdict, difference = compare(record, host, now)
    before, cpu_ms = record.ended, now.usage.cpu_ms
    if verdict == DIFFERS:
        same_host, same = await run_again(pool, record, live, edited=True, tenant=tenant)
        cpu_ms += same.usage.cpu_ms
        control, why = compare(record, same_host, same)
        if control != AGREES:
            secrets = f"; it read secrets ({', '.join(record.secrets)})" if record.secrets else ""
            verdict, difference = UNDECIDED, f"the recorded version itself does not end as recorded: {why}{secrets}"
    return ShadowRun(
        record.action, record.step, slot, verdict, difference, before.outcome.value, now.outcome.value,
        round(before.usage.cpu_ms, 3), round(now.usage.cpu_ms, 3),
    ), cpu_ms  # fmt: skip


def compare(record: AttemptRecord, host: RecordedHost, now: Ended) -> tuple[str, str]:
    """Return the verdict on a run with the answers of a record, and the first difference or why it is undecided."""
    before = record.ended
    if before.outcome in FROM_OUTSIDE:
        return UNDECIDED, f"the recorded run did not end by itself: {FROM_OUTSIDE[before.outcome]}"
    if now.outcome in FROM_OUTSIDE:
        return UNDECIDED, f"its own run did not end by itself: {FROM_OUTSIDE[now.outcome]}"
    failed = before.outcome is not Outcome.OK
    if host.missing:
        return _unanswered(record, host.made[: host.missing[0] + 1], failed=failed)
    if host.stop.done():
        return UNDECIDED, "it goes on after the place where the record ends"
    if host.unanswered and now.outcome is Outcome.WALL_LIMIT:
        return UNDECIDED, "it waits for an answer that the recorded run did not live to see"
    seen = [_seen(calls, failed=failed) for calls in (record.calls, host.made)]
    difference = _of_ends(before, now) or _of_changes(*seen)
    if difference:
        return DIFFERS, difference
    recorded = _reads(record.calls)
    if any(recorded.get(read, [])[: len(places)] != places for read, places in _reads(host.made).items()):
        return UNDECIDED, "it reads data at another place among its changes, where the answer may be another"
    if not record.complete:
        return UNDECIDED, "the record was too large to hold all calls; up to its end both do the same"
    return AGREES, ""


def _unanswered(record: AttemptRecord, made: list[MadeCall], *, failed: bool) -> tuple[str, str]:
    """Return verdict and reason for a run with a call that the record has no answer to, judged by the calls up to it: later ones tell
    nothing."""
    call = made[-1]
    was, so_far = _seen(record.calls, failed=failed), _seen(made[:-1], failed=failed)
    if so_far != was[: len(so_far)]:
        return DIFFERS, _of_changes(was, so_far)
    if _is_change(call, failed=failed) and was[len(so_far) : len(so_far) + 1] != [call]:
        return DIFFERS, _of_changes(was, [*so_far, call])
    return UNDECIDED, f"it asks what the recorded run did not ask: {_shown(call)}"


def _of_ends(before: Ended, now: Ended) -> str:
    """Return the first difference of two ends, "" if there is none."""
    if now.outcome is not before.outcome:
        return f"outcome was {_outcome(before)}, is {_outcome(now)}"
    if before.outcome not in STOPPED and _error(before) != _error(now):
        return f"error was {_cut(_error(before))}, is {_cut(_error(now))}"
    if _value(before.result) != _value(now.result):
        return f"result was {_cut(before.result or 'none')}, is {_cut(now.result or 'none')}"
    return ""


def _of_changes(was: list[MadeCall], made: list[MadeCall]) -> str:
    """Return the first difference of two lists of calls, "" if there is none."""
    for one, two in zip(was, made, strict=False):
        if one != two:
            return f"called {_shown(one)}, calls {_shown(two)}"
    if len(made) > len(was):
        return f"calls {_shown(made[len(was)])}, which was not called"
    return f"called {_shown(was[len(made)])}, which is not called" if len(was) > len(made) else ""


def _seen(calls: "tuple[RecordedCall, ...] | list[MadeCall]", *, failed: bool) -> list[MadeCall]:
    """Return the calls that are seen from outside, in order: changes, mails, events, requests; of a failed run the requests."""
    return [
        MadeCall(each.name, each.arguments)
        for each in calls
        if each.name == FETCH or (not failed and each.name in EFFECTS)
    ]


def _reads(calls: "tuple[RecordedCall, ...] | list[MadeCall]") -> dict[tuple[str, str], list[int]]:
    """Return the reads whose answers matter, by name and arguments: for each answer, how many changes were made before it."""
    found: dict[tuple[str, str], list[int]] = {}
    changes = 0
    for each in calls:
        if each.name in EFFECTS:
            changes += 1
        elif each.name.startswith(_SEES_CHANGES):
            found.setdefault((each.name, each.arguments), []).append(changes)
    return found


def _is_change(call: MadeCall, *, failed: bool) -> bool:
    """Whether a call that was not recorded is a difference by itself; the answer to a mere question decides later calls."""
    if call.name in EFFECTS:
        return not failed
    if call.name != FETCH:
        return False
    return not any(f'"method":"{method}"' in call.arguments for method in ("GET", "HEAD"))


def _outcome(ended: Ended) -> str:
    """Return an outcome and its error as one text."""
    return ended.outcome.value if ended.error is None else f"{ended.outcome.value} ({_cut(_error(ended))})"


def _error(ended: Ended) -> str:
    """Return the error of an end as text, ``none`` without one."""
    return "none" if ended.error is None else f"{ended.error.name}: {ended.error.message}"


def _value(result: str | None) -> str | None:
    """Return the JSON text of a result without the order of its keys."""
    try:
        return None if result is None else json.dumps(json.loads(result), sort_keys=True)
    except (ValueError, RecursionError):  # a module's number of thousands of digits
        return result


def _shown(call: MadeCall) -> str:
    """Return a host call as text for people, cut if it is long."""
    return _cut(f"{call.name}({call.arguments})")


def _cut(text: str) -> str:
    """Return the beginning of a long text."""
    text = text.encode(errors="backslashreplace").decode()  # half a character is no text for a page
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
