"""Plan of the slots that a tick owes: a run, a skip, or a gap for a stretch of slots with one common reason.

The missed policy decides for a whole tick that comes late, so that an engine that was off for a month answers with one decision and
not with a burst; the overlap policy decides for slots that are on time. A backfill runs the slots of a range that did not run.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from lodger.engine.core.errors import InputError
from lodger.engine.policy.defaults import whole, word
from lodger.engine.recurrence.duration import DAY_US, SECOND_US, parse_duration
from lodger.engine.recurrence.rule import Answer, Recurrence
from lodger.engine.recurrence.rule_errors import RuleInvalid
from lodger.engine.recurrence.search import SearchedTo

#: Longest window of the missed policy ``within``, microseconds.
_MAX_WINDOW_US = 366 * DAY_US


class MissedKind(StrEnum):
    """Policy for slots that were not ticked in time."""

    SKIP = "skip"  # none of them runs
    LATEST = "latest"  # the latest runs, the rest is one gap row
    ALL = "all"  # every one runs, oldest first, up to catch_up_max
    WITHIN = "within"  # the latest runs when it is no older than the duration


@dataclass(frozen=True, slots=True)
class Missed:
    """A missed policy; ``str`` gives the text that :func:`parse_missed` reads. ``window`` is set for WITHIN only."""

    kind: MissedKind
    window: timedelta | None = None

    def __str__(self) -> str:
        if self.window is None:
            return self.kind.value
        return f"within:{int(self.window.total_seconds())}s"


def parse_missed(text: str) -> Missed:
    """Read ``skip``, ``latest``, ``all`` or ``within:10m``, with a duration of whole seconds.

    Raises:
        InputError: missed_invalid.
    """
    text = text.strip().lower()
    if text in {MissedKind.SKIP, MissedKind.LATEST, MissedKind.ALL}:
        return Missed(MissedKind(text))
    kind, _, window = text.partition(":")
    try:
        window_us = parse_duration(window.strip()) if kind == MissedKind.WITHIN else 0
    except RuleInvalid:
        window_us = 0
    if 0 < window_us <= _MAX_WINDOW_US and window_us % SECOND_US == 0:
        return Missed(MissedKind.WITHIN, timedelta(microseconds=window_us))
    raise InputError("missed_invalid", text=text)


class Overlap(StrEnum):
    """The overlap policies. Only ``allow`` lets two actions of one schedule run at once; all others start in slot order."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_OTHER = "cancel_other"  # gracefully: what runs has CANCEL_GRACE to end
    CANCEL_RUNNING = "cancel_running"  # at once
    ALLOW = "allow"


#: Temporal's names of the same policies; ``Skip`` and ``CancelOther`` are ours in other spelling.
TEMPORAL = {
    "Skip": Overlap.SKIP,
    "BufferOne": Overlap.QUEUE_ONE,
    "BufferAll": Overlap.QUEUE_ALL,
    "CancelOther": Overlap.CANCEL_OTHER,
    "TerminateOther": Overlap.CANCEL_RUNNING,
    "AllowAll": Overlap.ALLOW,
}
_BY_SPELLING = {name.lower(): overlap for name, overlap in TEMPORAL.items()}
#: How long a run may go on that a ``cancel_other`` slot is to replace.
CANCEL_GRACE = timedelta(seconds=whole("cancel_grace_s"))


def parse_overlap(text: str) -> Overlap:
    """Read a policy by our name or by Temporal's.

    Raises:
        InputError: overlap_invalid.
    """
    name = text.strip().lower()
    try:
        return _BY_SPELLING.get(name) or Overlap(name)
    except ValueError:
        raise InputError("overlap_invalid", text=text, policies=Overlap, temporal=TEMPORAL) from None


MISSED = "missed"
OVERLAP = "overlap"
CATCH_UP = "catch_up_max"
QUEUE_FULL = "queue_full"
CAUGHT_UP = "caught_up"
MIN_INTERVAL = "min_interval"

#: Questions in which a slot of a stretch is searched.
_QUESTIONS = 50

_MICROSECOND = timedelta(microseconds=1)
_MISSED = parse_missed(word("missed"))
_OVERLAP = Overlap(word("overlap"))


@dataclass(frozen=True, slots=True)
class SlotPolicies:
    """A schedule's policies about its slots: missed, overlap, and their bounds."""

    missed: Missed = _MISSED
    overlap: Overlap = _OVERLAP
    missed_after: timedelta = timedelta(seconds=whole("missed_after_s"))
    catch_up_max: int = whole("catch_up_max")
    queue_max: int = whole("queue_max")


