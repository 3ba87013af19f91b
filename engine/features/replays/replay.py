"""Runs a recorded attempt again in real walls, with the recorded answers, and compares how both ended."""

import base64
from dataclasses import dataclass, replace
from typing import Any

from lodger.engine.core.version import VERSION
from lodger.engine.features.replays import attempt_record
from lodger.engine.features.replays.attempt_record import FROM_OUTSIDE, AttemptRecord, Ended
from lodger.engine.features.replays.recorded_host import STOPPED, Departure, MadeCall, RecordedHost, run_again
from lodger.engine.trials.claims import Source
from lodger.sandbox.job import Runs
from lodger.sandbox.outcome import Outcome

SAME, DEPARTS, UNDECIDED = "same", "departs", "undecided"
_TIMES = {Outcome.CPU_LIMIT: "cpu", Outcome.WALL_LIMIT: "wall"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of the end that differs: outcome, error, result, logs, calls or clock."""

    part: str
    recorded: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Replayed:
    """The comparison of a recorded attempt with its replay.

    Attributes:
        verdict: same, departs, or undecided if the record or the recorded end does not tell.
        limit: cpu or wall, if that limit ended the recorded attempt: where it stops depends on the speed of the host.
        differences: parts that differ, in the order outcome, error, result, calls, logs.
        departure: the first call that differs.
        notes: further facts for a reader, one sentence each.
    """

    verdict: str
    recorded: Ended
    now: Ended
    calls: tuple[MadeCall, ...]
    limit: str | None = None
    differences: tuple[Difference, ...] = ()
    departure: Departure | None = None
    notes: tuple[str, ...] = ()


async def replay(
    pool: Runs,
    record: AttemptRecord,
    source: Source,
    *,
    edited: bool = False,
) -> Replayed:
    """Run a recorded attempt again and compare.

    Args:
        source: files by name, or the bytes of a WebAssembly module.
        edited: whether it is another source than the recorded one.
    """
    host, now = await run_again(pool, record, source, edited=edited)
    if host.departure is None and len(host.made) < len(record.calls) and not host.stop.done():
        missing = record.calls[len(host.made)]
        host.departure = Departure(len(host.made), MadeCall(missing.name, missing.arguments), None)
    return _compare(record, host, now, edited=edited)


def source_of(record: AttemptRecord) -> Source:
    """Return the source in a record that was read out.

    Raises:
        InputError: record_invalid.
    """
    if record.wasm is not None:
        return base64.b64decode(record.wasm)
    if not record.modules:
        raise attempt_record.invalid("it holds no source")
    return record.modules


def _compare(record: AttemptRecord, host: RecordedHost, now: Ended, *, edited: bool) -> Replayed:
    """Compare the recorded end of an attempt with that of its replay."""
    before, limit = record.ended, _TIMES.get(record.ended.outcome)
    stopped, passed = before.outcome in STOPPED, host.stop.done() and host.departure is None
    notes = list(_notes(record, host, edited=edited))
    if stopped and passed:
        now = replace(now, outcome=before.outcome, error=before.error)
        notes.append(f"the replay went past the place where the recorded attempt was stopped ({before.outcome})")
    elif limit is not None and now.outcome is before.outcome:
        notes.append(f"ended by limit: {limit}; the replay also exceeded it")
    elif limit is not None:
        notes.append(
            f"ended by limit: {limit}; the replay did not exceed it: this host is faster, or the source differs"
        )
    counted = set() if passed else {"outcome"} if stopped else {"outcome", "error", "result", "logs"}
    if stopped and not _begin_alike(before.logs, now.logs):
        counted.add("logs")
    found = [
        Difference(part, was, present)
        for part, was, present in (
            ("outcome", before.outcome, now.outcome),
            ("error", _place(before), _place(now)),
            ("result", before.result, now.result),
            ("logs", before.logs, now.logs),
        )
        if part in counted and was != present
    ]
    if host.departure is not None and not (stopped and host.departure.now is None):
        found.append(Difference("calls", host.departure.recorded, host.departure.now))
    verdict = DEPARTS if found else SAME
    if passed and not record.complete:
        verdict = UNDECIDED
        notes.append(f"the record holds the first {len(record.calls)} calls alone; up to there both are the same")
    elif before.outcome in FROM_OUTSIDE and now.outcome is not before.outcome and host.departure is None:
        verdict = UNDECIDED
        notes.append(f"the recorded attempt did not end by itself: {FROM_OUTSIDE[before.outcome]}")
    if record.committed is not None and verdict == SAME:
        notes.append(
            f"the script ended well; the commit then refused its effects: {record.committed.outcome}. "
            "A replay has no commit; with the same effects the recorded answer of the commit stands"
        )
    return Replayed(verdict, before, now, tuple(host.made), limit, tuple(found), host.departure, tuple(notes))


def _notes(record: AttemptRecord, host: RecordedHost, *, edited: bool) -> list[str]:
    """Return facts that a reader of a replay should know, one sentence each."""
    notes = []
    if record.lodger != VERSION:
        notes.append(f"recorded by Lodger {record.lodger}, replayed by {VERSION}")
    if record.secrets and (host.departure is not None or edited):
        names = ", ".join(record.secrets)
        notes.append(
            f"the script read secrets ({names}): the replay sees placeholders, and what it derives from them differs"
        )
    return notes


def _place(ended: Ended) -> "tuple[Any, ...] | None":
    """Return name, message and place of an error for a comparison, None without an error."""
    error = ended.error
    return None if error is None else (error.name, error.message, error.file, error.line, error.column)


def _begin_alike(one: "tuple[Any, ...]", two: "tuple[Any, ...]") -> bool:
    """Whether the shorter of two lists is the beginning of the other."""
    shorter = min(len(one), len(two))
    return one[:shorter] == two[:shorter]