@dataclass(frozen=True, slots=True)
class UnfinishedCounts:
    """Unfinished actions of the schedule: those that run or may start at once, and those that wait for a predecessor.

    An action that only waits for its retry counts as neither: a due slot supersedes it.
    """

    busy: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Spacing:
    """Minimum distance of two slots that run, and the latest slot that became an action."""

    minimum: timedelta
    last: datetime | None = None

    def allows(self, slot: datetime) -> bool:
        """Whether a slot may run, being far enough after the latest one that did."""
        return self.last is None or slot - self.last >= self.minimum

    def after(self, slot: datetime) -> "Spacing":
        """Return the spacing after a slot that runs."""
        return Spacing(self.minimum, slot)


@dataclass(frozen=True, slots=True)
class Run:
    """The slot becomes an action.

    Attributes:
        held: it waits until its predecessors are over.
        cancels: every unfinished action of the schedule is cancelled first; of a held run, running ones may end in CANCEL_GRACE.
        reason: ``caught_up`` when it runs late by the missed policy.
    """

    slot: datetime
    held: bool = False
    cancels: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """The slot becomes a row that says why it did not run."""

    slot: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Every slot in [slot, slot_to] did not run, for one reason; both ends are slots, ``slot < slot_to``."""

    slot: datetime
    slot_to: datetime
    reason: str


Step = Run | Skip | Gap


def plan(
    standing: UnfinishedCounts,
    terms: SlotPolicies,
    recurrence: Recurrence,
    after: datetime,
    now: datetime,
    spacing: Spacing | None = None,
) -> list[Step]:
    """Decide every slot in (after, now], ascending, without enumerating a stretch that becomes a gap.

    Cost: the number of slots that become rows of their own, at most ``catch_up_max`` + those of ``missed_after``.

    Args:
        spacing: minimum distance of slots that run; None where the rules name no closer ones.
    """
    first = _first(recurrence, after, now)
    if first is None:
        return []
    edge = now - terms.missed_after
    if first >= edge:
        return _on_time(standing, terms, recurrence, first, now, spacing)
    if terms.missed.kind is MissedKind.ALL:
        return _all(standing, terms, recurrence, first, now, spacing)
    if terms.missed.kind is MissedKind.SKIP:
        last, _ = _last(recurrence, edge - _MICROSECOND, first)
        rest = _first(recurrence, last, now)
        steps = _stretch(first, last, MISSED)
        return steps + ([] if rest is None else _on_time(standing, terms, recurrence, rest, now, spacing))
    last, is_slot = _last(recurrence, now, first)
    if not is_slot or (terms.missed.window is not None and last < now - terms.missed.window):
        return _stretch(first, last, MISSED)
    if spacing is not None and not spacing.allows(last):
        return _stretch(first, last, MIN_INTERVAL)
    before = None if last == first else _last(recurrence, last - _MICROSECOND, first)[0]
    steps = [] if before is None else _stretch(first, before, MISSED)
    held = terms.overlap is not Overlap.ALLOW and bool(standing.busy or standing.waiting)
    return [*steps, Run(last, held=held, reason=CAUGHT_UP)]


def stretch(recurrence: Recurrence, after: datetime, to: datetime, reason: str) -> list[Step]:
    """Account every slot in (after, to] by one row with one reason: a pause, a suspension."""
    first = _first(recurrence, after, to)
    return [] if first is None else _stretch(first, _last(recurrence, to, first)[0], reason)


def held_behind_backfill(step: Step) -> Step:
    """Return the step with a run held until the schedule's backfill has ended, unless it cancels unfinished actions."""
    return replace(step, held=True) if isinstance(step, Run) and not step.cancels else step


def _first(recurrence: Recurrence, after: datetime, now: datetime) -> datetime | None:
    """Return the first slot in (after, now]; None if there is none, or if a few bounded searches do not find it."""
    found: Answer = recurrence.next_after(after)
    for _ in range(_QUESTIONS):
        if not isinstance(found, SearchedTo):
            return found if found is not None and found <= now else None
        if found.instant > now:
            return None
        found = recurrence.next_after(found.instant, inclusive=True)
    return None


def _last(recurrence: Recurrence, to: datetime, first: datetime) -> tuple[datetime, bool]:
    """Last slot in [first, to], where ``first`` is one; and whether it is a slot or only as far as was searched."""
    at = to
    for _ in range(_QUESTIONS):
        found = recurrence.previous_before(at, inclusive=True)
        if found is None:
            return first, True
        if isinstance(found, datetime):
            return max(found, first), True
        if found.instant <= first:
            return first, True
        at = found.instant
    return at, False


def _stretch(first: datetime, last: datetime, reason: str) -> list[Step]:
    """Return the step of skipped slots: a skip for one slot, a gap for several."""
    return [Skip(first, reason) if first == last else Gap(first, last, reason)]


def _all(
    standing: UnfinishedCounts,
    terms: SlotPolicies,
    recurrence: Recurrence,
    first: datetime,
    now: datetime,
    spacing: Spacing | None,
) -> list[Step]:
    """Run the newest catch_up_max slots, oldest first; older ones become one gap."""
    slots: list[datetime] = []
    slot, is_slot = _last(recurrence, now, first)
    while is_slot and len(slots) < terms.catch_up_max:
        slots.append(slot)
        if slot == first:
            break
        slot, is_slot = _last(recurrence, slot - _MICROSECOND, first)
    slots.reverse()
    steps = _stretch(first, slot, CATCH_UP) if not slots or slot < slots[0] else []
    serial = terms.overlap is not Overlap.ALLOW
    held = serial and bool(standing.busy or standing.waiting)
    for each in slots:
        if spacing is not None and not spacing.allows(each):
            _append_skip(steps, Skip(each, MIN_INTERVAL))
            continue
        spacing = None if spacing is None else spacing.after(each)
        steps.append(Run(each, held=held, reason=CAUGHT_UP))
        held = serial
    return steps


def _on_time(
    standing: UnfinishedCounts,
    terms: SlotPolicies,
    recurrence: Recurrence,
    first: datetime,
    now: datetime,
    spacing: Spacing | None,
) -> list[Step]:
    """Decide each slot from ``first`` to ``now`` by the overlap policy; beyond catch_up_max slots, the rest is one gap."""
    steps: list[Step] = []
    busy, waiting, number = standing.busy, standing.waiting, 0
    slot: datetime | None = first
    while slot is not None:
        following = _first(recurrence, slot, now)
        number += 1
        if number > terms.catch_up_max:
            # A rule may name more slots within missed_after than a transaction should write.
            end, _ = _last(recurrence, now, slot)
            return [*steps, *_stretch(slot, end, CATCH_UP)]
        if spacing is not None and not spacing.allows(slot):
            _append_skip(steps, Skip(slot, MIN_INTERVAL))
            slot = following
            continue
        step = _decide(terms.overlap, slot, busy, waiting, terms.queue_max, last=following is None)
        if isinstance(step, Run):
            waiting += step.held
            busy += not step.held
            spacing = None if spacing is None else spacing.after(slot)
            steps.append(step)
        else:
            _append_skip(steps, step)
        slot = following
    return steps


def _append_skip(steps: list[Step], skip: Skip) -> None:
    """Append a skip to the steps; one that follows another with the same reason makes a gap of both."""
    before = steps[-1] if steps else None
    if isinstance(before, Skip | Gap) and before.reason == skip.reason:
        steps[-1] = Gap(before.slot, skip.slot, skip.reason)
    else:
        steps.append(skip)


def _decide(overlap: Overlap, slot: datetime, busy: int, waiting: int, queue_max: int, *, last: bool) -> Run | Skip:
    """Decide a slot by the overlap policy.

    Args:
        busy, waiting: unfinished actions, as of :class:`UnfinishedCounts`.
        last: whether it is the last owed slot. A run that the next slot of the same tick would cancel is never begun.
    """
    unfinished = bool(busy or waiting)
    match overlap:
        case Overlap.ALLOW:
            return Run(slot)
        case Overlap.SKIP:
            return Skip(slot, OVERLAP) if unfinished else Run(slot)
        case Overlap.QUEUE_ONE:
            return Skip(slot, OVERLAP) if waiting else Run(slot, held=bool(busy))
        case Overlap.QUEUE_ALL:
            return Skip(slot, QUEUE_FULL) if waiting >= queue_max else Run(slot, held=unfinished)
        case Overlap.CANCEL_RUNNING:
            return Run(slot, cancels=unfinished) if last else Skip(slot, OVERLAP)
        case Overlap.CANCEL_OTHER:
            return Run(slot, held=unfinished, cancels=unfinished) if last else Skip(slot, OVERLAP)
